//! The state that survives a reload, and the step that installs a configuration in it.
//!
//! [`ProcessState::install`] is the only step of a start or a reload that changes this state: reading and
//! compiling a file have no effect, so a rejected configuration leaves nothing to undo.

mod pid_file;

pub use pid_file::{PidFile, PidFileError};

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::action::QuotaNames;
use crate::action::imitate::{ImitationStore, LearningProgress};
use crate::body::budget::BodyBudget;
use crate::clock::{Clock, Timestamp};
use crate::config::blueprint::{
    Blueprint, CredentialBlueprint, RuleBlueprint, SharedStoreBlueprint, TargetBlueprint,
    UpstreamBlueprint,
};
use crate::config::file::AccessLogSettings;
use crate::credential::SecretRing;
use crate::facts::ClientCredentials;
use crate::observe::activity::ActivityHub;
use crate::observe::{AccessLog, LineSink, LogHandle, Metrics, RuleMetrics, RuleUsage};
use crate::route::RouteTable;
use crate::rules::registry::RuleRegistry;
use crate::rules::{Key, Rule, RuleSet};
use crate::snapshot::{
    ImitatingRule, ListenerConfig, ListenerId, ListenerSettings, RouteConfig, RouteTarget,
    RuleResources, Snapshot,
};
use crate::store::{Store, StoreBounds};
use crate::tls::TicketKeys;
use crate::upstream::{ServerRegistry, Upstream};

/// The state that survives a reload.
pub struct ProcessState {
    /// The clock.
    pub clock: Clock,
    /// When the process started.
    pub started_at: Timestamp,
    /// Counters and bans.
    pub store: Arc<Store>,
    /// The registered rules and their ids.
    pub rules: Mutex<RuleRegistry>,
    /// The number of held requests.
    pub held: AtomicUsize,
    /// The memory of inspected request bodies.
    pub inspected: BodyBudget,
    /// What is learned about real responses, for `imitate`.
    pub imitations: ImitationStore,
    /// Metrics.
    pub metrics: Metrics,
    /// What is remembered about recent requests, for people.
    pub activity: Arc<ActivityHub>,
    /// The shared state of the upstreams' servers.
    pub servers: ServerRegistry,
    /// The number of listeners that this process has had so far.
    pub listeners: AtomicU32,
    /// The keys of TLS session resumption.
    pub tickets: TicketKeys,
    /// The key of the hashes that replace secret values.
    pub secret: [u8; 32],
    /// The gateway's own log.
    pub log: LogHandle,
}

/// The current snapshot and the state that survives it.
pub struct RunningGateway {
    /// The current snapshot.
    pub current: Arc<ArcSwap<Snapshot>>,
    /// The state that survives a reload.
    pub process: ProcessState,
}

/// An upstream with the key that selects its server.
type InstalledUpstream = (Arc<Upstream>, Option<Arc<Key>>);

// === impl RunningGateway ===

impl RunningGateway {
    /// Requests that the access log is reopened after all queued lines were written. Returns `false` if it is not a
    /// file.
    pub fn reopen_access_log(&self) -> bool {
        let current = self.current.load();
        let sink = current.access.as_ref().map(AccessLog::sink);
        let file = sink.filter(|sink| sink.path().is_some());
        file.inspect(|sink| sink.reopen()).is_some()
    }
}

// === impl ProcessState ===

impl ProcessState {
    /// Creates the state of a process without a configuration, with a random secret. Fails if the system has no
    /// random numbers.
    pub fn new(clock: Clock, log: LogHandle, bounds: StoreBounds) -> io::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| {
            io::Error::other(format!(
                "the operating system returned no random bytes: {error}"
            ))
        })?;
        Ok(Self {
            tickets: TicketKeys::on(clock.clone()),
            started_at: clock.now(),
            clock,
            store: Arc::new(Store::memory(bounds).keyed(&secret)),
            rules: Mutex::default(),
            held: AtomicUsize::new(0),
            inspected: BodyBudget::default(),
            imitations: ImitationStore::default(),
            metrics: Metrics::new(),
            activity: Arc::new(ActivityHub::new(bounds.max_bans())),
            servers: ServerRegistry::default(),
            listeners: AtomicU32::new(0),
            secret,
            log,
        })
    }

    /// Uses a secret that other gateways share or that survives this process. The store must not have counted
    /// anything yet.
    pub fn with_secret(self, secret: [u8; 32]) -> Self {
        let mut process = Self { secret, ..self };
        process.store_mut().set_secret(&secret);
        process
    }

    /// Shares the counters with other gateways. The store must not have counted anything yet.
    pub fn with_shared_store(self, shared: SharedStoreBlueprint) -> Self {
        let store = Arc::into_inner(self.store).expect("no core has a handle of the store yet");
        let store = store.shared(shared.redis, shared.local_fraction, shared.on_failure);
        Self {
            store: Arc::new(store),
            ..self
        }
    }

    /// Returns the store, before any core uses it.
    pub fn store_mut(&mut self) -> &mut Store {
        Arc::get_mut(&mut self.store).expect("no core has a handle of the store yet")
    }

    /// Opens the access log of `blueprint`, or reuses the one that `previous` has open. `Ok(None)` if it is off.
    /// A failure changes nothing.
    pub fn open_access_log(
        &self,
        blueprint: &Blueprint,
        previous: Option<&Snapshot>,
    ) -> io::Result<Option<AccessLog>> {
        let path = match &blueprint.access {
            AccessLogSettings::Off => return Ok(None),
            AccessLogSettings::Stdout => None,
            AccessLogSettings::File(path) => Some(path.as_path()),
        };
        let open = previous.and_then(|snapshot| snapshot.access.as_ref());
        let open = open.map(AccessLog::sink).filter(|sink| sink.path() == path);
        let sink = match (open, path) {
            (Some(sink), None) => sink.clone(),
            (Some(sink), Some(_)) => {
                sink.reopen();
                sink.clone()
            }
            (None, None) => LineSink::stdout()?,
            (None, Some(path)) => LineSink::file(path)?,
        };
        Ok(Some(AccessLog::new(sink, blueprint.access_format)))
    }

    /// Registers the rules of `blueprint`, creates its servers or reuses existing ones, and resolves its
    /// metrics. `previous` is the snapshot that it will replace.
    ///
    /// State that only `previous` uses stays until [`ProcessState::retire_unused`].
    pub fn install(
        &self,
        blueprint: Blueprint,
        access: Option<AccessLog>,
        previous: Option<&Snapshot>,
    ) -> Snapshot {
        let listeners = self.install_listeners(blueprint.listeners, previous);
        let upstreams = blueprint.upstreams.into_iter();
        let upstreams: Vec<_> = upstreams.map(|one| self.install_upstream(one)).collect();
        let routes = blueprint.routes.into_iter();
        let routes = routes.filter_map(|(pattern, route)| {
            let target = target(route.target, &upstreams)?;
            let route = RouteConfig {
                target,
                edits: route.edits,
                response_timeout: route.response_timeout,
                max_body: route.max_body,
                errors: route.errors,
            };
            Some((pattern, route))
        });
        let routes = RouteTable::new(routes);
        let credentials = self.credentials(blueprint.credentials);
        let mut rules = blueprint.rules;
        rules.register(&mut self.rules.lock());
        let rule_resources = self.install_rules(&rules, blueprint.rule_resources, &upstreams);
        Snapshot {
            imitating: ImitatingRule::among(&rules, &rule_resources),
            quota_names: QuotaNames::of(&rules),
            listeners,
            routes,
            rules,
            rule_resources,
            access,
            redactor: blueprint.redactor.with_secret(&self.secret),
            upstreams: upstreams
                .into_iter()
                .map(|(upstream, _)| upstream)
                .collect(),
            credentials,
            settings: blueprint.settings,
        }
    }

    /// Builds the keys of client cookies: from the secrets of the configuration, or else from that of the process.
    /// `None` if the gateway gives clients no cookies.
    fn credentials(&self, blueprint: CredentialBlueprint) -> Option<ClientCredentials> {
        if blueprint.known.is_none() && blueprint.clearance_lifetime.is_none() {
            return None;
        }
        let own = || SecretRing::from_secret(self.secret);
        Some(ClientCredentials {
            ring: blueprint.secrets.unwrap_or_else(own),
            known: blueprint.known,
            clearance_lifetime: blueprint.clearance_lifetime,
        })
    }

    /// Removes the state that `current` does not use: the counters and bans of other rules, learned responses of
    /// other routes, and the metrics of other rules, listeners and servers. Returns the names of the removed
    /// rules, each with the number of bans that ended.
    pub fn retire_unused(&self, current: &Snapshot) -> Vec<(String, usize)> {
        let metrics = &self.metrics;
        let rules: Vec<&str> = current.rules.iter().map(|(_, rule)| &*rule.name).collect();
        metrics.keep_rules(&rules);
        keep_usage(metrics, &current.rules);
        let rules = current.rules.iter().map(|(_, rule)| (rule.id, &*rule.name));
        self.activity.keep_rules(&rules.collect::<Vec<_>>());
        let listeners: Vec<&str> = current.listeners.iter().map(|l| &*l.label).collect();
        metrics.keep_listeners(&listeners);
        let upstreams = current.upstreams.iter();
        let servers = upstreams.flat_map(|u| u.labels().map(|label| (&*u.name, label)));
        metrics.keep_upstreams(&servers.collect::<Vec<_>>());
        self.imitations.retain(|kind| current.wants(kind));
        let removed = self.rules.lock().retain(&current.rules.identities());
        let ids: Vec<_> = removed.iter().map(|rule| rule.id).collect();
        let ended = self.store.remove_rules(&ids, self.clock.now());
        let names = removed.into_iter().map(|rule| rule.name);
        names.zip(ended).collect()
    }

    /// Returns how much is learned for each rule that imitates responses.
    pub fn imitation_progress(&self, current: &Snapshot) -> Vec<(Arc<str>, LearningProgress)> {
        let imitating = current.imitating.iter().filter_map(|one| {
            let own = current.rule_resources.get(usize::from(one.rule.0))?;
            let template = own.response.as_deref()?;
            Some((
                one.name.clone(),
                self.imitations.progress(&one.name, template),
            ))
        });
        imitating.collect()
    }

    /// Installs listeners. One keeps the id of the previous one with its address. Several may have port 0.
    fn install_listeners(
        &self,
        listeners: Vec<ListenerSettings>,
        previous: Option<&Snapshot>,
    ) -> Vec<Arc<ListenerConfig>> {
        let before = previous.iter().flat_map(|snapshot| &snapshot.listeners);
        let mut known: Vec<_> = before.map(|l| (l.settings.address, l.id)).collect();
        let install = |mut settings: ListenerSettings| {
            let address = settings.address;
            let id = match known.iter().position(|(before, _)| *before == address) {
                Some(at) => known.remove(at).1,
                None => ListenerId(self.listeners.fetch_add(1, Ordering::Relaxed)),
            };
            let tls = settings.tls.take();
            settings.tls = tls.map(|tls| tls.with_tickets(&self.tickets));
            let named = settings.name.clone();
            let label = named.unwrap_or_else(|| address.to_string().into());
            Arc::new(ListenerConfig {
                id,
                metrics: self.metrics.listener(&label),
                label,
                settings,
            })
        };
        listeners.into_iter().map(install).collect()
    }

    /// Installs an upstream. An existing server keeps its health and connections.
    fn install_upstream(&self, blueprint: UpstreamBlueprint) -> InstalledUpstream {
        let servers = &self.servers;
        let mut upstream = blueprint.upstream.with_servers(blueprint.servers, servers);
        upstream.tls = blueprint.tls.map(|tls| servers.tls.adopt(tls));
        (Arc::new(upstream), blueprint.hash_key)
    }

    fn install_rules(
        &self,
        rules: &RuleSet,
        resources: Vec<RuleBlueprint>,
        upstreams: &[InstalledUpstream],
    ) -> Vec<RuleResources> {
        let installed = rules.iter().zip(resources).map(|((_, rule), own)| {
            let tried = rule.candidate.is_some();
            RuleResources {
                response: own.response,
                divert: own
                    .divert
                    .and_then(|index| upstream_target(index, upstreams)),
                metrics: RuleMetrics {
                    usage: self.usage(rule),
                    ..self.metrics.rule(&rule.name, rule.action.name(), tried)
                },
            }
        });
        installed.collect()
    }

    /// The series for the counter of a rule. `None` if its key has parts or it does not count.
    fn usage(&self, rule: &Rule) -> Option<RuleUsage> {
        let has_ratio = rule.total().is_some();
        has_usage(rule).then(|| self.metrics.rule_usage(&rule.name, has_ratio))
    }
}

/// Whether a rule has one counter for all requests.
fn has_usage(rule: &Rule) -> bool {
    rule.limiter.is_some() && rule.key.parts.is_empty()
}

/// Removes the series of rules that no longer have one counter for all requests.
fn keep_usage(metrics: &Metrics, rules: &RuleSet) {
    let counting = rules.iter().map(|(_, rule)| rule);
    let counting: Vec<&Rule> = counting.filter(|rule| has_usage(rule)).collect();
    let counts: Vec<&str> = counting.iter().map(|rule| &*rule.name).collect();
    let with_ratio = counting.iter().filter(|rule| rule.total().is_some());
    let totals: Vec<&str> = with_ratio.map(|rule| &*rule.name).collect();
    metrics.keep_usage(&counts, &totals);
}

fn target(blueprint: TargetBlueprint, upstreams: &[InstalledUpstream]) -> Option<RouteTarget> {
    match blueprint {
        TargetBlueprint::Upstream(index) => upstream_target(index, upstreams),
        TargetBlueprint::Reply(reply) => Some(RouteTarget::Reply(reply)),
        TargetBlueprint::Redirect(redirect, status) => {
            Some(RouteTarget::Redirect(redirect, status))
        }
    }
}

fn upstream_target(index: usize, upstreams: &[InstalledUpstream]) -> Option<RouteTarget> {
    let (upstream, hash_key) = upstreams.get(index)?.clone();
    Some(RouteTarget::Upstream { upstream, hash_key })
}
