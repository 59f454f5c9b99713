//! The tables that presets imply: `[challenge]` with all defaults, and `[known_clients]` with the
//! lifetime of the presets. A table that is written takes precedence.

use crate::config::Diagnostics;
use crate::config::file::{ChallengeSettings, ConfigFile, KnownClientSettings};

/// Adds the implied tables. Reports a written table that contradicts the presets or has no source.
pub fn tables(file: &mut ConfigFile, out: &mut Diagnostics) {
    if file.challenge.is_none() {
        file.challenge = challenge(file);
    }
    match &file.known_clients {
        Some(known) => check(file, known, out),
        None => file.known_clients = known_clients(file),
    }
}

/// Returns `[challenge]` if a preset challenges.
fn challenge(file: &ConfigFile) -> Option<ChallengeSettings> {
    let mut presets = file.presets.iter();
    let challenging = presets.find(|preset| preset.rules.iter().any(|rule| rule.challenges()))?;
    let written = file.protect.get(challenging.index)?;
    Some(ChallengeSettings::implied(written.span.clone()))
}

/// Returns `[known_clients]` if there is a preset: all presets read whether a client is known.
fn known_clients(file: &ConfigFile) -> Option<KnownClientSettings> {
    let first = file.presets.iter().map(|preset| preset.index).min()?;
    let mut known = KnownClientSettings::implied(file.protect.get(first)?.span.clone());
    let lifetime = file.protect.iter().find_map(|preset| preset.known.as_ref());
    if let Some(lifetime) = lifetime {
        known.lifetime = lifetime.clone();
    }
    Some(known)
}

/// Checks a written `[known_clients]` against the presets.
fn check(file: &ConfigFile, known: &KnownClientSettings, out: &mut Diagnostics) {
    let written = file
        .protect
        .iter()
        .filter_map(|preset| preset.known.as_ref());
    for preset in written.filter(|own| own.value != known.lifetime.value) {
        let message = "`known` and `lifetime` of `[known_clients]` differ";
        out.error(preset.span.clone(), message)
            .related(known.lifetime.span.clone(), "the other lifetime")
            .help("the cookie has one lifetime: remove `known`, and set `lifetime` in `[known_clients]`");
    }
    let has_source = file.presets.iter().any(|preset| preset.source.is_some());
    if known.lacks_success && !has_source {
        out.lacks(known.span.clone(), "`success` is missing").help(
            "for example `success = 'http.request.method eq \"POST\" and http.response.code eq 302'`",
        );
    }
}
