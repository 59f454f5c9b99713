//! Checks between `[challenge]` and the rest of a file.

use super::Diagnostics;
use super::file::{ChallengeSettings, ConfigFile, RuleSettings};
use crate::decision::Action;

/// Checks that clients of challenge rules can solve challenges, and that no route hides their path.
pub(super) fn check(file: &ConfigFile, out: &mut Diagnostics) {
    if let Some(rule) = file.rules.iter().find(|rule| challenges(rule)) {
        has_table(file, rule, out);
        can_be_secure(file, rule, out);
    }
    if let Some(challenge) = &file.challenge {
        routes_are_free(file, challenge, out);
        presets_are_free(file, challenge, out);
    }
}

fn challenges(rule: &RuleSettings) -> bool {
    rule.action.value == Action::Challenge
}

fn has_table(file: &ConfigFile, rule: &RuleSettings, out: &mut Diagnostics) {
    if file.challenge.is_none() {
        let message = "`action = \"challenge\"` needs the table `[challenge]`";
        out.lacks(rule.action.span.clone(), message)
            .help("add a line `[challenge]`; all its settings have defaults");
    }
}

/// Browsers solve challenges only on secure connections.
fn can_be_secure(file: &ConfigFile, rule: &RuleSettings, out: &mut Diagnostics) {
    let has_tls = file.listeners.iter().any(|listener| listener.tls.is_some());
    if has_tls || file.listeners.is_empty() || !file.client_ip.trusted_proxies.is_empty() {
        return;
    }
    let message = "no client can solve a challenge: no listener has TLS";
    out.lacks(rule.action.span.clone(), message).help(
        "add `[listeners.tls]`; or, behind a proxy that terminates TLS and sets `x-forwarded-proto`, \
         list it in `client_ip.trusted_proxies`",
    );
}

fn routes_are_free(file: &ConfigFile, challenge: &ChallengeSettings, out: &mut Diagnostics) {
    let reserved = &*challenge.path.value;
    for path in file.routes.iter().filter_map(|route| route.path.as_ref()) {
        if path.value.starts_with(reserved) {
            let message =
                format!("no request reaches this route: `{reserved}` is reserved for challenges");
            out.error(path.span.clone(), message)
                .related(challenge.path.span.clone(), "reserved here")
                .help("use another path for the route, or set `challenge.path`");
        }
    }
}

/// Requests for the path of challenges reach no rule, so no preset can protect it.
fn presets_are_free(file: &ConfigFile, challenge: &ChallengeSettings, out: &mut Diagnostics) {
    let reserved = &*challenge.path.value;
    let paths = file
        .protect
        .iter()
        .flat_map(|preset| preset.path.iter().chain(&preset.actions));
    for path in paths.filter(|path| path.value.starts_with(reserved)) {
        let message =
            format!("no rule sees these requests: `{reserved}` is reserved for challenges");
        out.error(path.span.clone(), message)
            .related(challenge.path.span.clone(), "reserved here")
            .help("use the path of your application, or set `challenge.path`");
    }
}
