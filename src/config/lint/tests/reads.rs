//! Warnings of fields that are missing or that clients can forge.

use super::{PATH, PLAIN, TLS, deny, none, only, rule, warnings};

#[test]
fn fields_that_are_always_missing() {
    let asn = deny("ip.geoip.asnum eq 1");
    only(
        &asn,
        "`ip.geoip.asnum` is always missing: no database provides it",
    );
    none(&format!(
        "{asn}[geo.overrides]\n\"203.0.113.0/24\" = {{ asn = 1 }}\n"
    ));
    let key = rule(&format!("{PATH}key = [\"ip.src.country\"]"));
    only(
        &key,
        "`ip.src.country` is always missing: no database provides it",
    );
    let ja4 = deny("len(tls.ja4) gt 1");
    only(
        &ja4.replace(TLS, PLAIN),
        "`tls.ja4` is always missing: no listener uses TLS",
    );
    none(&ja4);
    let ssl = deny("ssl");
    only(
        &ssl.replace(TLS, PLAIN),
        "`ssl` is always false: no listener uses TLS",
    );
    none(&ssl);
    for (field, what) in [("verified", "false"), ("fingerprint", "missing")] {
        let test = match field {
            "verified" => "tls.client.verified".to_owned(),
            field => format!("len(tls.client.{field}) gt 1"),
        };
        only(
            &deny(&test).replace(TLS, PLAIN),
            &format!("`tls.client.{field}` is always {what}: no listener uses TLS"),
        );
    }
}

#[test]
fn a_name_in_a_string_is_not_a_field() {
    none(&format!(
        "{PLAIN}[[rules]]\nname = \"r\"\nmitigate = 'http.host contains \"ip.src.asnum tls.ja4\"'\n"
    ));
}

#[test]
fn values_that_clients_can_forge() {
    only(
        &deny(r#"raw.http.request.uri.path eq "/a""#),
        "other spellings of the same path bypass this test, such as `/%6cogin`",
    );
    none(&deny(r#"raw.http.request.uri.path contains "//""#));
    only(
        &deny(r#"http.x_forwarded_for contains "10.""#),
        "clients can send any value in `X-Forwarded-For`",
    );
}

#[test]
fn ne_is_false_for_a_missing_value() {
    let message = "`ne` is false if the value is missing; on Cloudflare it is true";
    only(
        &deny(r#"http.request.headers["x-key"][0] ne "s3cret""#),
        message,
    );
    only(&deny(r#"http.user_agent != "curl" and ssl"#), message);
    none(&deny(r#"not http.request.headers["x-key"][0] eq "s3cret""#));
    none(&deny(r#"http.request.method ne "GET""#));
    none(&deny(r#"http.request.uri.path ne "/a""#));
}

#[test]
fn arguments_are_compared_decoded() {
    let message = "arguments are compared decoded: `+` is a space and `%41` is `A`";
    only(
        &deny(r#"http.request.uri.args["q"][0] eq "red+apples""#),
        message,
    );
    only(
        &deny(r#"any(http.request.uri.args["q"][*] in {"a" "%41"})"#),
        message,
    );
    none(&deny(r#"http.request.uri.args["q"][0] eq "red apples""#));
}

#[test]
fn tokens_that_are_not_verified() {
    let message = "`jwt_claim` does not verify the token: any client can forge one";
    let claim = "jwt_claim(http.request.headers[\"authorization\"][0], \"sub\")";
    only(&deny(&format!("{claim} eq \"a\"")), message);
    let chosen = "clients can choose this key: each new value starts a new counter";
    let found = warnings(&rule(&format!("{PATH}key = ['{claim}']")));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|m| m == message) && found.iter().any(|m| m == chosen));
}
