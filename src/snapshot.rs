//! One configuration, ready to serve.
//!
//! A [`Snapshot`] never changes. A request uses one from its first fact to its last count; a
//! reload replaces it. [`crate::process::ProcessState`] is what a reload must not lose.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::action::imitate::ResponseClass;
use crate::action::{FixedResponse, QuotaNames, ResponseTemplate};
use crate::decision::{Action, RuleIndex, Verdict};
use crate::expr::{FieldId, NamedLists, ValueType};
use crate::facts::client_ip::{ClientIpResolver, IpPrefixes};
use crate::geo::GeoLookup;
use crate::listen::ConnectionLimits;
use crate::observe::{AccessLog, ListenerMetrics, Redactor, RuleMetrics};
use crate::route::{RedirectTemplate, RouteEdits, RouteTable};
use crate::rules::{Key, RuleSet};
use crate::store::StoreBounds;
use crate::tls::{Certificate, TlsTerminator};
use crate::upstream::Upstream;

/// One configuration, ready to serve.
pub struct Snapshot {
    /// Where clients connect.
    pub listeners: Vec<Arc<ListenerConfig>>,
    /// Where requests go.
    pub routes: RouteTable<RouteConfig>,
    /// What is counted and stopped.
    pub rules: RuleSet,
    /// The response and the metrics of each rule, by rule index.
    pub rule_resources: Vec<RuleResources>,
    /// The rules whose shadow responses imitate real ones.
    pub imitating: Vec<ImitatingRule>,
    /// The rate-limit headers' fixed parts.
    pub quota_names: QuotaNames,
    /// The access log; `None`: it is off.
    pub access: Option<AccessLog>,
    /// Which values are secret, and what stands in for them.
    pub redactor: Redactor,
    /// What this snapshot forwards to.
    pub upstreams: Vec<Arc<Upstream>>,
    /// The settings that need no installation.
    pub settings: GatewaySettings,
}

/// The settings that a snapshot takes from its blueprint unchanged.
pub struct GatewaySettings {
    /// Limits of a connection and a request.
    pub limits: ConnectionLimits,
    /// The largest request body. `None` for no limit.
    pub max_body: Option<u64>,
    /// How long a stopping gateway waits for its clients.
    pub drain_timeout: Duration,
    /// Requests that may be held at once.
    pub max_held: usize,
    /// How a client's address is found.
    pub client_ip: ClientIpResolver,
    /// How many connections a client may have. `None` for no limit.
    pub per_ip: Option<PerIp>,
    /// Disabled rules, each with the index of the rule that follows.
    pub disabled: Vec<(RuleIndex, Arc<str>)>,
    /// The lists that rules name.
    pub lists: NamedLists,
    /// Autonomous systems and countries.
    pub geo: GeoLookup,
    /// What rules read and the access log would not show otherwise.
    pub key_fields: Vec<KeyField>,
    /// The token that the admin port requires. `None` if it requires none.
    pub admin_token: Option<String>,
    /// The certificate of listeners without one, which a reload keeps. `None` if no configuration of
    /// this process has needed one so far.
    pub development: Option<Certificate>,
    /// The settings that only a restart can change.
    pub startup: StartupSettings,
}

/// A listener for as long as it has its address, whatever else a reload changes. No two listeners
/// of a process ever have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerId(pub u32);
/// How many connections one client may have.
pub struct PerIp {
    /// So many at once.
    pub limit: usize,
    /// What of its address makes it one client.
    pub prefixes: IpPrefixes,
}

/// Where clients connect.
pub struct ListenerConfig {
    /// Which one it is.
    pub id: ListenerId,
    /// The address as configured.
    pub label: Arc<str>,
    /// Its counters.
    pub metrics: ListenerMetrics,
    /// Its settings.
    pub settings: ListenerSettings,
}

/// The settings of a listener.
pub struct ListenerSettings {
    /// The address to bind.
    pub address: SocketAddr,
    /// HTTP/2 is spoken.
    pub h2: bool,
    /// HTTP/1.1 is spoken.
    pub h1: bool,
    /// A PROXY header comes first, from trusted proxies alone.
    pub proxy_protocol: bool,
    /// `None` for plain TCP.
    pub tls: Option<TlsTerminator>,
}

/// What becomes of the requests that take a route.
pub struct RouteConfig<T = RouteTarget> {
    /// Where they go.
    pub target: T,
    /// What is changed in requests and responses. `None` for nothing.
    pub edits: Option<Arc<RouteEdits>>,
}

/// Where a route leads.
pub enum RouteTarget {
    /// To an origin.
    Upstream {
        /// The origin.
        upstream: Arc<Upstream>,
        /// What requests share that go to the same server, where the upstream asks for it.
        hash_key: Option<Arc<Key>>,
    },
    /// A fixed response.
    Reply(FixedResponse),
    /// Another address.
    Redirect(RedirectTemplate),
}

/// What belongs to a rule beside its logic.
pub struct RuleResources {
    /// Its configured response.
    pub response: Option<Arc<ResponseTemplate>>,
    /// With `divert`: the upstream that gets the request instead.
    pub divert: Option<RouteTarget>,
    /// Its counters.
    pub metrics: RuleMetrics,
}

/// A rule whose shadow responses imitate real ones.
#[derive(Clone, Debug)]
pub struct ImitatingRule {
    /// The rule.
    pub rule: RuleIndex,
    /// Its name.
    pub name: Arc<str>,
    /// The status of its responses.
    pub status: StatusCode,
}

/// Something a rule reads that the access log shows under `key_fields`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyField {
    /// The name in the log, as a rule would write it.
    pub label: String,
    /// The field.
    pub field: FieldId,
    /// Its type.
    pub ty: ValueType,
    /// The entry of a map.
    pub entry: Option<Box<[u8]>>,
    /// The value is a secret: the log shows a hash.
    pub secret: bool,
}

/// Settings that only a restart can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupSettings {
    /// Threads that serve; 0: one a core.
    pub workers: usize,
    /// How much the store may keep.
    pub bounds: StoreBounds,
    /// Where counters and bans are kept over a restart; `None`: nowhere.
    pub snapshot: Option<PathBuf>,
    /// Where the secret of this gateway is; `None`: it is made at the start.
    pub secret_file: Option<PathBuf>,
}

// === impl Snapshot ===

impl Snapshot {
    /// What is known of a route that is gone is of no use, and of none to another route.
    pub fn wants(&self, kind: &ResponseClass) -> bool {
        let mut routes = self.routes.iter();
        let known = routes.any(|(pattern, route)| {
            *pattern.label() == kind.route && route.target.name() == Some(&*kind.upstream)
        });
        known && !self.imitating.is_empty()
    }

    /// Where a request goes that is not stopped: where its route leads, or the rule that diverts it.
    pub fn leads<'a>(
        &'a self,
        verdict: Verdict,
        route: Option<&'a RouteConfig>,
    ) -> Option<&'a RouteTarget> {
        let Verdict::Divert { rule } = verdict else {
            return route.map(|route| &route.target);
        };
        let kit = self.rule_resources.get(usize::from(rule.0))?;
        kit.divert.as_ref()
    }
}

// === impl ImitatingRule ===

impl ImitatingRule {
    /// The rules that imitate: those that respond with a success.
    pub fn among(rules: &RuleSet, kits: &[RuleResources]) -> Vec<Self> {
        let shadows = rules.iter().zip(kits);
        let shadows = shadows.filter(|((_, rule), _)| rule.action == Action::Shadow);
        let imitating = shadows.filter_map(|((index, rule), kit)| {
            let canned = kit.response.as_deref()?;
            let imitates = canned.imitate && canned.status.is_success();
            imitates.then(|| Self {
                rule: index,
                name: rule.name.clone(),
                status: canned.status,
            })
        });
        imitating.collect()
    }
}

// === impl RouteTarget ===

impl RouteTarget {
    /// What it is, as `explain` calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            RouteTarget::Upstream { .. } => "upstream",
            RouteTarget::Reply(_) => "respond",
            RouteTarget::Redirect(_) => "redirect",
        }
    }

    /// The upstream. `None` if the gateway responds itself.
    pub fn name(&self) -> Option<&str> {
        match self {
            RouteTarget::Upstream { upstream, .. } => Some(&upstream.name),
            RouteTarget::Reply(_) | RouteTarget::Redirect(_) => None,
        }
    }
}
