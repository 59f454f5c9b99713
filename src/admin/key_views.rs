//! How full the keys of a rule are, and how many of them the candidate decides differently. Computed at most every five
//! seconds for each rule, on a thread that serves no requests of clients.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::state::AdminState;
use crate::limit::Limiter;
use crate::rules::{Rule, RuleId};
use crate::store::{FillLevels, InspectedRule, KeyUsage};

/// How long a view is served from memory.
const MAX_AGE: Duration = Duration::from_secs(5);
/// The number of hottest keys whose counters are compared with those of the candidate.
const COMPARED: usize = 256;

/// The newest views of the rules that clients have asked for.
#[derive(Debug, Default)]
pub(super) struct KeyViews(HashMap<RuleId, (Instant, KeyView)>);

/// What is known about the keys of a rule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyView {
    /// `None` for a rule without a limit, and if no core responds.
    pub(super) levels: Option<FillLevels>,
    /// Of the hottest keys, those that the rule and its candidate would decide differently now.
    pub(super) differing: u64,
}

/// Returns the view of a rule.
pub(super) async fn view(state: &AdminState, rule: &Rule) -> KeyView {
    let mut views = state.key_views.lock().await;
    let now = state.live.process.clock.instant();
    let is_fresh = |at: Instant| now.saturating_duration_since(at) < MAX_AGE;
    views.0.retain(|_, (at, _)| is_fresh(*at));
    if let Some((_, known)) = views.0.get(&rule.id) {
        return *known;
    }
    let levels = match inspected(rule) {
        Some(rule) => state.store.fill_levels(rule).await.ok(),
        None => None,
    };
    let differing = differing_keys(state, rule).await;
    let view = KeyView { levels, differing };
    views.0.insert(rule.id, (now, view));
    view
}

async fn differing_keys(state: &AdminState, rule: &Rule) -> u64 {
    let (Some(live), Some(candidate)) = (inspected(rule), candidate(rule)) else {
        return 0;
    };
    let hottest = state.hub().hottest(rule.id, COMPARED).into_iter();
    let keys: Vec<_> = hottest.map(|hot| hot.key.into_vec()).collect();
    let ours = usage(state, live, &keys).await;
    let theirs = usage(state, candidate, &keys).await;
    let pairs = ours.iter().zip(&theirs);
    let differs = |(ours, theirs): &(&KeyUsage, &KeyUsage)| {
        refuses(ours, &live.limiter) != refuses(theirs, &candidate.limiter)
    };
    pairs.filter(differs).count() as u64
}

/// Returns the counters and bans of keys. While no core responds, those of this process.
pub(super) async fn usage(
    state: &AdminState,
    rule: InspectedRule,
    keys: &[Vec<u8>],
) -> Vec<KeyUsage> {
    let peeked = state.store.peek(rule, keys.to_vec()).await;
    peeked.unwrap_or_else(|_| {
        let (store, now) = (&state.live.process.store, state.now());
        let own = |key: &Vec<u8>| store.key_usage(&rule, key, now);
        keys.iter().map(own).collect()
    })
}

/// Returns whether the next request of a key would be refused.
pub(super) fn refuses(usage: &KeyUsage, limiter: &Limiter) -> bool {
    usage.banned_until.is_some() || usage.count >= limiter.capacity()
}

/// Returns how to read the counters of a rule. `None` for a rule without a limit.
pub(super) fn inspected(rule: &Rule) -> Option<InspectedRule> {
    rule.limiter.map(|limiter| InspectedRule {
        id: rule.id,
        limiter,
        mode: rule.store_mode,
    })
}

/// Returns how to read the counters of a rule's candidate. `None` without one.
pub(super) fn candidate(rule: &Rule) -> Option<InspectedRule> {
    rule.candidate.as_ref().map(|candidate| InspectedRule {
        id: candidate.id,
        limiter: candidate.limiter,
        mode: rule.store_mode.for_limiter(&candidate.limiter),
    })
}
