//! Warnings of rules at the wrong position.

use super::{PATH, TLS, none, only};

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
fn a_quota_behind_a_pretence() {
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
fn a_rule_that_stops_everything() {
    let message = "this rule has no limit and mitigates every request";
    let deny = |beside: &str| format!("[[rules]]\nname = \"all\"\nmitigate = 'true'\n{beside}\n");
    only(&format!("{TLS}{}", deny("")), message);
    only(&format!("{TLS}{}", deny("action = \"close\"")), message);
    for beside in [
        "action = \"allow\"",
        "action = \"log\"",
        "dry_run = true",
        "enabled = false",
    ] {
        none(&format!("{TLS}{}", deny(beside)));
    }
    let page = "[responses.closed]\nstatus = 503\nbody = \"back at noon\"\n";
    none(&format!("{TLS}{}{page}", deny("response = \"closed\"")));
    let allow = format!("[[rules]]\nname = \"own\"\naction = \"allow\"\n{PATH}");
    none(&format!("{TLS}{allow}{}", deny("")));
}
