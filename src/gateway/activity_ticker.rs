//! Merges what the cores have recorded, and makes a tick each second, on one thread of the process. Never serves a
//! request.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::warn;

use super::cores::spawn;
use crate::clock::Timestamp;
use crate::listen::ConnectionLimit;
use crate::observe::activity::{CandidateTotals, Marker, MarkerKind, RuleFigures, TickInput};
use crate::process::RunningGateway;
use crate::rules::{Rule, RuleId};
use crate::snapshot::{RuleResources, Snapshot};

/// The interval of ticks.
const TICK: Duration = Duration::from_secs(1);
/// The interval at which decisions are queued for open streams.
const COLLECT: Duration = Duration::from_millis(200);
/// The interval at which keys and bans are counted, which reads the whole store.
const COUNT: Duration = Duration::from_secs(5);

/// The thread that makes the ticks.
pub(super) struct ActivityTicker {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// The state of the thread.
struct TickLoop {
    live: Arc<RunningGateway>,
    gate: ConnectionLimit,
    /// When the batches were last merged.
    collected: Instant,
    /// When the last tick was made.
    ticked: Instant,
    /// When keys and bans were last counted. `None` before the first time.
    counted: Option<Instant>,
    /// The keys by the slot of their rule.
    keys: HashMap<u16, u64>,
    bans: HashMap<RuleId, u64>,
    /// The state of the store, for a marker when it changes.
    store: &'static str,
    /// How configured responses differ from real ones, by rule.
    differences: HashMap<Arc<str>, String>,
    /// Why servers are not eligible, by upstream and server.
    servers: HashMap<(Arc<str>, String), &'static str>,
}

// === impl ActivityTicker ===

impl ActivityTicker {
    pub(super) fn start(live: Arc<RunningGateway>, gate: ConnectionLimit) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let thread = spawn("activity".to_owned(), |ready| async move {
            // There is a tick before the first client of the admin API.
            let ticker = TickLoop::new(live, gate);
            // The receiver is waiting for this.
            let _ = ready.send(Ok(()));
            tokio::select! {
                _ = stopped => {}
                () = ticker.forever() => {}
            }
        })?;
        Ok(Self { stop, thread })
    }

    pub(super) fn stop(self) {
        drop(self.stop);
        // The panic was already written to stderr.
        let _ = self.thread.join();
    }
}

// === impl TickLoop ===

impl TickLoop {
    fn new(live: Arc<RunningGateway>, gate: ConnectionLimit) -> Self {
        let now = live.process.clock.instant();
        let mut ticker = Self {
            gate,
            collected: now,
            ticked: now,
            counted: None,
            keys: HashMap::new(),
            bans: HashMap::new(),
            store: "ok",
            differences: HashMap::new(),
            servers: HashMap::new(),
            live,
        };
        ticker.tick(now);
        ticker
    }

    async fn forever(mut self) {
        loop {
            let is_watched = self.live.process.activity.is_watched();
            let now = self.live.process.clock.instant();
            let due = (self.ticked + TICK).saturating_duration_since(now);
            tokio::time::sleep(if is_watched { due.min(COLLECT) } else { due }).await;
            let now = self.live.process.clock.instant();
            self.collect(now);
            if now >= self.ticked + TICK {
                self.tick(now);
            }
        }
    }

    fn collect(&mut self, now: Instant) {
        let process = &self.live.process;
        let elapsed = now - self.collected;
        process.activity.collect(process.clock.now(), elapsed);
        self.collected = now;
    }

    fn tick(&mut self, now: Instant) {
        let live = self.live.clone();
        let snapshot = live.current.load();
        let time = live.process.clock.now();
        if self.counted.is_none_or(|counted| now >= counted + COUNT) {
            self.counted = Some(now);
            self.count(time);
            self.compare_imitations(&snapshot);
        }
        let rules = snapshot.rules.iter().zip(&snapshot.rule_resources);
        let rules = rules.map(|((_, rule), resources)| self.figures(rule, resources));
        live.process.activity.tick(&TickInput {
            now: time,
            elapsed: now - self.ticked,
            connections: self.gate.open() as u64,
            rules: rules.collect(),
        });
        self.ticked = now;
        self.mark_store(time);
        self.mark_servers(&snapshot, time);
    }

    /// Counts the keys and the bans of all rules.
    fn count(&mut self, now: Timestamp) {
        let store = &self.live.process.store;
        let keys = store.keys(now).into_iter();
        self.keys = keys.map(|(slot, keys)| (slot, keys as u64)).collect();
        self.bans.clear();
        for (rule, bans) in store.ban_counts(now) {
            self.bans.insert(rule, bans as u64);
        }
    }

    /// Logs once if the body of a response with `imitate` differs from real ones: a client could tell them apart.
    fn compare_imitations(&mut self, snapshot: &Snapshot) {
        let mut differences = HashMap::new();
        for (rule, progress) in self.live.process.imitation_progress(snapshot) {
            let Some(difference) = progress.difference else {
                continue;
            };
            if !self.differences.contains_key(&rule) {
                warn!(%rule, "a shadow response differs from real ones: {difference}");
            }
            differences.insert(rule, difference);
        }
        self.differences = differences;
    }

    fn figures(&self, rule: &Rule, resources: &RuleResources) -> RuleFigures {
        let metrics = &resources.metrics;
        RuleFigures {
            name: rule.name.clone(),
            id: rule.id,
            dry_run: rule.dry_run,
            matched: metrics.matched_mitigate.get(),
            mitigated: metrics.mitigated.get(),
            would_mitigate: metrics.would_mitigate.get(),
            candidate: metrics.divergence.as_ref().map(|both| CandidateTotals {
                stricter: both.mitigates.get(),
                laxer: both.admits.get(),
            }),
            keys: self.keys.get(&rule.id.slot).copied().unwrap_or(0),
            bans: self.bans.get(&rule.id).copied().unwrap_or(0),
        }
    }

    /// Marks a change of the store's state.
    fn mark_store(&mut self, now: Timestamp) {
        let state = self.live.process.store.state(now);
        let before = std::mem::replace(&mut self.store, state);
        if state != before {
            let label = format!("store: {state}");
            let text = format!("the state of the store has changed from {before} to {state}");
            self.mark(MarkerKind::Store, state != "ok", (label, text), now);
        }
    }

    /// Marks servers that have become ineligible or eligible.
    fn mark_servers(&mut self, snapshot: &Snapshot, now: Timestamp) {
        let mut servers = HashMap::new();
        for upstream in &snapshot.upstreams {
            for server in upstream.servers() {
                if let Some(trouble) = server.trouble() {
                    let name = (upstream.name.clone(), server.label().to_string());
                    servers.insert(name, trouble);
                }
            }
        }
        let before = std::mem::replace(&mut self.servers, servers);
        for (name, trouble) in &self.servers {
            if !before.contains_key(name) {
                self.mark_server(name, Some(trouble), now);
            }
        }
        for name in before
            .keys()
            .filter(|name| !self.servers.contains_key(*name))
        {
            self.mark_server(name, None, now);
        }
    }

    fn mark_server(
        &self,
        (upstream, server): &(Arc<str>, String),
        trouble: Option<&str>,
        now: Timestamp,
    ) {
        let label = format!("server: {server}");
        let text = match trouble {
            Some(trouble) => format!("{upstream} no longer uses {server}: {trouble}"),
            None => format!("{upstream} uses {server} again"),
        };
        self.mark(MarkerKind::Server, trouble.is_some(), (label, text), now);
    }

    fn mark(&self, kind: MarkerKind, bad: bool, (label, text): (String, String), now: Timestamp) {
        self.live.process.activity.mark(Marker {
            ts: now,
            kind,
            bad,
            label,
            text,
        });
    }
}
