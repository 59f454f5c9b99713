//! Warnings of values that a field never has.

use proptest::prelude::*;

use super::{PATH, deny, none, only, rule, warnings};

#[test]
fn values_that_a_field_never_has() {
    let geo = "[geo.overrides]\n\"203.0.113.0/24\" = { asn = 1, country = \"DE\" }\n";
    let wrong = [
        r#"ip.src.country eq "de""#,
        r#"ip.geoip.country in {"DE" "DEU"}"#,
        r#"ip.src.continent eq "Europe""#,
        r#"http.request.method eq "post""#,
        r#"http.request.version eq "1.1""#,
        r#"http.request.uri.path eq "login""#,
        r#"http.request.uri.path eq "/a//b""#,
        r#"http.request.uri.path eq "/a?b=1""#,
        r#"http.request.uri.path in {"/%61"}"#,
        r#"starts_with(http.request.uri.path, "api")"#,
        r#"starts_with(http.request.uri.path, "/%61dmin")"#,
        r#"http.request.uri.path contains "?id=""#,
        r#"http.request.uri.path wildcard "api/*""#,
        r#"http.request.uri.path strict wildcard "/a?b=*""#,
        r#"http.host eq "*.example.com""#,
        r#"http.request.uri.path.extension eq "tar.gz""#,
        r#"http.host eq "Example.com""#,
        r#"http.host eq "example.com:8443""#,
        r#"http.host ne "https://example.com""#,
        r#"tls.version eq "TLS 1.3""#,
        r#"cf.tls_cipher in {"ECDHE-RSA-AES128-GCM-SHA256"}"#,
        r#"tls.alpn eq "h3""#,
        r#"tls.ja3 eq "abc""#,
        r#"tls.ja4 eq "t13d1516h2_8daaf6152771""#,
        r#"http.request.uri.path.extension in {".php"}"#,
        r#"any(http.request.headers.names[*] eq "X-Api-Key")"#,
        r#"http.request.full_uri eq "example.com/""#,
        "ip.src.asnum eq 4294967296",
    ];
    for expression in wrong {
        let found = warnings(&(deny(expression) + geo));
        assert_eq!(found.len(), 1, "{expression}: {found:?}");
        assert!(found[0].contains("never has this value: "), "{found:?}");
    }
    let fine = [
        r#"ip.src.country in {"DE" "T1"}"#,
        r#"ip.src.continent eq "EU""#,
        r#"http.request.method eq "POST""#,
        r#"http.request.version eq "HTTP/1.1""#,
        r#"http.request.uri.path eq "/a/%2Fb""#,
        r#"starts_with(http.request.uri.path, "/.well-known/")"#,
        r#"starts_with(http.request.uri.path, "/a%2")"#,
        r#"starts_with(http.request.uri.path, "/a%2F")"#,
        r#"http.request.uri.path contains "login""#,
        r#"http.request.uri.path wildcard "*.php""#,
        r#"http.host wildcard "*.example.com""#,
        r#"http.host eq "[2001:db8::1]""#,
        r#"tls.version eq "TLSv1.3""#,
        r#"tls.cipher eq "TLS_AES_128_GCM_SHA256""#,
        r#"tls.ja4 eq "t13d1516h2_8daaf6152771_02713d6af862""#,
        r#"http.request.uri.path.extension eq "php""#,
        r#"lower(http.request.method) eq "get""#,
    ];
    for expression in fine {
        none(&(deny(expression) + geo));
    }
    let status = format!("count = 'http.response.code in {{4 404}}'\n{PATH}key = [\"ip.src\"]");
    only(
        &rule(&status),
        "`http.response.code` never has this value: its range is 100 to 599",
    );
}

#[test]
fn headers_that_are_empty_or_missing() {
    let message = "`http.user_agent` is missing, not empty, if the header was not sent";
    for test in [
        r#"http.user_agent eq """#,
        r#"not http.user_agent in {"-" ""}"#,
    ] {
        only(&deny(test), message);
    }
    for test in [
        r#"http.user_agent ne """#,
        r#"http.user_agent eq "-""#,
        "not len(http.user_agent) gt 0",
        r#"http.request.headers["x"][0] eq """#,
        r#"http.request.uri.query eq """#,
    ] {
        none(&deny(test));
    }
}

proptest! {
    #[test]
    fn any_value_is_checked_without_a_panic(value in "[ -~]{0,12}", field in 0usize..8) {
        let fields = [
            "http.host", "http.request.uri.path", "ip.src.country", "tls.version", "tls.ja4",
            "http.request.version", "http.request.uri", "http.request.uri.path.extension",
        ];
        let value = value.replace(['\'', '"', '\\'], "");
        let file = deny(&format!("{} in {{\"{value}\" \"x\"}}", fields[field]));
        warnings(&file);
    }
}
