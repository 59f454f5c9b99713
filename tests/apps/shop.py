"""A Django project in one file: its admin site with one user."""

import os
import sys

import django
from django.conf import settings
from django.contrib import admin
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import path

settings.configure(
    SECRET_KEY="only for a test",
    ALLOWED_HOSTS=["shop.example"],
    # lockgate says in this header whether the client used TLS.
    SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"),
    SESSION_COOKIE_SECURE=True,
    CSRF_COOKIE_SECURE=True,
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["SHOP_DATABASE"]}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    STATIC_URL="static/",
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
    ],
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
)
django.setup()
urlpatterns = [path("admin/", admin.site.urls)]
application = get_wsgi_application()

if __name__ == "__main__" and sys.argv[1:] == ["prepare"]:
    call_command("migrate", verbosity=0)
    from django.contrib.auth.models import User

    User.objects.create_superuser("alice", password="correct horse")
