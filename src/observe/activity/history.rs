//! The last 15 minutes in steps of five seconds. Each step takes `12 + 2 × rules` numbers of four bytes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::action_class::ActionClass;
use crate::clock::Timestamp;

/// The length of a step.
pub const STEP: Duration = Duration::from_secs(5);
/// The number of steps.
pub const STEPS: usize = 180;

/// The last 15 minutes.
#[derive(Debug, Default)]
pub(super) struct History {
    actions: [StepRing; ActionClass::COUNT],
    rules: HashMap<Arc<str>, RuleRings>,
    /// The time since the newest step began.
    age: Duration,
}

/// The requests of a rule.
#[derive(Debug, Default)]
struct RuleRings {
    matched: StepRing,
    mitigated: StepRing,
}

/// One number for each step. The newest is at `newest`, the others follow backwards, in a circle.
#[derive(Debug)]
struct StepRing {
    steps: Box<[f32; STEPS]>,
    newest: usize,
}

/// A part of the history. Each list has one rate per step, oldest first. The last step is incomplete.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryView {
    /// The start of the first step.
    pub start: Timestamp,
    /// The requests per second of each class, in the order of [`ActionClass::ALL`].
    pub actions_per_s: Vec<Vec<f32>>,
    /// The rates of each rule.
    pub rules: Vec<RuleHistory>,
}

/// The history of one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleHistory {
    /// The name of the rule.
    pub name: Arc<str>,
    /// The requests per second that it matched.
    pub matched_per_s: Vec<f32>,
    /// The requests per second that it mitigated; for a dry run, that it would have mitigated.
    pub mitigated_per_s: Vec<f32>,
}

/// The requests of a rule since the previous tick.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RuleStep {
    pub(super) name: Arc<str>,
    pub(super) matched: u64,
    /// For a dry run, the requests that it would have mitigated.
    pub(super) mitigated: u64,
}

// === impl History ===

impl History {
    /// Adds the requests of the time `elapsed` since the previous call. Other rules than `rules` are forgotten.
    pub(super) fn add(
        &mut self,
        actions: &[u64; ActionClass::COUNT],
        rules: &[RuleStep],
        elapsed: Duration,
    ) {
        self.age += elapsed;
        let passed = self.age.as_nanos() / STEP.as_nanos();
        self.age -= STEP * u32::try_from(passed).unwrap_or(u32::MAX);
        let passed = usize::try_from(passed).unwrap_or(STEPS).min(STEPS);
        for (ring, count) in self.actions.iter_mut().zip(actions) {
            ring.add(*count, passed);
        }
        let names: HashSet<&str> = rules.iter().map(|rule| &*rule.name).collect();
        self.rules.retain(|name, _| names.contains(&**name));
        for rule in rules {
            let rings = self.rules.entry(rule.name.clone()).or_default();
            rings.matched.add(rule.matched, passed);
            rings.mitigated.add(rule.mitigated, passed);
        }
    }

    /// Returns the last `seconds` seconds at `now`, in whole steps. Rules come in alphabetical order.
    pub(super) fn view(&self, seconds: u64, now: Timestamp) -> HistoryView {
        let steps = usize::try_from(seconds.div_ceil(STEP.as_secs())).unwrap_or(STEPS);
        let steps = steps.clamp(1, STEPS);
        let before = STEP * (steps as u32 - 1) + self.age;
        let rates = |ring: &StepRing| ring.rates(steps, self.age);
        let mut rules: Vec<_> = self.rules.iter().collect();
        rules.sort_unstable_by_key(|(name, _)| *name);
        let rules = rules.into_iter().map(|(name, rings)| RuleHistory {
            name: name.clone(),
            matched_per_s: rates(&rings.matched),
            mitigated_per_s: rates(&rings.mitigated),
        });
        HistoryView {
            start: Timestamp::from_nanos(
                u64::try_from(before.as_nanos())
                    .map_or(0, |before| now.as_nanos().saturating_sub(before)),
            ),
            actions_per_s: self.actions.iter().map(rates).collect(),
            rules: rules.collect(),
        }
    }

    /// Returns the requests per second that a rule mitigated in each step of the first quarter of the history. Empty for
    /// an unknown rule.
    pub(super) fn first_quarter(&self, rule: &str) -> Vec<f32> {
        let rings = self.rules.get(rule);
        let mut rates = rings.map_or_else(Vec::new, |rings| rings.mitigated.rates(STEPS, self.age));
        rates.truncate(STEPS / 4);
        rates
    }

    /// Removes the history of all rules except `names`.
    pub(super) fn keep_rules(&mut self, names: &[&str]) {
        self.rules.retain(|name, _| names.contains(&&**name));
    }
}

// === impl StepRing ===

impl StepRing {
    /// Starts `passed` new steps and adds `count` to the newest one.
    fn add(&mut self, count: u64, passed: usize) {
        for _ in 0..passed {
            self.newest = (self.newest + 1) % STEPS;
            if let Some(step) = self.steps.get_mut(self.newest) {
                *step = 0.0;
            }
        }
        if let Some(step) = self.steps.get_mut(self.newest) {
            *step += count as f32;
        }
    }

    /// Returns the newest `steps` as rates per second, oldest first. The newest step has lasted for `age`.
    fn rates(&self, steps: usize, age: Duration) -> Vec<f32> {
        let oldest = self.newest + STEPS + 1 - steps;
        let counts = (oldest..oldest + steps).map(|index| self.steps.get(index % STEPS));
        let mut rates: Vec<f32> = counts
            .map(|count| count.copied().unwrap_or_default() / STEP.as_secs_f32())
            .collect();
        if let Some(last) = rates.last_mut() {
            *last *= STEP.as_secs_f32() / age.as_secs_f32().max(1.0);
        }
        rates
    }
}

impl Default for StepRing {
    fn default() -> Self {
        Self {
            steps: Box::new([0.0; STEPS]),
            newest: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NOW: Timestamp = Timestamp::from_secs(10_000);

    fn blocks(count: u64) -> [u64; ActionClass::COUNT] {
        let mut actions = [0; ActionClass::COUNT];
        actions[ActionClass::Block.index()] = count;
        actions
    }

    fn step(name: &str, matched: u64, mitigated: u64) -> RuleStep {
        RuleStep {
            name: name.into(),
            matched,
            mitigated,
        }
    }

    #[test]
    fn each_step_has_the_rate_of_five_seconds() {
        let mut history = History::default();
        for second in 1..=12 {
            history.add(
                &blocks(second),
                &[step("b", 10, 1), step("a", 0, 0)],
                SECOND,
            );
        }
        let view = history.view(15, NOW);
        assert_eq!(view.start, Timestamp::from_secs(10_000 - 12));
        let blocked = &view.actions_per_s[ActionClass::Block.index()];
        // A tick is counted in the step in which it ends: 1 to 4, 5 to 9, and 10 to 12 within 2 s.
        assert_eq!(**blocked, [2.0, 7.0, 16.5]);
        let names: Vec<&str> = view.rules.iter().map(|rule| &*rule.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(view.rules[1].matched_per_s[1], 10.0);
        assert_eq!(view.rules[1].mitigated_per_s[1], 1.0);
    }

    #[test]
    fn the_history_covers_15_minutes_and_forgets_what_is_older() {
        let mut history = History::default();
        history.add(&blocks(500), &[], SECOND);
        assert_eq!(history.view(900, NOW).actions_per_s[0].len(), STEPS);
        assert_eq!(history.view(90_000, NOW).actions_per_s[0].len(), STEPS);
        assert_eq!(history.view(1, NOW).actions_per_s[0].len(), 1);
        let sum = |history: &History| {
            let view = history.view(900, NOW);
            view.actions_per_s.into_iter().flatten().sum::<f32>()
        };
        assert_eq!(sum(&history), 500.0);
        assert!(history.first_quarter("unknown").is_empty());
        history.add(&blocks(0), &[], STEP * 100);
        assert_eq!(sum(&history), 100.0);
        history.add(&blocks(0), &[], STEP * 100);
        assert_eq!(sum(&history), 0.0);
    }

    #[test]
    fn a_rule_that_is_removed_has_no_history() {
        let mut history = History::default();
        history.add(&blocks(0), &[step("a", 5, 5), step("b", 5, 5)], SECOND);
        history.keep_rules(&["b"]);
        assert_eq!(history.view(5, NOW).rules.len(), 1);
        history.add(&blocks(0), &[step("b", 0, 0)], SECOND);
        assert_eq!(history.view(5, NOW).rules[0].matched_per_s, [2.5]);
        history.add(&blocks(0), &[], SECOND);
        assert!(history.view(5, NOW).rules.is_empty());
    }
}
