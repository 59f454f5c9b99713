//! Selects the server for a request. Reads only the hash key of a request.
//!
//! Most requests take the server that `pick` returns. Only if that server is marked does the balancer
//! compare all servers at the current time, in this order: eligible servers, backups, servers that are
//! used only as a last resort.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use smallvec::SmallVec;

use super::members::{MemberList, PoolMember};
use super::server::{ServerInFlight, TrialRequest};
use super::server_health::Eligibility;
use super::{BalancePolicy, Upstream};
use crate::clock::{Clock, Timestamp};

/// A small random number generator (xorshift64), for selections that need no strong randomness.
pub(super) struct SmallRng(Cell<u64>);

/// The inputs of a selection.
pub(super) struct BalanceState<'a> {
    pub(super) upstream: &'a Upstream,
    /// The hash key, for [`BalancePolicy::Hash`].
    pub(super) key: u64,
    pub(super) random: &'a SmallRng,
    pub(super) clock: &'a Clock,
}

/// The server for one attempt.
#[derive(Debug)]
pub(super) struct ChosenServer {
    pub(super) in_flight: ServerInFlight,
    /// Set if the result of the attempt decides whether the server is used again.
    pub(super) trial: Option<TrialRequest>,
}

/// The servers to select from: all primaries, or those with some indices.
struct MemberView<'a> {
    members: &'a MemberList,
    some: Option<&'a [(usize, Eligibility)]>,
}

/// Servers by their index, with their eligibility.
type Candidates = SmallVec<[(usize, Eligibility); 16]>;

// === impl SmallRng ===

impl SmallRng {
    pub(super) fn new() -> Self {
        // Zero is the one state that xorshift never leaves.
        Self(Cell::new(getrandom::u64().unwrap_or(1).max(1)))
    }

    fn next(&self) -> usize {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        (x >> 16) as usize
    }
}

// === impl BalanceState ===

impl BalanceState<'_> {
    /// Returns the server of the first attempt. The error is the time until a server may be eligible.
    pub(super) fn first(&self) -> Result<ChosenServer, Duration> {
        let members = self.upstream.members.load();
        let view = MemberView {
            members: &members,
            some: None,
        };
        let picked = self.pick(&view).and_then(|at| view.get(at));
        if let Some(member) =
            picked.filter(|m| m.server.health.is_clear(self.upstream.relevant_marks()))
        {
            let in_flight = ServerInFlight::begin(&member.server);
            let trial = None;
            return Ok(ChosenServer { in_flight, trial });
        }
        self.among(&members, &[], Eligibility::Reluctant)
    }

    /// Returns a server with an id not in `but` and an eligibility at least as good as `limit`.
    pub(super) fn other(&self, but: &[u64], limit: Eligibility) -> Option<ChosenServer> {
        let members = self.upstream.members.load();
        self.among(&members, but, limit).ok()
    }

    fn among(
        &self,
        members: &MemberList,
        but: &[u64],
        limit: Eligibility,
    ) -> Result<ChosenServer, Duration> {
        let now = self.clock.now();
        let relevant_marks = self.upstream.relevant_marks();
        let others = members.all().iter().enumerate();
        let others = others.filter(|(_, member)| !but.contains(&member.server.id()));
        let all: Candidates = others
            .map(|(at, member)| (at, member.server.health.eligibility(relevant_marks, now)))
            .collect();
        for reluctant in [false, true] {
            for backup in [false, true] {
                let mut some = all.clone();
                some.retain(|&mut (at, usage)| {
                    let is_reluctant = usage == Eligibility::Reluctant;
                    usage <= limit && is_reluctant == reluctant && members.is_backup(at) == backup
                });
                if let Some(chosen) = self.take(members, some, now) {
                    return Ok(chosen);
                }
            }
        }
        Err(self.wait(&all))
    }

    /// Returns one of `some`. Skips a server that another request is already trying.
    fn take(
        &self,
        members: &MemberList,
        mut some: Candidates,
        now: Timestamp,
    ) -> Option<ChosenServer> {
        loop {
            let position = self.pick(&MemberView {
                members,
                some: Some(&some),
            })?;
            let (at, eligibility) = some.remove(position);
            let server = &members.all().get(at)?.server;
            let trial = match eligibility {
                Eligibility::Yes => None,
                _ => TrialRequest::begin(server, now),
            };
            if eligibility != Eligibility::Try || trial.is_some() {
                let in_flight = ServerInFlight::begin(server);
                return Some(ChosenServer { in_flight, trial });
            }
        }
    }

    /// Returns the `Retry-After` of a refused request: the time until the first circuit lets a trial request
    /// through, or until the next health check or name lookup.
    fn wait(&self, all: &[(usize, Eligibility)]) -> Duration {
        let check = self.upstream.health.as_ref().map(|health| health.interval);
        let left = all.iter().filter_map(|(_, usage)| match usage {
            Eligibility::No(Some(left)) => Some(*left),
            Eligibility::No(None) => check,
            _ => None,
        });
        left.min().unwrap_or(self.upstream.resolve_interval)
    }

    /// Returns an index in the view. `None` if the view is empty.
    fn pick(&self, view: &MemberView<'_>) -> Option<usize> {
        // A separate counter, so that ineligible servers do not shift the schedule of the others.
        let turns = match view.some {
            None => &self.upstream.turn,
            Some(_) => &self.upstream.fallback_turn,
        };
        let turn = || turns.fetch_add(1, Ordering::Relaxed);
        match (view.len(), self.upstream.balance) {
            (0, _) => None,
            (1, _) => Some(0),
            (_, BalancePolicy::RoundRobin) => Some(view.next_by_weight(turn())),
            (n, BalancePolicy::P2c) => {
                let one = view.next_by_weight(self.random.next());
                // Any server except `one`, with equal probability.
                let other = (one + 1 + self.random.next() % (n - 1)) % n;
                Some(view.less_busy(one, other))
            }
            (n, BalancePolicy::LeastRequests) => {
                let first = view.next_by_weight(turn());
                let others = (1..n).map(|step| (first + step) % n);
                Some(others.fold(first, |least, other| view.less_busy(least, other)))
            }
            (n, BalancePolicy::Hash) => {
                let score = |at| view.get(at).map_or(0.0, |member| score(self.key, member));
                (0..n).max_by(|a, b| score(*a).total_cmp(&score(*b)))
            }
        }
    }
}

// === impl MemberView ===

impl MemberView<'_> {
    fn len(&self) -> usize {
        self.some.map_or(self.members.primaries().len(), <[_]>::len)
    }

    fn get(&self, position: usize) -> Option<&PoolMember> {
        match self.some {
            None => self.members.primaries().get(position),
            Some(some) => self.members.all().get(some.get(position)?.0),
        }
    }

    /// Returns the scheduled server: over many turns, each server is returned in proportion to its weight.
    fn next_by_weight(&self, turn: usize) -> usize {
        if self.some.is_none() {
            return self.members.scheduled(turn);
        }
        let weight = |at| self.get(at).map_or(0, |member| member.weight as usize);
        let total: usize = (0..self.len()).map(weight).sum();
        let mut left = turn % total.max(1);
        for at in 0..self.len() {
            match left.checked_sub(weight(at)) {
                Some(less) => left = less,
                None => return at,
            }
        }
        0
    }

    /// Returns the server with fewer requests in flight per weight, `one` if they are equal.
    fn less_busy(&self, one: usize, other: usize) -> usize {
        let load = |at, compared| match (self.get(at), self.get(compared)) {
            (Some(member), Some(compared)) => {
                member.server.in_flight() as u64 * u64::from(compared.weight)
            }
            _ => u64::MAX,
        };
        if load(other, one) < load(one, other) {
            other
        } else {
            one
        }
    }
}

/// Rendezvous hashing: each key goes to the server with the highest score, so adding or removing a server
/// moves only its own keys. Weighted as by Schindelhauer and Schomaker: `-w / ln(u)`.
fn score(key: u64, member: &PoolMember) -> f64 {
    // In the open interval from 0 to 1.
    let unit = ((mix(key ^ member.seed) >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
    -f64::from(member.weight) / unit.ln()
}

/// The finalizer of splitmix64: every bit depends on every other.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
