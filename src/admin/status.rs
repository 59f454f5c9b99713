//! `/api/status`: the state of the gateway and what needs attention.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::attention::{AttentionFacts, RuleActivity};
use super::certificates::certificates;
use super::objects::{
    AttentionObject, ConfigErrorObject, ConfigObject, ConnectionsObject, HeldObject,
    LastReloadObject, StatusObject, StoreObject, raw_json,
};
use super::state::{AdminState, StoreCounts};
use super::upstreams::upstreams;
use crate::config::LocatedError;
use crate::gateway::ReloadOutcome;
use crate::observe::activity::RuleRates;
use crate::process::RunningGateway;
use crate::rules::Rule;
use crate::snapshot::Snapshot;
use crate::store::redis::health::{ROUND_TRIP_BOUNDS, StoreHealth};

/// Returns the status.
pub(super) async fn status(state: &AdminState) -> StatusObject {
    let snapshot = state.snapshot();
    let counts = state.store_counts().await;
    let (now, process) = (state.now(), &state.live.process);
    StatusObject {
        version: env!("CARGO_PKG_VERSION"),
        instance: state.instance.clone(),
        state: if state.is_ready() {
            "running"
        } else {
            "draining"
        },
        uptime_s: now.since(state.started_at).as_secs(),
        now: now.into(),
        connections: ConnectionsObject {
            open: state.connections.open(),
            max: state.connections.limit(),
            tunnels: process.metrics.tunnels(),
        },
        held: held(state, &snapshot),
        store: store(state, &snapshot, &counts),
        config: config(state, &snapshot),
        certificates: certificates(&snapshot),
        log_lines_dropped: log_lines_dropped(&state.live, &snapshot),
        panics: process.metrics.panics.get(),
        tick: state
            .hub()
            .latest_tick_json()
            .and_then(|json| raw_json(&*json)),
        attention: update_attention(state, &snapshot),
    }
}

/// Returns what needs attention now.
pub(super) fn update_attention(state: &AdminState, snapshot: &Snapshot) -> Vec<AttentionObject> {
    let (now, process) = (state.now(), &state.live.process);
    let (panics, evicted) = (process.metrics.panics.get(), process.store.evictions().bans);
    let facts = AttentionFacts {
        last_reload: last_reload(state),
        rules: rule_activities(state, snapshot),
        panics: state.panics.lock().note(panics, now),
        evicted_bans: state.evictions.lock().note(evicted, now),
        likely_false_positives: state.likely_false_positives.load(Ordering::Relaxed),
        upstreams: upstreams(state, snapshot),
        certificates: certificates(snapshot),
        store: Some(store(state, snapshot, &StoreCounts::default())),
        held: held(state, snapshot),
    };
    state.attention.lock().update(now, facts.findings(now))
}

/// Returns what the rules of the newest tick do now and did before.
fn rule_activities(state: &AdminState, snapshot: &Snapshot) -> Vec<RuleActivity> {
    let tick = state.hub().latest_tick();
    let rates = tick.iter().flat_map(|tick| &tick.rules);
    let rules = snapshot.rules.iter().map(|(_, rule)| (&*rule.name, rule));
    let rules: HashMap<&str, &Rule> = rules.collect();
    let activity = |rates: &RuleRates| {
        let rule = rules.get(&*rates.name)?;
        let is_busy = rates.mitigated_per_s > 0.0;
        Some(RuleActivity {
            name: rates.name.clone(),
            action: rule.action.name(),
            mitigated_per_s: rates.mitigated_per_s,
            would_mitigate_per_s: rates.would_mitigate_per_s,
            before: if is_busy {
                state.hub().first_quarter(&rates.name)
            } else {
                Vec::new()
            },
            candidate: rates.candidate,
            bans: rates.bans,
        })
    };
    rates.filter_map(activity).collect()
}

fn held(state: &AdminState, snapshot: &Snapshot) -> HeldObject {
    HeldObject {
        now: state.live.process.held.load(Ordering::Relaxed),
        max: snapshot.settings.max_held,
    }
}

fn config(state: &AdminState, snapshot: &Snapshot) -> ConfigObject {
    ConfigObject {
        file: state.reloader.config().display().to_string(),
        loaded_at: state.reloader.history().loaded_at.into(),
        rules: snapshot.rules.len(),
        last_reload: last_reload(state),
    }
}

fn last_reload(state: &AdminState) -> Option<LastReloadObject> {
    let outcome: ReloadOutcome = state.reloader.history().last?;
    let errors = outcome.rejected.as_ref().map(|rejected| &rejected.errors);
    Some(LastReloadObject {
        at: outcome.at.into(),
        ok: outcome.rejected.is_none(),
        by: outcome.trigger.name(),
        errors: errors.map_or_else(Vec::new, |errors| config_errors(errors)),
    })
}

/// Returns the errors of a configuration as JSON shows them.
pub(super) fn config_errors(errors: &[LocatedError]) -> Vec<ConfigErrorObject> {
    let object = |error: &LocatedError| ConfigErrorObject {
        file: error.file.clone(),
        line: error.line,
        column: error.column,
        length: error.length,
        message: error.message.clone(),
        source: error.source.clone(),
    };
    errors.iter().map(object).collect()
}

fn store(state: &AdminState, snapshot: &Snapshot, counts: &StoreCounts) -> StoreObject {
    let (now, store) = (state.now(), &state.live.process.store);
    let name = store.state(now);
    let since = state.store_watch.lock().note(name, now);
    let (is_shared, max_keys) = (!store.is_local(), snapshot.settings.startup.bounds.max_keys);
    let last_error = store.health().and_then(StoreHealth::last_error);
    StoreObject {
        kind: if is_shared { "redis" } else { "memory" },
        mode: is_shared.then(|| snapshot.settings.store_mode.name()),
        state: name,
        since: since.map(Into::into),
        error: last_error
            .filter(|_| name != "ok")
            .map(|error| error.to_string()),
        local_fraction: is_shared.then(|| store.local_fraction()),
        roundtrip_p99_ms: store.health().and_then(round_trip_p99),
        keys: counts.keys(),
        max_keys,
        bans: counts.bans(),
        max_bans: max_keys / 4,
    }
}

/// Returns the upper bound of the bucket with the 99th percentile of round trips, in milliseconds. `None` without any.
fn round_trip_p99(health: &StoreHealth) -> Option<f64> {
    let (counts, _) = health.round_trips();
    let total: u64 = counts.iter().sum();
    let mut left = (total / 100).min(total.saturating_sub(1));
    let slow = counts.iter().rposition(|count| {
        let is_within = *count > left;
        left = left.saturating_sub(*count);
        is_within
    })?;
    let bound = ROUND_TRIP_BOUNDS.get(slow).or(ROUND_TRIP_BOUNDS.last())?;
    Some(Duration::from_micros(*bound).as_secs_f64() * 1_000.0)
}

fn log_lines_dropped(live: &RunningGateway, snapshot: &Snapshot) -> u64 {
    let access = snapshot.access.as_ref();
    access.map_or(0, |access| access.sink().dropped()) + live.process.log.dropped()
}
