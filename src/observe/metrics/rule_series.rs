//! The series of rules: created when a configuration is built, removed when a rule is gone.

use super::{CandidateDivergence, Metrics, RuleMetrics, RuleUsage};
use crate::decision::Action;

// === impl Metrics ===

impl Metrics {
    /// Returns the handles of a rule and creates its series. A rule of this name keeps its values. `candidate`
    /// is set if the rule has one.
    pub fn rule(&self, name: &str, action: &'static str, candidate: bool) -> RuleMetrics {
        let (all, rule) = (&self.families, ("rule", name));
        let matched = |phase| all.rule_matched.series(&[rule, ("phase", phase)]);
        let divergence = |live, candidate| {
            let labels = [rule, ("live", live), ("candidate", candidate)];
            all.rule_divergence.series(&labels)
        };
        RuleMetrics {
            matched_count: matched("count"),
            matched_mitigate: matched("mitigate"),
            mitigated: all.rule_mitigated.series(&[rule, ("action", action)]),
            would_mitigate: all.rule_would_mitigate.series(&[rule]),
            divergence: candidate.then(|| CandidateDivergence {
                mitigates: divergence("pass", "act"),
                admits: divergence("act", "pass"),
            }),
            challenges: (action == Action::Challenge.name()).then(|| all.challenges(name)),
            keys: all.store_keys.series(&[rule]),
            bans: all.bans.series(&[rule]),
            usage: None,
        }
    }

    /// Returns the handles of a rule without a key and creates its series. `has_ratio` is whether it has a total.
    pub fn rule_usage(&self, name: &str, has_ratio: bool) -> RuleUsage {
        let rule = [("rule", name)];
        RuleUsage {
            count: self.families.rule_count.series(&rule),
            total: has_ratio.then(|| self.families.rule_total.series(&rule)),
        }
    }

    /// Removes the series of [`Metrics::rule_usage`] except those of `counts` and `totals`.
    pub fn keep_usage(&self, counts: &[&str], totals: &[&str]) {
        let counts: Vec<[&str; 1]> = counts.iter().map(|name| [*name]).collect();
        let totals: Vec<[&str; 1]> = totals.iter().map(|name| [*name]).collect();
        self.families.rule_count.keep(&counts);
        self.families.rule_total.keep(&totals);
    }

    /// Removes the series of all rules except `names`.
    pub fn keep_rules(&self, names: &[&str]) {
        let names: Vec<[&str; 1]> = names.iter().map(|name| [*name]).collect();
        let all = &self.families;
        for family in [
            &all.rule_matched,
            &all.rule_mitigated,
            &all.rule_would_mitigate,
            &all.rule_divergence,
        ] {
            family.keep(&names);
        }
        all.store_keys.keep(&names);
        all.bans.keep(&names);
        let names: Vec<[&str; 1]> = names.into_iter().chain([[""]]).collect();
        all.challenges.keep(&names);
    }
}
