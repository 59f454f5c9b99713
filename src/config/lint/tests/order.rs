//! Warnings of rules at the wrong position.

use super::{GUARD, PATH, TLS, none, only, rule, warnings};

/// A rule with a shadow response on one path.
fn shadow(beside: &str) -> String {
    format!(
        "[[rules]]\nname = \"quiet\"\nlimit = 3\nperiod = \"1m\"\nkey = [\"ip.src\"]\n{PATH}{beside}\n"
    )
}

/// A limit on all paths.
fn site(beside: &str) -> String {
    let every = "mitigate = 'starts_with(http.request.uri.path, \"/\")'";
    format!(
        "[[rules]]\nname = \"site\"\nlimit = 100\nperiod = \"1m\"\nkey = [\"ip.src\"]\n{every}\n{beside}\n"
    )
}

#[test]
fn quota_headers_that_reveal_a_shadow_response() {
    let message = "the quota headers of this rule reveal the shadow responses of rule `quiet`";
    let upstream = "[[upstreams]]\nname = \"trap\"\nservers = [\"127.0.0.1:9\"]\n";
    let quiet = "action = \"shadow\"";
    only(&format!("{TLS}{}{}", shadow(quiet), site("")), message);
    let divert = shadow("action = \"divert\"\nupstream = \"trap\"");
    only(&format!("{TLS}{upstream}{divert}{}", site("")), message);
    none(&format!("{TLS}{}{}", site(""), shadow(quiet)));
    none(&format!("{TLS}{}{}", shadow(""), site("")));
    for beside in ["headers = \"none\"", "dry_run = true", "action = \"log\""] {
        none(&format!("{TLS}{}{}", shadow(quiet), site(beside)));
    }
    none(&format!(
        "{TLS}{}{}",
        shadow(&format!("{quiet}\ndry_run = true")),
        site("")
    ));
    let other = "count = 'http.request.uri.path eq \"/b\"'";
    none(&format!("{TLS}{}{}", shadow(quiet), site(other)));
}

#[test]
fn a_rule_that_mitigates_every_request() {
    let message = "this rule has no limit and mitigates every request";
    let deny = |beside: &str| format!("[[rules]]\nname = \"all\"\nmitigate = 'true'\n{beside}\n");
    only(&format!("{TLS}{}", deny("")), message);
    only(&format!("{TLS}{}", deny("action = \"close\"")), message);
    for beside in ["action = \"log\"", "dry_run = true", "enabled = false"] {
        none(&format!("{TLS}{}", deny(beside)));
    }
    let page = "[responses.closed]\nstatus = 503\nbody = \"back at noon\"\n";
    none(&format!("{TLS}{}{page}", deny("response = \"closed\"")));
    let allow = format!("[[rules]]\nname = \"own\"\naction = \"allow\"\n{PATH}");
    none(&format!("{TLS}{allow}{}", deny("")));
}

#[test]
fn an_exemption_without_a_later_rule() {
    let message = "this `allow` rule has no effect: no rule follows it";
    let allow = format!("{TLS}[[rules]]\nname = \"own\"\naction = \"allow\"\n{PATH}");
    only(&allow, message);
    only(
        &format!(
            "{allow}{GUARD}key = [\"ip.src\"]\nmitigate = 'http.host eq \"b\"'\nenabled = false\n"
        ),
        message,
    );
    none(&format!(
        "{allow}{GUARD}key = [\"ip.src\"]\nmitigate = 'http.host eq \"b\"'\n"
    ));
}

#[test]
fn quota_headers_of_failed_logins() {
    let message = "the quota headers of each failed login tell an attacker the limit and how many guesses remain";
    let counts = |codes: &str, lines: &str| {
        let count = format!("count = 'http.host eq \"a\" and http.response.code {codes}'");
        rule(&format!("{count}\n{PATH}key = [\"ip.src\"]\n{lines}"))
    };
    only(&counts("in {401 403}", ""), message);
    only(&counts("eq 401", "headers = \"legacy\""), message);
    none(&counts("in {401 403}", "headers = \"none\""));
    none(&counts("in {401 403}", "dry_run = true"));
    none(&counts("in {401 403}", "action = \"shadow\""));
    none(&counts("in {400..499}", ""));
    none(&counts("ne 401", ""));
}

#[test]
fn a_rule_that_an_earlier_rule_makes_unreachable() {
    let two = |first: &str, rest: &str, second: &str| {
        format!(
            "{TLS}[[rules]]\nname = \"first\"\nmitigate = '{first}'\n{rest}\n\
             [[rules]]\nname = \"second\"\nmitigate = '{second}'\n"
        )
    };
    let hidden = "this rule never takes effect: the earlier rule `first` matches all its requests";
    let all = "this rule never takes effect: the earlier rule `first` matches every request";
    let path = "http.request.uri.path";
    for (first, second, expected) in [
        ("ssl", "ssl", Some(hidden)),
        ("true", "ssl", Some(all)),
        ("ssl or not ssl", "http.host eq \"a\"", Some(all)),
        (&format!("starts_with({path}, \"/\")"), "ssl", Some(all)),
        (
            &format!("starts_with({path}, \"/a\")"),
            &format!("{path} eq \"/ab\" and ssl"),
            Some(hidden),
        ),
        (
            &format!("starts_with({path}, \"/ab\")"),
            &format!("{path} eq \"/a\""),
            None,
        ),
        (
            &format!("{path} in {{\"/a\" \"/b\"}}"),
            &format!("{path} eq \"/b\""),
            Some(hidden),
        ),
        (
            &format!("{path} eq \"/b\""),
            &format!("{path} in {{\"/a\" \"/b\"}}"),
            None,
        ),
        (
            "ip.src in {10.0.0.0/8}",
            "ip.src in {10.1.0.0/16 10.2.3.4}",
            Some(hidden),
        ),
        ("ip.src in {10.1.0.0/16}", "ip.src in {10.0.0.0/8}", None),
        ("ssl and http.host eq \"a\"", "http.host eq \"a\"", None),
        (
            "http.host eq \"a\" or ssl",
            "ssl and http.host eq \"b\"",
            Some(hidden),
        ),
        (
            "http.request.body.size gt 10",
            "http.request.body.size in {11..20}",
            Some(hidden),
        ),
        (
            "not http.host eq \"a\"",
            "not http.host in {\"a\" \"b\"}",
            Some(hidden),
        ),
        (
            &format!("not starts_with({path}, \"/a\")"),
            &format!("{path} in {{\"/b\" \"/c\"}} and ssl"),
            Some(hidden),
        ),
        (
            &format!("not starts_with({path}, \"/a\")"),
            &format!("{path} in {{\"/ab\" \"/c\"}}"),
            None,
        ),
        (
            "not http.host in {\"a\" \"b\"}",
            "not http.host eq \"a\"",
            None,
        ),
    ] {
        let file = two(first, "action = \"allow\"", second);
        assert_eq!(
            warnings(&file),
            expected.into_iter().collect::<Vec<_>>(),
            "{file}"
        );
    }
    none(&two("ssl", "dry_run = true", "ssl"));
    none(&two("ssl", "action = \"log\"", "ssl"));
    none(&two("ssl", "enabled = false", "ssl"));
    none(&two(
        "ssl",
        "limit = 1\nperiod = \"1s\"\nkey = [\"ip.src\"]",
        "ssl",
    ));
}
