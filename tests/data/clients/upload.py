"""Uploads 5 MB with http.client, as python-requests does, and prints the status of each attempt."""
import http.client
import ssl
import sys

port, tls, attempts = int(sys.argv[1]), sys.argv[2] == "tls", int(sys.argv[3])
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
for _ in range(attempts):
    if tls:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/", body=bytes(5_000_000))
        print(connection.getresponse().status)
    except OSError as error:
        print(error)
    connection.close()
