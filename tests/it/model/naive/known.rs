//! What is remembered of a key: a counter and the end of a ban.
//!
//! The sliding window is a list of moments, and its waits are found by trying one second after the
//! other. The other algorithms have models of their own beside their arithmetic, so it is used here.

use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::decision::{Action, QuotaStatus, RuleIndex};
use lockgate::limit::concurrency::LEASE_LIFETIME;
use lockgate::limit::slices::SubWindows;
use lockgate::limit::sliding_log::UnitLog;
use lockgate::limit::{Algorithm, CounterReading, CounterShape, Limiter, State};

use super::super::cases::{Ask, Bans, Case, ESCALATE, MAX_DELAY, PERIOD};

/// For how long an offence is remembered after its ban, in seconds.
const DAY: u64 = 86_400;

/// What is remembered of a key.
#[derive(Clone)]
pub struct Known {
    counter: Counter,
    /// The end of the last ban.
    banned: Option<Timestamp>,
    offences: usize,
}

#[derive(Clone)]
enum Counter {
    Moments(Vec<(Timestamp, u64)>),
    Words(State),
    Slices(SubWindows),
    Log(UnitLog),
    /// When each request that is in flight came, and its cost.
    InFlight(Vec<(Timestamp, u64)>),
}

/// Where a rule stands with a request.
#[derive(Clone, Copy)]
pub enum Stand {
    /// Nothing to do with it.
    Aside,
    /// It may pass.
    Pass,
    /// It may pass after this time.
    Queue(Duration),
    /// It is acted on; how long to wait, if a wait helps.
    Act(Option<Duration>),
}

impl Known {
    pub fn new(rule: &Case) -> Self {
        Self {
            counter: Counter::new(rule),
            banned: None,
            offences: 0,
        }
    }

    pub fn until(&self, now: Timestamp) -> Option<Timestamp> {
        self.banned.filter(|until| *until > now)
    }

    /// What the rule would do with a request that matches `mitigate`; changes nothing.
    pub fn look(&self, rule: &Case, ask: &Ask, now: Timestamp) -> Stand {
        if !rule.stops(ask) {
            return Stand::Pass;
        }
        if let Some(until) = self.until(now) {
            return Stand::Act(Some(until.since(now)));
        }
        let cost = match (rule.counts(ask), rule.ban) {
            (true, _) => rule.asked_cost(ask),
            (false, Bans::Never) => 1,
            (false, _) => return Stand::Pass,
        };
        let reading = self.read(rule, now, cost);
        match reading.fits {
            true if rule.counts(ask) && !reading.wait().is_zero() => Stand::Queue(reading.wait()),
            true => Stand::Pass,
            false => Stand::Act(rule.turn(&reading)),
        }
    }

    /// Counts a request; `true`: it was charged.
    pub fn count(
        &mut self,
        rule: &Case,
        stand: &Stand,
        now: Timestamp,
        cost: u64,
        first: bool,
    ) -> bool {
        let patient = rule.action == Action::Delay && rule.ban == Bans::Never;
        let soon = |wait: Duration| wait <= Duration::from_secs(MAX_DELAY);
        match stand {
            // A refusal costs nothing, unless it bans, or the request waits for its turn.
            Stand::Act(wait) if rule.ban == Bans::Never => {
                let waits = patient && wait.is_some_and(soon);
                if waits {
                    self.counter.charge(rule, now, cost);
                }
                waits
            }
            _ => self.charge(rule, now, cost, first),
        }
    }

    /// Charges, or starts the ban that it earns and clears the counter; `true`: charged.
    pub fn charge(&mut self, rule: &Case, now: Timestamp, cost: u64, first: bool) -> bool {
        if rule.ban == Bans::Never || self.read(rule, now, cost).fits {
            self.counter.charge(rule, now, cost);
            return true;
        }
        let remembered = self.banned.is_some_and(|end| now < later(end, DAY));
        let offence = if remembered && !first {
            self.offences
        } else {
            0
        };
        let length = match rule.ban {
            Bans::Never => unreachable!(),
            Bans::For(length) => length,
            Bans::Escalating => ESCALATE[offence.min(ESCALATE.len() - 1)],
        };
        self.offences = offence + 1;
        self.banned = Some(later(now, length));
        // Who is in flight still is.
        if rule.algorithm() != Some(Algorithm::Concurrency) {
            self.counter = Counter::new(rule);
        }
        false
    }

    pub fn release(&mut self, came: Timestamp, cost: u64) {
        if let Counter::InFlight(requests) = &mut self.counter {
            let own = requests.iter().position(|one| *one == (came, cost));
            requests.swap_remove(own.unwrap());
        }
    }

    /// What the client is told of a rule that counts the response, which costs this.
    pub fn quota_after(&self, at: usize, rule: &Case, now: Timestamp, cost: u64) -> QuotaStatus {
        let mut counted = self.clone();
        if counted.until(now).is_none() {
            counted.counter.charge(rule, now, cost);
        }
        counted.quota(at, rule, now, None)
    }

    /// What the client is told. `wait`: it was acted on, and must wait so long if that helps.
    pub fn quota(
        &self,
        at: usize,
        rule: &Case,
        now: Timestamp,
        acted: Option<Option<Duration>>,
    ) -> QuotaStatus {
        let limiter = rule.limiter.unwrap();
        let reading = self.read(rule, now, 1);
        let (remaining, reset) = match (self.until(now), acted) {
            (Some(until), _) => (0, seconds(until.since(now))),
            (None, _) if limiter.algorithm == Algorithm::Concurrency => (reading.remaining, 1),
            (None, Some(wait)) => (
                reading.remaining,
                seconds(wait.unwrap_or(reading.reset_after())),
            ),
            (None, None) if reading.reset_after().is_zero() => (reading.remaining, 0),
            (None, None) => (reading.remaining, seconds(reading.reset_after())),
        };
        QuotaStatus {
            rule: RuleIndex(at as u16),
            remaining: remaining.min(limiter.limit),
            reset,
        }
    }

    fn read(&self, rule: &Case, now: Timestamp, cost: u64) -> CounterReading {
        self.counter.read(&rule.limiter.unwrap(), now, cost)
    }
}

impl Counter {
    fn new(rule: &Case) -> Self {
        let limiter = rule.limiter.unwrap();
        match limiter.shape() {
            CounterShape::Leases => Counter::InFlight(Vec::new()),
            CounterShape::Slices => Counter::Slices(SubWindows::new(&limiter)),
            CounterShape::Log => Counter::Log(UnitLog::default()),
            // A delay is told to the nanosecond, which nobody finds by trying.
            CounterShape::Words if limiter.algorithm != Algorithm::SlidingWindow => {
                Counter::Words(State::default())
            }
            CounterShape::Words if rule.action == Action::Delay => Counter::Words(State::default()),
            CounterShape::Words => Counter::Moments(Vec::new()),
            CounterShape::Share => unreachable!("no rule of the model has a ratio"),
        }
    }

    fn read(&self, limiter: &Limiter, now: Timestamp, cost: u64) -> CounterReading {
        match self {
            Counter::Moments(moments) => read(moments, limiter.limit, now, cost),
            Counter::InFlight(requests) => {
                let live = requests
                    .iter()
                    .filter(|(came, _)| came.plus(LEASE_LIFETIME) > now);
                let taken: u64 = live.map(|(_, cost)| cost).sum();
                let left = limiter.limit.saturating_sub(taken);
                match taken + cost <= limiter.limit {
                    true => CounterReading::fitting(left, Duration::ZERO),
                    false => {
                        let helps = cost <= limiter.limit;
                        let wait = helps.then_some(Duration::from_secs(1));
                        CounterReading::refusing(left, Duration::ZERO, wait)
                    }
                }
            }
            Counter::Words(state) => limiter.peek(state, now, cost),
            Counter::Slices(slices) => slices.clone().peek(limiter, now, cost),
            Counter::Log(log) => log.clone().peek(limiter, now, cost),
        }
    }

    fn charge(&mut self, rule: &Case, now: Timestamp, cost: u64) {
        let limiter = rule.limiter.unwrap();
        match self {
            Counter::Moments(moments) => moments.push((now, cost)),
            Counter::Words(state) => _ = limiter.charge(state, now, cost),
            Counter::Slices(slices) => _ = slices.charge(&limiter, now, cost),
            Counter::Log(log) => _ = log.charge(&limiter, now, cost),
            Counter::InFlight(requests) => requests.push((now, cost)),
        }
    }
}

fn read(moments: &[(Timestamp, u64)], limit: u64, now: Timestamp, cost: u64) -> CounterReading {
    let fits = |now| used(moments, now) + cost <= limit;
    let retry_after = (0..=2 * PERIOD).find(|wait| fits(later(now, *wait)));
    let reset = (0..=2 * PERIOD).find(|wait| used(moments, later(now, *wait)) == 0);
    let remaining = limit.saturating_sub(used(moments, now));
    let reset_after = Duration::from_secs(reset.unwrap());
    match fits(now) {
        true => CounterReading::fitting(remaining, reset_after),
        false => {
            CounterReading::refusing(remaining, reset_after, retry_after.map(Duration::from_secs))
        }
    }
}

/// What is used up: this window's charges, and the share of the last one's that still counts.
fn used(moments: &[(Timestamp, u64)], now: Timestamp) -> u64 {
    let period = PERIOD * 1_000_000_000;
    let window = |moment: Timestamp| moment.as_nanos() / period;
    let count = |number| {
        let counted = moments.iter().filter(|(at, _)| window(*at) == number);
        counted.map(|(_, cost)| cost).sum::<u64>()
    };
    let left = period - now.as_nanos() % period;
    count(window(now)) + (count(window(now) - 1) * left).div_ceil(period)
}

fn later(now: Timestamp, seconds: u64) -> Timestamp {
    now.plus(Duration::from_secs(seconds))
}

/// Whole seconds, rounded up, at least 1.
pub fn seconds(duration: Duration) -> u64 {
    (duration.as_nanos().div_ceil(1_000_000_000) as u64).max(1)
}
