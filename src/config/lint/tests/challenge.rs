//! Warnings about challenges.

use super::known_clients::secret;
use super::{PLAIN, TLS, none, only, warnings};

const TABLE: &str = "[challenge]\n";

fn challenge(expression: &str, beside: &str) -> String {
    format!(
        "{TABLE}[[rules]]\nname = \"r\"\nmitigate = '{expression}'\naction = \"challenge\"\n{beside}\n"
    )
}

fn per_clearance(expression: &str) -> String {
    format!(
        "[[rules]]\nname = \"c\"\nmitigate = '{expression}'\naction = \"challenge\"\nlimit = 3\nperiod = \"1h\"\n\
         duration = \"1h\"\nkey = [\"client.clearance\"]\nmissing = \"skip\"\n"
    )
}

const LOGIN: &str = r#"http.request.uri.path eq "/login""#;
const ALSO: &str = r#"http.request.method eq "POST" and http.request.uri.path in {"/login" "/x"}"#;
const OTHER: &str = r#"http.request.uri.path eq "/other""#;

#[test]
fn a_challenge_without_a_limit_for_clearances() {
    let message = "one solution passes this rule for as long as the clearance is valid, for any number of bots";
    only(&format!("{TLS}{}", challenge(LOGIN, "")), message);
    let beside = |other: &str| format!("{TLS}{}{}", challenge(LOGIN, ""), per_clearance(other));
    only(&beside(OTHER), message);
    let dry = format!("{}dry_run = true\n", per_clearance(LOGIN));
    only(&format!("{TLS}{}{dry}", challenge(LOGIN, "")), message);
    let preset = |lines: &str| {
        format!(
            "{TLS}[server]\n{}\n[[protect]]\nkind = \"pages\"\npath = \"/p/*\"\n{lines}\n",
            secret()
        )
    };
    none(&preset(""));
    only(&preset("rules.clearance = { enabled = false }"), message);
    only(&preset("rules.clearance = { dry_run = true }"), message);
    none(&beside(LOGIN));
    none(&beside(ALSO));
    none(&beside(r#"http.request.method eq "POST""#));
    none(&format!("{TLS}{}", challenge(LOGIN, "dry_run = true")));
    none(&format!("{TLS}{TABLE}{}", per_clearance(LOGIN)));
}

#[test]
fn a_challenge_of_an_api() {
    let message = "clients of an API see no page: only apps that call `solve()` get through";
    let both = |path: &str| {
        let expression = format!("starts_with(http.request.uri.path, \"{path}\")");
        format!(
            "{TLS}{}{}",
            challenge(&expression, ""),
            per_clearance(r#"ssl"#)
        )
    };
    only(&both("/api/"), message);
    only(&both("/api/v1/login"), message);
    none(&both("/apiary/"));
    none(&both("/login"));
}

#[test]
fn a_challenge_on_a_plain_listener() {
    let message = "this rule acts as `block` for requests to a listener without TLS";
    let rules = format!("{}{}", challenge(LOGIN, ""), per_clearance(LOGIN));
    assert_eq!(
        warnings(&format!("{PLAIN}{TLS}{rules}")),
        [message, message]
    );
    none(&format!("{TLS}{rules}"));
    let proxies = "[client_ip]\ntrusted_proxies = [\"10.0.0.0/8\"]\n";
    none(&format!("{PLAIN}{proxies}{rules}"));
}

#[test]
fn what_harms_with_block_does_not_with_challenge() {
    let site = "limit = 30\nperiod = \"1m\"\nduration = \"10m\"";
    let rules = |beside| format!("{TLS}{}{}", challenge(LOGIN, beside), per_clearance(LOGIN));
    none(&rules(site));
    none(&rules(
        "limit = 30\nperiod = \"1m\"\nduration = \"10m\"\nkey = [\"tls.ja4\"]",
    ));
    let strict = format!("{TLS}{}{}", challenge("true", ""), per_clearance(LOGIN));
    none(&strict);
}
