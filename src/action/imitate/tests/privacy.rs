//! What is never kept and never repeated.

use super::*;

#[test]
fn headers_with_secret_names_never_appear() {
    for name in [
        "set-cookie",
        "location",
        "content-location",
        "www-authenticate",
        "authorization",
        "x-auth",
        "x-csrf-token",
        "x-xsrf",
        "x-session-id",
        "x-api-key",
        "x-amz-security-token",
        "x-secret",
        "x-signature",
    ] {
        let memory = LearnedResponses::default();
        teach_all(&memory, 200, &[("server", "a"), (name, "the-same-for-all")]);
        assert_eq!(value(&memory, name), None, "{name}");
        let canned = canned("text/plain", "");
        assert_eq!(
            fields(&dressed(&memory, &canned)),
            [("server", "a")],
            "{name}"
        );
        assert!(
            !format!("{memory:?}").contains("the-same"),
            "{name} is kept"
        );
    }
}

#[test]
fn token_like_values_are_neither_kept_nor_repeated() {
    for secret in [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "Bearer eyJhbGciOiJub25lIn0.eyJhIjoxfQ.",
        "sk_live_51H8a9XcT2mQpLzW4",
        "0123456789abcdef0123456789abcdef",
        "v=1; t=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4",
        "AbCdEfGhIjKlMnOpQrStUvWx",
        "4111111111111111411111111111111111",
    ] {
        let memory = LearnedResponses::default();
        teach_all(&memory, 200, &[("x-note", secret)]);
        for _ in 0..20 {
            assert_ne!(value(&memory, "x-note").as_deref(), Some(secret));
        }
        let kept = format!("{memory:?}");
        let long = secret.split(['.', ' ', ';']).max_by_key(|part| part.len());
        assert!(!kept.contains(long.unwrap()), "{secret} is kept");
    }
}

#[test]
fn ordinary_values_are_not_taken_for_tokens() {
    for (name, public) in [
        ("server", "nginx/1.27.0"),
        (
            "strict-transport-security",
            "max-age=63072000; includeSubDomains; preload",
        ),
        (
            "content-type",
            "application/vnd.github.v3+json; charset=utf-8",
        ),
        ("x-served-by", "cache-fra-eddf8230091-FRA"),
        ("x-build", "9f8c1de0a1b2c3d4e5f60718293a4b5c6d7e8f90"),
        ("etag", "\"d41d8cd98f00b204e9800998ecf8427e\""),
        (
            "content-security-policy",
            "script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
        ),
    ] {
        let memory = LearnedResponses::default();
        teach_all(&memory, 60, &[(name, public)]);
        assert_eq!(value(&memory, name).as_deref(), Some(public));
    }
}

#[test]
fn a_varying_value_is_not_kept() {
    let memory = LearnedResponses::default();
    for answer in 0..120 {
        let value = format!("user-{answer:04}@example.com");
        teach(&memory, answer, &[("x-user", &value), ("x-trace", &value)]);
    }
    let kept = format!("{memory:?}");
    let many = (0..120).filter(|n| kept.contains(&format!("user-{n:04}@")));
    // The last few, until it is clear that they do not come again.
    assert!(many.count() <= 3, "{kept}");
}
