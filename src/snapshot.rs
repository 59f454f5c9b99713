//! One configuration, ready to serve.
//!
//! A [`Snapshot`] never changes. A request uses one from start to end; a reload replaces it.
//! [`crate::process::ProcessState`] holds the state that survives a reload.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::action::imitate::ResponseClass;
use crate::action::{ErrorPages, FixedResponse, QuotaNames, ResponseTemplate};
use crate::decision::{Action, RuleIndex, Verdict};
use crate::expr::{FieldId, NamedLists, Scalar, ValueType};
use crate::facts::client_ip::{ClientIpResolver, IpPrefixes};
use crate::facts::{ClientConnection, ClientCredentials, KnownClients, RequestHead};
use crate::geo::GeoLookup;
use crate::listen::ConnectionLimits;
use crate::observe::{AccessLog, ListenerMetrics, Redactor, RuleMetrics};
use crate::route::{RedirectTemplate, RoutableRequest, RouteEdits, RoutePattern, RouteTable};
use crate::rules::{Key, Rule, RuleSet, StoreMode};
use crate::store::StoreBounds;
use crate::tls::{Certificate, TlsTerminator};
use crate::upstream::Upstream;

/// One configuration, ready to serve.
pub struct Snapshot {
    /// The listeners.
    pub listeners: Vec<Arc<ListenerConfig>>,
    /// The routes.
    pub routes: RouteTable<RouteConfig>,
    /// The rules.
    pub rules: RuleSet,
    /// The response and the metrics of each rule, by rule index.
    pub rule_resources: Vec<RuleResources>,
    /// The rules with shadow responses that imitate real ones.
    pub imitating: Vec<ImitatingRule>,
    /// The constant parts of the quota headers.
    pub quota_names: QuotaNames,
    /// The access log. `None` if it is off.
    pub access: Option<AccessLog>,
    /// Which values are secret, and the hashes that replace them.
    pub redactor: Redactor,
    /// The upstreams of this snapshot.
    pub upstreams: Vec<Arc<Upstream>>,
    /// How the cookies of clients are checked and issued. `None` if none are.
    pub credentials: Option<ClientCredentials>,
    /// The settings that need no installation.
    pub settings: GatewaySettings,
}

/// The settings that a snapshot takes from its blueprint unchanged.
pub struct GatewaySettings {
    /// The limits of a connection and a request.
    pub limits: ConnectionLimits,
    /// The maximum size of a request body, in bytes, if the route sets none. `None` for no limit.
    pub max_body: Option<u64>,
    /// The error pages of requests without a route. `None` if there are none.
    pub errors: Option<Arc<ErrorPages>>,
    /// The maximum number of bytes of a request body that rules can read.
    pub inspect_body: usize,
    /// The drain timeout.
    pub drain_timeout: Duration,
    /// How long the listeners keep accepting connections after a stop signal.
    pub drain_delay: Duration,
    /// The maximum number of requests held at once.
    pub max_held: usize,
    /// How a client's address is determined.
    pub client_ip: ClientIpResolver,
    /// The maximum number of connections per client. `None` for no limit.
    pub per_ip: Option<PerIp>,
    /// The disabled rules, in order.
    pub disabled: Vec<DisabledRule>,
    /// The lists that rules refer to.
    pub lists: NamedLists,
    /// The databases and overrides of autonomous systems and countries.
    pub geo: GeoLookup,
    /// What the access log and the responses show of each request in addition to its own data.
    pub logged: LoggedValues,
    /// The token that the admin port requires. `None` if it requires none.
    pub admin_token: Option<String>,
    /// The certificate of listeners without one, which a reload keeps. `None` if no configuration of
    /// this process has needed one so far.
    pub development: Option<Certificate>,
    /// How the gateway challenges clients. `None` without `[challenge]`.
    pub challenge: Option<ChallengeConfig>,
    /// How rules share their counters with other gateways, unless they have a setting of their own.
    pub store_mode: StoreMode,
    /// The settings that only a restart can change.
    pub startup: StartupSettings,
}

/// A rule with `enabled = false`. It never evaluates a request.
pub struct DisabledRule {
    /// The index of the enabled rule that follows.
    pub next: RuleIndex,
    /// The rule.
    pub rule: Rule,
}

/// How the gateway challenges clients.
#[derive(Clone, Debug)]
pub struct ChallengeConfig {
    /// 1 to 6; each step doubles the work.
    pub difficulty: u8,
    /// The time for which a clearance is valid, in seconds.
    pub lifetime: u32,
    /// The path that the gateway serves itself, with a final slash.
    pub path: Box<str>,
    /// The path for solutions.
    pub url: Box<str>,
    /// The origins whose pages may read challenges.
    pub origins: Vec<HeaderValue>,
    /// Whether a rule challenges, so that the gateway serves the path.
    pub is_served: bool,
}

/// Identifies a listener while it keeps its address, even if a reload changes its other settings. It is unique
/// within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerId(pub u32);
/// The maximum number of connections per client.
pub struct PerIp {
    /// The maximum number of open connections.
    pub limit: usize,
    /// The address prefixes that identify one client.
    pub prefixes: IpPrefixes,
}

/// A listener.
pub struct ListenerConfig {
    /// The listener's id.
    pub id: ListenerId,
    /// The name, or else the address as configured.
    pub label: Arc<str>,
    /// The listener's metrics.
    pub metrics: ListenerMetrics,
    /// The listener's settings.
    pub settings: ListenerSettings,
}

/// The settings of a listener.
pub struct ListenerSettings {
    /// The name in logs and metrics. `None` for the address.
    pub name: Option<Arc<str>>,
    /// The address to bind.
    pub address: SocketAddr,
    /// Whether HTTP/2 is enabled.
    pub h2: bool,
    /// Whether HTTP/1.1 is enabled.
    pub h1: bool,
    /// Whether connections start with a PROXY header, which only trusted proxies may send.
    pub proxy_protocol: bool,
    /// TLS termination. `None` for plain TCP.
    pub tls: Option<TlsTerminator>,
}

/// The target and the changes of a route.
pub struct RouteConfig<T = RouteTarget> {
    /// The route's target.
    pub target: T,
    /// The changes to requests and responses. `None` if there are none.
    pub edits: Option<Arc<RouteEdits>>,
    /// The timeout for the response head. `None` for that of the upstream.
    pub response_timeout: Option<Duration>,
    /// The maximum size of a request body, in bytes. `None` for no limit.
    pub max_body: Option<u64>,
    /// The error pages. `None` if there are none.
    pub errors: Option<Arc<ErrorPages>>,
}

/// The target of a route.
pub enum RouteTarget {
    /// An upstream.
    Upstream {
        /// The upstream.
        upstream: Arc<Upstream>,
        /// The key that assigns requests to servers. `None` if the upstream's balancing needs none.
        hash_key: Option<Arc<Key>>,
    },
    /// A fixed response.
    Reply(FixedResponse),
    /// A redirect with this status.
    Redirect(RedirectTemplate, StatusCode),
}

/// The response, upstream and metrics of a rule.
pub struct RuleResources {
    /// The rule's configured response.
    pub response: Option<Arc<ResponseTemplate>>,
    /// With `divert`, the upstream that receives the request instead.
    pub divert: Option<RouteTarget>,
    /// The rule's metrics.
    pub metrics: RuleMetrics,
}

/// A rule with shadow responses that imitate real ones.
#[derive(Clone, Debug)]
pub struct ImitatingRule {
    /// The rule.
    pub rule: RuleIndex,
    /// The rule's name.
    pub name: Arc<str>,
    /// The status of its shadow responses.
    pub status: StatusCode,
}

/// What the access log and the responses show of each request in addition to its own data.
pub struct LoggedValues {
    /// The values that rules read and that the access log would not show otherwise.
    pub key_fields: Vec<KeyField>,
    /// The additional fields of the access log.
    pub fields: Vec<LogField>,
    /// The response header that carries the id of the request. `None` for none.
    pub request_id_header: Option<HeaderName>,
}

/// A value that rules read and that the access log shows under `key_fields`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyField {
    /// The name in the log, in the syntax of expressions.
    pub label: String,
    /// The field.
    pub field: FieldId,
    /// The field's type.
    pub ty: ValueType,
    /// The entry of a map. `None` for other fields.
    pub entry: Option<Box<[u8]>>,
    /// Whether the value is secret: the log shows a hash.
    pub secret: bool,
}

/// An additional field of the access log.
pub struct LogField {
    /// The name in the log.
    pub name: String,
    /// The expression that reads the value.
    pub scalar: Scalar,
    /// Whether the value is secret: the log shows a hash.
    pub secret: bool,
}

/// Settings that only a restart can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupSettings {
    /// The number of worker threads; 0 for one per core.
    pub workers: usize,
    /// The capacity of the store.
    pub bounds: StoreBounds,
    /// The counter snapshot file. `None` if counters and bans do not survive a restart.
    pub snapshot: Option<PathBuf>,
    /// The file with this gateway's secret. `None` if a secret is generated at the start.
    pub secret_file: Option<PathBuf>,
    /// The file with the process id. `None` without one.
    pub pid_file: Option<PathBuf>,
    /// The settings of the shared store as text, in a fixed order. `None` if the counters are in memory.
    pub shared_store: Option<Vec<String>>,
}

// === impl Snapshot ===

impl Snapshot {
    /// Returns the route of a request. `None` if none matches.
    pub fn route_of(
        &self,
        head: &RequestHead<'_>,
        headers: &HeaderMap,
        connection: &ClientConnection,
    ) -> Option<(&RoutePattern, &RouteConfig)> {
        self.routes.find(&RoutableRequest {
            head,
            headers,
            connection,
            client_ip: &self.settings.client_ip,
        })
    }

    /// Returns the maximum size of a request body, in bytes. `None` for no limit.
    pub fn max_body(&self, route: Option<&RouteConfig>) -> Option<u64> {
        route.map_or(self.settings.max_body, |route| route.max_body)
    }

    /// Returns the error pages for a request. `None` if there are none.
    pub fn error_pages<'a>(&'a self, route: Option<&'a RouteConfig>) -> Option<&'a ErrorPages> {
        let pages = route.map_or(&self.settings.errors, |route| &route.errors);
        pages.as_deref()
    }

    /// Returns how clients become known. `None` if none can.
    pub fn known_clients(&self) -> Option<&KnownClients> {
        self.credentials.as_ref()?.known.as_ref()
    }

    /// Returns whether some requests have stages before the rules run: the path of challenges, or a look at the body.
    #[inline]
    pub fn has_early_stages(&self) -> bool {
        self.settings.challenge.is_some() || self.needs_bodies()
    }

    /// Returns whether a request body can be needed before the rules run.
    #[inline]
    pub fn needs_bodies(&self) -> bool {
        self.rules.needs_bodies() || self.known_clients().is_some_and(KnownClients::needs_bodies)
    }

    /// Returns whether a learned response class still belongs to a route of this snapshot.
    pub fn wants(&self, kind: &ResponseClass) -> bool {
        let mut routes = self.routes.iter();
        let known = routes.any(|(pattern, route)| {
            *pattern.label() == kind.route && route.target.name() == Some(&*kind.upstream)
        });
        known && !self.imitating.is_empty()
    }

    /// Returns the target of a request that is not stopped: that of its route or of a `divert` rule.
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
    /// Returns the rules that imitate: those that respond with a success.
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
    /// The kind of target, as in the output of `explain`.
    pub fn kind(&self) -> &'static str {
        match self {
            RouteTarget::Upstream { .. } => "upstream",
            RouteTarget::Reply(_) => "respond",
            RouteTarget::Redirect(..) => "redirect",
        }
    }

    /// Returns the upstream's name. `None` if the gateway responds itself.
    pub fn name(&self) -> Option<&str> {
        match self {
            RouteTarget::Upstream { upstream, .. } => Some(&upstream.name),
            RouteTarget::Reply(_) | RouteTarget::Redirect(..) => None,
        }
    }
}
