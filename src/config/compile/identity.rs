//! The identity of a rule across reloads and restarts, as a number.
//!
//! Counter snapshots contain these numbers. The names hashed here are therefore pinned: they are
//! defined only here and never change, even if variants are renamed.

use sha2::{Digest, Sha256};

use crate::config::file::RuleSettings;
use crate::config::limiter;
use crate::facts::client_ip::IpPrefixes;
use crate::limit::{Algorithm, Limiter};
use crate::rules::MissingPart;

/// Hashes the settings of a rule one by one.
#[derive(Default)]
struct IdentityHasher(Sha256);

/// Hashes `name`, `key`, `missing`, the IP prefixes, `period`, `algorithm`, `slices` and whether there is a ratio. A rule
/// keeps its counters and bans while these stay unchanged.
pub fn identity(rule: &RuleSettings, prefixes: IpPrefixes) -> u64 {
    let mut fields = IdentityHasher::default();
    fields.add(rule.name.value.as_bytes());
    for part in &rule.key {
        fields.add(part.value.trim().as_bytes());
    }
    fields.add(missing_name(rule.missing.value).as_bytes());
    fields.add(&[prefixes.v4, prefixes.v6]);
    if let Some(limiter) = limiter::of(rule) {
        fields.add_counting(&limiter);
    }
    fields.number()
}

/// Hashes the candidate limiter of the rule with the identity `of_rule`.
pub fn of_candidate(of_rule: u64, limiter: &Limiter) -> u64 {
    let mut fields = IdentityHasher::default();
    fields.add(&of_rule.to_le_bytes());
    fields.add(b"candidate");
    fields.add_counting(limiter);
    fields.number()
}

// === impl IdentityHasher ===

impl IdentityHasher {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn add_counting(&mut self, limiter: &Limiter) {
        self.add(algorithm_name(limiter.algorithm).as_bytes());
        self.add(&limiter.period.as_nanos().to_le_bytes());
        self.add(&limiter.slices.to_le_bytes());
        if limiter.ratio.is_some() {
            self.add(b"ratio");
        }
    }

    fn number(self) -> u64 {
        let digest = self.0.finalize();
        digest
            .first_chunk::<8>()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

const fn missing_name(missing: MissingPart) -> &'static str {
    match missing {
        MissingPart::Group => "Group",
        MissingPart::Skip => "Skip",
    }
}

const fn algorithm_name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::SlidingWindow => "SlidingWindow",
        Algorithm::FixedWindow => "FixedWindow",
        Algorithm::SlidingLog => "SlidingLog",
        Algorithm::TokenBucket => "TokenBucket",
        Algorithm::LeakyBucket => "LeakyBucket",
        Algorithm::Gcra => "Gcra",
        Algorithm::Concurrency => "Concurrency",
    }
}
