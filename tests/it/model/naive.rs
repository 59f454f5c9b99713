//! The naive model: each sentence of the contract on its own, one rule after the other, on maps
//! without bounds. Nothing here knows of plans and result.

mod known;
mod outcome;

use std::collections::HashMap;
use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::decision::{Action, DecidedBy, QuotaStatus, RuleIndex, Verdict};
use lockgate::limit::{Algorithm, CounterReading};

use self::known::{Known, Stand, seconds};
pub use self::outcome::Outcome;
use self::outcome::Pending;
use super::cases::{Ask, By, Case, Costs, Counts, MAX_DELAY};

/// Rules with all that they remember.
#[derive(Clone)]
pub struct Naive {
    rules: Vec<Case>,
    keys: HashMap<(Who, String), Known>,
    /// Nobody knows which offence it is: a pretence takes it for the first.
    pretends: bool,
}

/// A rule by its place, or its candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Who {
    at: usize,
    candidate: bool,
}

impl Naive {
    pub fn new(rules: Vec<Case>) -> Self {
        Self {
            rules,
            keys: HashMap::new(),
            pretends: false,
        }
    }

    /// Each rule in file order; a terminal action ends the pass.
    pub fn decide(&mut self, ask: &Ask, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::new(self.rules.len());
        for at in 0..self.rules.len() {
            let tried = self.candidate(at, ask, now, &mut outcome);
            let stand = self.meet(Who::rule(at), ask, now, &mut outcome);
            let passes = self.rules[at].lets_pass(ask);
            outcome.compare(at, tried.filter(|_| !passes), &stand);
            let dry_run = self.rules[at].dry_run;
            match stand {
                Stand::Aside | Stand::Pass => {}
                Stand::Queue(_) if dry_run => {}
                Stand::Queue(wait) => outcome.queue(at, wait, passes),
                Stand::Act(_) if passes => {
                    outcome.unchallenged.get_or_insert(RuleIndex(at as u16));
                }
                Stand::Act(wait) => {
                    if self.act(at, wait, ask, now, &mut outcome) {
                        break;
                    }
                }
            }
        }
        // A request that is stopped releases its leases at once, before it is held.
        if !outcome.is_served() {
            self.give_back(&mut outcome);
        }
        if ask.crowded && !outcome.hold.is_zero() {
            outcome.cannot_hold(&self.rules);
        }
        if !outcome.is_served() {
            self.give_back(&mut outcome);
        }
        outcome
    }

    /// What was forwarded is counted by the rules that it reached. A pretence tells what it would
    /// have told.
    pub fn settle(&mut self, ask: &Ask, outcome: &mut Outcome, now: Timestamp) {
        self.give_back(outcome);
        let tentative = std::mem::take(&mut outcome.tentative);
        let reached = std::mem::take(&mut outcome.reached);
        let (forward, pretence) = match outcome.verdict {
            Verdict::Forward => (true, false),
            Verdict::Shadow { .. } | Verdict::Divert { .. } => (false, true),
            _ => return,
        };
        for at in 0..self.rules.len() {
            let rule = &self.rules[at];
            let counted = rule.limiter.is_some() && rule.counts_answer(ask);
            let cost = rule.answer_cost(ask).filter(|_| counted);
            let (Some(cost), Some(key)) = (cost, rule.counted_as(ask)) else {
                continue;
            };
            if pretence || at < reached {
                let told = tentative.iter().filter(|pending| pending.at == at);
                let rule = self.rule(Who::rule(at)).unwrap();
                outcome.quotas.extend(
                    told.map(|pending| pending.known.quota_after(at, &rule, pending.now, cost)),
                );
            }
            if forward && at < reached {
                self.charge(Who::rule(at), &key, cost, now);
                self.charge(Who::candidate(at), &key, cost, now);
            }
        }
        outcome.quotas.sort_by_key(|quota| quota.rule);
    }

    /// A place is freed when the response ends, or at once if the request is stopped.
    fn give_back(&mut self, outcome: &mut Outcome) {
        for (who, key, came, cost) in outcome.places.drain(..) {
            let known = self.keys.get_mut(&(who, key)).unwrap();
            known.release(came, cost);
        }
    }

    /// An answer is charged, unless its key is banned.
    fn charge(&mut self, who: Who, key: &str, cost: u64, now: Timestamp) {
        let Some(rule) = self.rule(who) else {
            return;
        };
        let known = self.known(who, key.to_owned(), &rule);
        if known.until(now).is_none() {
            known.charge(&rule, now, cost, false);
        }
    }

    /// Whether the candidate would have acted; its state is what it would be if it were the rule.
    fn candidate(
        &mut self,
        at: usize,
        ask: &Ask,
        now: Timestamp,
        outcome: &mut Outcome,
    ) -> Option<bool> {
        self.rule(Who::candidate(at))?;
        let stand = self.meet(Who::candidate(at), ask, now, outcome);
        Some(matches!(stand, Stand::Act(_)))
    }

    /// Acts; `true`: the pass ends.
    fn act(
        &self,
        at: usize,
        wait: Option<Duration>,
        ask: &Ask,
        now: Timestamp,
        outcome: &mut Outcome,
    ) -> bool {
        let (rule, case) = (RuleIndex(at as u16), &self.rules[at]);
        let credit = DecidedBy {
            rule,
            action: case.action,
            dry_run: case.dry_run,
        };
        if !case.ends() {
            outcome.credit.get_or_insert(credit);
        } else {
            outcome.credit = Some(credit);
            outcome.reached = at + 1;
        }
        if case.dry_run {
            return false;
        }
        let most = Duration::from_secs(MAX_DELAY);
        match case.action {
            Action::Log | Action::Allow => {}
            Action::Tag => outcome.tags.push(rule),
            Action::Delay => outcome.hold = outcome.hold.max(wait.unwrap_or(most).min(most)),
            Action::Shadow => {
                outcome.verdict = Verdict::Shadow { rule };
                self.pretend(at + 1, ask, now, outcome);
            }
            Action::Divert => {
                outcome.verdict = Verdict::Divert { rule };
                self.pretend(at + 1, ask, now, outcome);
            }
            Action::Close => outcome.stop(Verdict::Close { rule }),
            Action::Block | Action::Tarpit | Action::Challenge => {
                let longest = self.longest(wait, at, ask, now, &mut outcome.quotas);
                let held = if case.action == Action::Tarpit {
                    MAX_DELAY
                } else {
                    0
                };
                outcome.refuse(rule, case.action, longest, held);
            }
        }
        case.ends()
    }

    /// One rule and one request, with all that it changes.
    fn meet(&mut self, who: Who, ask: &Ask, now: Timestamp, outcome: &mut Outcome) -> Stand {
        let Some(rule) = self.rule(who) else {
            return Stand::Aside;
        };
        if let Some(stand) = rule.without_counter(ask) {
            return stand;
        }
        let Some(key) = rule.counted_as(ask) else {
            return Stand::Aside;
        };
        let (counts, pretends) = (rule.counts(ask), self.pretends);
        let known = self.known(who, key.clone(), &rule);
        let before = Pending {
            at: who.at,
            known: known.clone(),
            now,
        };
        let stand = known.look(&rule, ask, now);
        if known.until(now).is_none() && counts {
            let cost = rule.asked_cost(ask);
            let holds = rule.algorithm() == Some(Algorithm::Concurrency);
            let charged = if holds && rule.lets_pass(ask) {
                known.charge(&rule, now, cost, pretends)
            } else {
                known.count(&rule, &stand, now, cost, pretends)
            };
            if charged && holds {
                outcome.places.push((who, key, now, cost));
            }
        }
        let stand = match (stand, known.until(now)) {
            // It began with this very request.
            (Stand::Act(_), Some(until)) => Stand::Act(Some(until.since(now))),
            (stand, _) => stand,
        };
        if rule.action != Action::Block || rule.dry_run || who.candidate {
            return stand;
        }
        match stand {
            Stand::Act(wait) => outcome
                .quotas
                .push(known.quota(who.at, &rule, now, Some(wait))),
            _ if counts => outcome.quotas.push(known.quota(who.at, &rule, now, None)),
            _ if rule.is_late() => outcome.tentative.push(before),
            _ => {}
        }
        stand
    }

    /// A client that another answers in the origin's place is told of the rules behind, as if it had
    /// been forwarded; they count nothing.
    fn pretend(&self, first: usize, ask: &Ask, now: Timestamp, outcome: &mut Outcome) {
        let mut imagined = self.clone();
        imagined.pretends = true;
        let places = outcome.places.len();
        for at in first..self.rules.len() {
            let rule = &self.rules[at];
            let pretends = matches!(rule.action, Action::Shadow | Action::Divert);
            let cuts = !pretends && rule.ends() && !rule.lets_pass(ask);
            if cuts && matches!(rule.without_counter(ask), Some(Stand::Act(_))) {
                break;
            }
            imagined.meet(Who::rule(at), ask, now, outcome);
        }
        outcome.places.truncate(places);
    }

    /// A client that waits must meet no other rule that refuses: neither an earlier one that this
    /// request has filled, nor a later one, as far as waiting could bring the request to it. A
    /// place that this request took is given back. Of each that it is told of, it is told the wait. A
    /// client that waits for a block can solve a later challenge.
    fn longest(
        &self,
        first: Option<Duration>,
        own: usize,
        ask: &Ask,
        now: Timestamp,
        told: &mut [QuotaStatus],
    ) -> Option<u64> {
        let mut longest = first.map(seconds);
        for at in (0..self.rules.len()).filter(|at| *at != own) {
            let rule = &self.rules[at];
            let is_challenged = at > own
                && rule.action == Action::Challenge
                && self.rules[own].action != Action::Challenge;
            let refuses = rule.refuses() && !rule.lets_pass(ask) && !is_challenged;
            if let Some(stand) = rule.without_counter(ask) {
                match stand {
                    Stand::Act(_) if refuses => return None,
                    Stand::Act(_) if rule.ends() && !rule.lets_pass(ask) => break,
                    _ => continue,
                }
            }
            let returned = at < own && rule.algorithm() == Some(Algorithm::Concurrency);
            let Some(key) = rule.counted_as(ask).filter(|_| refuses && !returned) else {
                continue;
            };
            let known = self.keys.get(&(Who::rule(at), key)).cloned();
            let known = known.unwrap_or_else(|| Known::new(rule));
            if let Stand::Act(wait) = known.look(rule, ask, now) {
                let wait = wait.map(seconds);
                longest = longest.zip(wait).map(|(one, other)| one.max(other));
                let told = told
                    .iter_mut()
                    .filter(|quota| usize::from(quota.rule.0) == at);
                told.for_each(|quota| quota.reset = wait.unwrap_or(quota.reset));
            }
        }
        longest
    }

    /// The rule, or what it would be with its candidate's limit.
    fn rule(&self, who: Who) -> Option<Case> {
        let rule = self.rules[who.at].clone();
        if !who.candidate {
            return Some(rule);
        }
        let limiter = rule.candidate.filter(|_| rule.limiter.is_some())?;
        Some(Case {
            limiter: Some(limiter),
            ..rule
        })
    }

    fn known(&mut self, who: Who, key: String, rule: &Case) -> &mut Known {
        let known = self.keys.entry((who, key));
        known.or_insert_with(|| Known::new(rule))
    }
}

impl Who {
    fn rule(at: usize) -> Self {
        let candidate = false;
        Self { at, candidate }
    }

    fn candidate(at: usize) -> Self {
        let candidate = true;
        Self { at, candidate }
    }
}

impl Case {
    /// Whether a request that the rule would challenge passes.
    fn lets_pass(&self, ask: &Ask) -> bool {
        let challenges = self.action == Action::Challenge && !self.dry_run;
        challenges && ask.is_preflight && self.stops(ask)
    }

    fn refuses(&self) -> bool {
        let refuses = matches!(
            self.action,
            Action::Block | Action::Tarpit | Action::Challenge
        );
        refuses && !self.dry_run
    }

    fn stops(&self, ask: &Ask) -> bool {
        self.stops.contains(&ask.path)
    }

    /// How long what does not fit is to wait. Who is delayed all the same waits behind the queue.
    fn turn(&self, reading: &CounterReading) -> Option<Duration> {
        let queues = self.algorithm() == Some(Algorithm::LeakyBucket);
        match queues && self.action == Action::Delay {
            true => reading.retry_after().and(Some(reading.reset_after())),
            false => reading.retry_after(),
        }
    }

    /// Whether acting ends the pass.
    fn ends(&self) -> bool {
        !matches!(self.action, Action::Log | Action::Tag | Action::Delay) && !self.dry_run
    }

    /// Whether it counts once there is an answer.
    fn is_late(&self) -> bool {
        matches!(self.counts, Counts::Status401(_)) || self.cost == Costs::Answered
    }

    /// Whether `count` holds, as far as the request says.
    fn concerns(&self, ask: &Ask) -> bool {
        match self.counts {
            Counts::Same => self.stops(ask),
            Counts::Paths(paths) | Counts::Status401(paths) => paths.contains(&ask.path),
        }
    }

    /// Whether the request is counted when it comes.
    fn counts(&self, ask: &Ask) -> bool {
        !self.is_late() && self.concerns(ask)
    }

    /// Whether it is counted when it is answered.
    fn counts_answer(&self, ask: &Ask) -> bool {
        let fits = !matches!(self.counts, Counts::Status401(_)) || ask.status == 401;
        self.is_late() && self.concerns(ask) && fits
    }

    /// Missing or negative: 1.
    fn asked_cost(&self, ask: &Ask) -> u64 {
        match self.cost {
            Costs::Fixed(cost) => cost,
            Costs::Asked => ask.cost.and_then(|cost| cost.try_into().ok()).unwrap_or(1),
            Costs::Answered => 1,
        }
    }

    /// Not a whole number: nothing is counted.
    fn answer_cost(&self, ask: &Ask) -> Option<u64> {
        match self.cost {
            Costs::Answered => ask.answer_cost?.parse().ok(),
            _ => Some(self.asked_cost(ask)),
        }
    }

    fn algorithm(&self) -> Option<Algorithm> {
        Some(self.limiter?.algorithm)
    }

    /// No limit: the action on every request that matches.
    fn without_counter(&self, ask: &Ask) -> Option<Stand> {
        self.limiter.is_none().then(|| match self.stops(ask) {
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
