//! The naive model: for each rule and key a list of moments and the end of a ban. Every wait is
//! found by trying one second after the other.

use std::collections::HashMap;
use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::decision::{Action, Credit, Decision, Quota, RuleIndex, Verdict};

use super::{Ask, By, Case, Counts, PERIOD};

/// Rules with all that they remember.
#[derive(Clone)]
pub struct Naive {
    rules: Vec<Case>,
    keys: HashMap<(usize, String), Known>,
}

/// What is remembered of a key.
#[derive(Clone, Default)]
struct Known {
    charged: Vec<Timestamp>,
    banned: Option<Timestamp>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    verdict: Verdict,
    credit: Option<Credit>,
    quotas: Vec<Quota>,
    tentative: Vec<Quota>,
    reached: usize,
}

/// Where a rule stands with a request.
enum Stand {
    /// Nothing to do with it.
    Aside,
    /// It may pass.
    Pass,
    /// It is acted on; whole seconds to wait, if a wait helps.
    Act(Option<u64>),
}

impl Outcome {
    /// What the gateway decided, in the same words; once it is settled.
    pub fn of(decision: &Decision) -> Self {
        Self {
            verdict: decision.verdict,
            credit: decision.credit,
            quotas: decision.quotas.clone(),
            tentative: Vec::new(),
            reached: 0,
        }
    }
}

impl Naive {
    pub fn new(rules: Vec<Case>) -> Self {
        Self {
            rules,
            keys: HashMap::new(),
        }
    }

    /// Each rule in file order; a terminal action ends the pass.
    pub fn decide(&mut self, ask: &Ask, now: Timestamp) -> Outcome {
        let mut outcome = Outcome {
            verdict: Verdict::Forward,
            credit: None,
            quotas: Vec::new(),
            tentative: Vec::new(),
            reached: self.rules.len(),
        };
        for at in 0..self.rules.len() {
            let Stand::Act(wait) = self.meet(at, ask, now, &mut outcome) else {
                continue;
            };
            let (rule, action) = (RuleIndex(at as u16), self.rules[at].action);
            let dry_run = self.rules[at].dry_run;
            let credit = Credit {
                rule,
                action,
                dry_run,
            };
            if dry_run {
                outcome.credit.get_or_insert(credit);
                continue;
            }
            match action {
                Action::Delay | Action::Tag | Action::Log => {
                    outcome.credit.get_or_insert(credit);
                    continue;
                }
                Action::Allow => {}
                Action::Shadow => {
                    outcome.verdict = Verdict::Shadow { rule };
                    self.pretend(at + 1, ask, now, &mut outcome);
                }
                Action::Divert => outcome.verdict = Verdict::Divert { rule },
                Action::Close => outcome.verdict = Verdict::Close { rule },
                Action::Block | Action::Tarpit => {
                    let retry_after = self.longest(wait, at, ask, now);
                    outcome.verdict = Verdict::Block { rule, retry_after };
                }
            }
            outcome.credit = Some(credit);
            outcome.reached = at + 1;
            break;
        }
        outcome
    }

    /// The rules that the request reached count its answer, if it was forwarded.
    pub fn settle(&mut self, ask: &Ask, outcome: &mut Outcome, now: Timestamp) {
        let tentative = std::mem::take(&mut outcome.tentative);
        let reached = std::mem::take(&mut outcome.reached);
        if outcome.verdict != Verdict::Forward {
            return;
        }
        for at in 0..reached {
            let rule = &self.rules[at];
            let counts = match rule.counts {
                Counts::Status401(paths) => ask.status == 401 && paths.contains(&ask.path),
                _ => false,
            };
            let Some(key) = rule.counted_as(ask).filter(|_| counts && rule.limit > 0) else {
                continue;
            };
            let known = tentative
                .iter()
                .find(|quota| usize::from(quota.rule.0) == at);
            outcome.quotas.extend(known);
            let (rule, known) = (self.rules[at].clone(), self.known(at, key));
            if known.until(now).is_none() {
                known.charge(&rule, now);
            }
        }
        outcome.quotas.sort_by_key(|quota| quota.rule);
    }

    /// One rule and one request, with all that it changes.
    fn meet(&mut self, at: usize, ask: &Ask, now: Timestamp, outcome: &mut Outcome) -> Stand {
        let rule = self.rules[at].clone();
        let counts = rule.counts(ask);
        if let Some(stand) = rule.without_counter(ask) {
            return stand;
        }
        let Some(key) = rule.counted_as(ask) else {
            return Stand::Aside;
        };
        let known = self.known(at, key);
        let before = known.quota(at, &rule, now, None);
        let stand = known.look(&rule, ask, now);
        if known.until(now).is_none() && counts {
            let charged = rule.stops(ask) && matches!(stand, Stand::Pass);
            let passes = !known.fits(&rule, now) && rule.ban > 0;
            if charged || passes || !rule.stops(ask) {
                known.charge(&rule, now);
            }
        }
        let known = known.clone();
        let stand = match (stand, known.until(now)) {
            // It began with this very request.
            (Stand::Act(_), Some(until)) => Stand::Act(Some(seconds(until.since(now)))),
            (stand, _) => stand,
        };
        if rule.action != Action::Block || rule.dry_run {
            return stand;
        }
        match stand {
            Stand::Act(wait) => outcome.quotas.push(known.quota(at, &rule, now, wait)),
            _ if counts => outcome.quotas.push(known.quota(at, &rule, now, None)),
            _ if matches!(rule.counts, Counts::Status401(_)) => outcome.tentative.push(before),
            _ => {}
        }
        stand
    }

    /// A client that is answered in the origin's place is told of the rules behind, as if it had
    /// been forwarded; they count nothing.
    fn pretend(&self, first: usize, ask: &Ask, now: Timestamp, outcome: &mut Outcome) {
        let mut imagined = self.clone();
        for at in first..self.rules.len() {
            let rule = &self.rules[at];
            let cuts = rule.action != Action::Shadow && rule.ends();
            if cuts && matches!(rule.without_counter(ask), Some(Stand::Act(_))) {
                break;
            }
            imagined.meet(at, ask, now, outcome);
        }
    }

    /// A client that waits must meet no other block rule that refuses: neither an earlier one that
    /// this request has filled, nor a later one, as far as waiting could bring the request to it.
    fn longest(&self, first: Option<u64>, own: usize, ask: &Ask, now: Timestamp) -> Option<u64> {
        let mut longest = first?;
        for at in (0..self.rules.len()).filter(|at| *at != own) {
            let rule = &self.rules[at];
            let blocks = rule.action == Action::Block && !rule.dry_run;
            let ends = rule.ends();
            if let Some(stand) = rule.without_counter(ask) {
                match stand {
                    Stand::Act(_) if blocks => return None,
                    Stand::Act(_) if ends => break,
                    _ => continue,
                }
            }
            let Some(key) = rule.counted_as(ask).filter(|_| blocks) else {
                continue;
            };
            let known = self.keys.get(&(at, key)).cloned().unwrap_or_default();
            if let Stand::Act(wait) = known.look(rule, ask, now) {
                longest = longest.max(wait?);
            }
        }
        Some(longest)
    }

    fn known(&mut self, at: usize, key: String) -> &mut Known {
        self.keys.entry((at, key)).or_default()
    }
}

impl Case {
    fn stops(&self, ask: &Ask) -> bool {
        self.stops.contains(&ask.path)
    }

    /// Whether acting ends the pass.
    fn ends(&self) -> bool {
        self.action != Action::Log && !self.dry_run
    }

    /// Whether the request is counted when it comes.
    fn counts(&self, ask: &Ask) -> bool {
        match self.counts {
            Counts::Same => self.stops(ask),
            Counts::Paths(paths) => paths.contains(&ask.path),
            Counts::Status401(_) => false,
        }
    }

    /// No limit: the action on every request that matches.
    fn without_counter(&self, ask: &Ask) -> Option<Stand> {
        (self.limit == 0).then(|| match self.stops(ask) {
            true => Stand::Act(None),
            false => Stand::Aside,
        })
    }

    /// A missing field and an empty one are two keys; `None`: skipped.
    fn counted_as(&self, ask: &Ask) -> Option<String> {
        match (self.by, ask.header) {
            (By::Everybody, _) => Some(String::new()),
            (By::Address, _) => Some(ask.client.to_string()),
            (By::HeaderOrSkip, None) => None,
            (By::Header | By::HeaderOrSkip, header) => Some(format!("{header:?}")),
        }
    }
}

impl Known {
    fn until(&self, now: Timestamp) -> Option<Timestamp> {
        self.banned.filter(|until| *until > now)
    }

    /// What is used up: this window's charges, and the share of the last one's that still counts.
    fn used(&self, now: Timestamp) -> u64 {
        let period = PERIOD * 1_000_000_000;
        let window = |moment: Timestamp| moment.as_nanos() / period;
        let count = |number| {
            self.charged
                .iter()
                .filter(|at| window(**at) == number)
                .count() as u64
        };
        let left = period - now.as_nanos() % period;
        count(window(now)) + (count(window(now) - 1) * left).div_ceil(period)
    }

    fn fits(&self, rule: &Case, now: Timestamp) -> bool {
        self.used(now) < rule.limit
    }

    /// What the rule would do with a request that matches `mitigate`; changes nothing.
    fn look(&self, rule: &Case, ask: &Ask, now: Timestamp) -> Stand {
        if !rule.stops(ask) {
            return Stand::Pass;
        }
        if let Some(until) = self.until(now) {
            return Stand::Act(Some(seconds(until.since(now))));
        }
        let asked = rule.counts(ask) || rule.ban == 0;
        if !asked || self.fits(rule, now) {
            return Stand::Pass;
        }
        let wait = (1..).find(|wait| self.fits(rule, later(now, *wait)));
        Stand::Act(wait)
    }

    /// Charges one, or starts the ban that it earns and clears the counter.
    fn charge(&mut self, rule: &Case, now: Timestamp) {
        if rule.ban > 0 && !self.fits(rule, now) {
            self.charged.clear();
            self.banned = Some(later(now, rule.ban));
        } else {
            self.charged.push(now);
        }
    }

    fn quota(&self, at: usize, rule: &Case, now: Timestamp, wait: Option<u64>) -> Quota {
        let full = || (0..).find(|wait| self.used(later(now, *wait)) == 0);
        let (remaining, reset) = match (self.until(now), wait) {
            (Some(until), _) => (0, Some(seconds(until.since(now)))),
            (None, Some(wait)) => (rule.limit.saturating_sub(self.used(now)), Some(wait)),
            (None, None) => (rule.limit.saturating_sub(self.used(now)), full()),
        };
        Quota {
            rule: RuleIndex(at as u16),
            remaining,
            reset: reset.unwrap(),
        }
    }
}

fn later(now: Timestamp, seconds: u64) -> Timestamp {
    now.plus(Duration::from_secs(seconds))
}

/// Whole seconds, rounded up, at least 1.
fn seconds(duration: Duration) -> u64 {
    (duration.as_nanos().div_ceil(1_000_000_000) as u64).max(1)
}
