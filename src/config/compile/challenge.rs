//! `[challenge]`.

use http::HeaderValue;

use crate::config::file::ConfigFile;
use crate::decision::Action;
use crate::rules::RuleSet;
use crate::snapshot::ChallengeConfig;

/// Compiles the table. `None` without one. The gateway serves the path as soon as one of `rules` challenges.
pub fn challenge(file: &ConfigFile, rules: &RuleSet) -> Option<ChallengeConfig> {
    let written = file.challenge.as_ref()?;
    let path = &*written.path.value;
    let origins = written.origins.iter();
    let mut actions = rules.iter().map(|(_, rule)| rule.action);
    Some(ChallengeConfig {
        difficulty: written.difficulty.value,
        lifetime: u32::try_from(written.lifetime.value.as_secs()).unwrap_or(u32::MAX),
        path: path.into(),
        url: format!("{path}challenge").into(),
        origins: origins
            .filter_map(|origin| HeaderValue::from_str(&origin.value).ok())
            .collect(),
        is_served: actions.any(|action| action == Action::Challenge),
    })
}
