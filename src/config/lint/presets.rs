//! Warnings about presets: users that are not known, presets that count the same requests, and
//! rules that refuse customers before a preset could challenge them.

use super::implies::covers;
use super::keys::has;
use super::{LintCode, LintedRule, Warnings};
use crate::config::file::{ConfigFile, PresetKind, ProtectSettings};
use crate::decision::Action;
use crate::expr;
use crate::facts::fields::FieldSpread;

/// Warns about the presets of a file.
pub(super) fn warn(rules: &[LintedRule<'_>], file: &ConfigFile, warnings: &mut Warnings<'_>) {
    for (at, preset) in file.protect.iter().enumerate() {
        let earlier = file.protect.get(..at).unwrap_or_default();
        unknown_user(preset, warnings);
        known_by_registration(preset, file, warnings);
        whole_site(preset, warnings);
        overlap(preset, earlier, warnings);
        shadowed(preset, at, rules, file, warnings);
    }
    for rule in rules {
        user_key(rule, file, warnings);
    }
}

fn unknown_user(preset: &ProtectSettings, warnings: &mut Warnings<'_>) {
    if preset.kind != Some(PresetKind::Login) || preset.user.is_some() {
        return;
    }
    let message = "without the user of a login, guesses at one account are not counted together";
    warnings
        .at(LintCode::ProtectNoUser, &preset.span, message)
        .help("add `user_field = \"user\"`, `user_json = \"user\"` or `user = '…'`");
}

fn known_by_registration(preset: &ProtectSettings, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    if preset.kind != Some(PresetKind::Signup) {
        return;
    }
    let mut logins = (file.protect.iter()).filter(|one| one.kind == Some(PresetKind::Login));
    if preset.user.is_some() && preset.success.is_none() {
        unproven_registration(preset, logins.clone().next(), warnings);
    }
    if let Some(login) = logins.find(|login| login.user.is_none()) {
        let message = format!(
            "every registration is a known client of the preset `{}`",
            login.name.value
        );
        warnings
            .at(LintCode::ProtectKnownBySignup, &preset.span, message)
            .related(login.span.clone(), "this login knows no users")
            .help("add `user_field`, `user_json` or `user` to the login");
    }
}

/// Warns of a registration whose usual responses prove no account. A client that fills in the name of another user
/// would become known to that user.
fn unproven_registration(
    preset: &ProtectSettings,
    login: Option<&ProtectSettings>,
    warnings: &mut Warnings<'_>,
) {
    if let Some(login) = login {
        let message = format!(
            "a registration with another user's name makes a client known to that user of the preset `{}`, if its \
             response looks like a success",
            login.name.value
        );
        warnings
            .at(LintCode::ProtectKnownBySignup, &preset.span, message)
            .related(login.span.clone(), "this login spares clients that the user knows")
            .help(
                "set `success` to what only a completed registration returns, or remove the user from this preset",
            );
    }
}

/// Warns of pages that are every request: their share is always 1, so every new client meets the challenge.
fn whole_site(preset: &ProtectSettings, warnings: &mut Warnings<'_>) {
    if preset.kind != Some(PresetKind::Pages) || preset.strict.value {
        return;
    }
    let every = preset
        .path
        .iter()
        .find(|path| matches!(&*path.value, "*" | "/*"));
    if let Some(path) = every {
        let message = "images, scripts and styles count as pages too, so every new client is challenged after four requests";
        warnings
            .at(LintCode::ProtectWholeSite, &path.span, message)
            .help("list the paths of pages, such as `\"/product/*\"`, or set `strict = true`");
    }
}

fn overlap(preset: &ProtectSettings, earlier: &[ProtectSettings], warnings: &mut Warnings<'_>) {
    let other = earlier.iter().find(|other| {
        let same_kind = other.kind == preset.kind && other.method.value == preset.method.value;
        same_kind && share_a_host(preset, other) && share_a_path(preset, other)
    });
    if let Some(other) = other {
        let message = format!("the preset `{}` counts the same requests", other.name.value);
        warnings
            .at(LintCode::ProtectOverlap, &preset.span, message)
            .related(other.span.clone(), "this preset")
            .help("give each path to one preset: `path` can be a list");
    }
}

fn share_a_host(a: &ProtectSettings, b: &ProtectSettings) -> bool {
    let any = a.host.is_empty() || b.host.is_empty();
    any || (a.host.iter()).any(|one| b.host.iter().any(|other| one.value == other.value))
}

fn share_a_path(a: &ProtectSettings, b: &ProtectSettings) -> bool {
    let meets = |one: &str, other: &str| match (one.strip_suffix('*'), other.strip_suffix('*')) {
        (Some(a), Some(b)) => a.starts_with(b) || b.starts_with(a),
        (Some(prefix), None) => other.starts_with(prefix),
        (None, Some(prefix)) => one.starts_with(prefix),
        (None, None) => one == other,
    };
    (a.path.iter()).any(|one| b.path.iter().any(|other| meets(&one.value, &other.value)))
}

/// Warns of a limit on a shared key that refuses the requests of a preset before the preset sees them.
fn shadowed(
    preset: &ProtectSettings,
    at: usize,
    rules: &[LintedRule<'_>],
    file: &ConfigFile,
    warnings: &mut Warnings<'_>,
) {
    let Ok(requests) = expr::outline(&preset.protected().value) else {
        return;
    };
    let slot = file.presets.iter().find(|one| one.index == at);
    let slot = slot.map_or(0, |preset| preset.slot);
    let is_before = |rule: &LintedRule<'_>| {
        let mut names = file.written_rules().take(slot);
        names.any(|other| other.name.value == rule.written.name.value)
    };
    let shadows = |rule: &&LintedRule<'_>| {
        let refuses = matches!(rule.rule.action, Action::Block | Action::Shadow);
        let mut parts = rule.rule.key.parts.iter();
        let is_shared = !parts.any(|part| has(part, FieldSpread::PerClient));
        let is_written = file.preset_of(rule.written).is_none();
        refuses
            && is_written
            && rule.limits()
            && is_shared
            && is_before(rule)
            && rule.stops().is_some_and(|stops| covers(stops, &requests))
    };
    if let Some(rule) = rules.iter().find(shadows) {
        let message = format!(
            "the rule `{}` stands before this preset and refuses known clients too",
            rule.written.name.value
        );
        warnings
            .at(LintCode::ProtectShadowed, &preset.span, message)
            .related(rule.written.name.span.clone(), "many clients share its key")
            .help(format!(
                "write `before = \"{}\"`, or remove the rule",
                rule.written.name.value
            ));
    }
}

/// Warns of a key by user that does not say what happens to requests without a user.
fn user_key(rule: &LintedRule<'_>, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let written = rule.written;
    let is_default = written.missing.span == written.span;
    if !is_default || file.preset_of(written).is_some() {
        return;
    }
    let users: Vec<String> = file
        .protect
        .iter()
        .filter_map(|preset| preset.user_key())
        .map(|user| user.value)
        .collect();
    let of_user = written
        .key
        .iter()
        .find(|part| users.iter().any(|user| *user == part.value.trim()));
    if let Some(part) = of_user {
        let message = "requests without a user share one counter of this rule";
        warnings
            .at(LintCode::UserKeyNoMissing, &part.span, message)
            .help("write `missing = \"group\"` if they should, or `missing = \"skip\"`");
    }
}
