//! A checked and compiled configuration that has no effect yet.
//!
//! [`crate::process::ProcessState::install`] turns it into a [`crate::snapshot::Snapshot`].
//! Dropping a blueprint has no side effects: it has registered nothing and opened nothing for
//! writing.

use std::net::SocketAddr;
use std::sync::Arc;

use http::StatusCode;

use super::file::AccessLogSettings;
use crate::action::{FixedResponse, ResponseTemplate};
use crate::credential::SecretRing;
use crate::facts::KnownClients;
use crate::observe::{LogOutput, Redactor};
use crate::route::{RedirectTemplate, RoutePattern};
use crate::rules::{Key, OnStoreFailure, RuleSet};
use crate::snapshot::{GatewaySettings, ListenerSettings, RouteConfig};
use crate::store::redis::RedisSettings;
use crate::upstream::{ServerSpec, Upstream, UpstreamTls};

/// One configuration that is not installed yet.
pub struct Blueprint {
    /// The listeners.
    pub listeners: Vec<ListenerSettings>,
    /// The upstreams, sorted by name.
    pub upstreams: Vec<UpstreamBlueprint>,
    /// The routes, in file order.
    pub routes: Vec<(RoutePattern, RouteConfig<TargetBlueprint>)>,
    /// The rules. Their ids have no slots yet.
    pub rules: RuleSet,
    /// The response and upstream of each rule, by rule index.
    pub rule_resources: Vec<RuleBlueprint>,
    /// Which values are secret. It has no secret for hashing yet.
    pub redactor: Redactor,
    /// The destination of the access log.
    pub access: AccessLogSettings,
    /// The format of an access log entry.
    pub access_format: LogOutput,
    /// The maximum number of open connections.
    pub connections: RequestedConnections,
    /// The address of the admin port. `None` if there is no admin port.
    pub admin: Option<SocketAddr>,
    /// The shared store. `None` if the counters are in memory, or if this replaces a running configuration.
    pub shared_store: Option<SharedStoreBlueprint>,
    /// How clients become known, and the secrets.
    pub credentials: CredentialBlueprint,
    /// The settings that need no installation.
    pub settings: GatewaySettings,
}

/// A maximum number of open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedConnections {
    /// The maximum.
    pub max: usize,
    /// Whether the file does not have it. A default may be lowered without a warning.
    pub is_default: bool,
}

/// A shared store that is not connected yet.
pub struct SharedStoreBlueprint {
    /// The connection.
    pub redis: RedisSettings,
    /// The share of each limit that one gateway enforces during a store outage.
    pub local_fraction: f64,
    /// What rules do during a store outage, unless they have a setting of their own.
    pub on_failure: OnStoreFailure,
}

/// How the cookies of clients are checked and issued, without the keys of this process.
pub struct CredentialBlueprint {
    /// What makes a client known. `None`: no client can become known.
    pub known: Option<KnownClients>,
    /// The time for which a clearance is valid, in seconds. `None`: no clearance is valid.
    pub clearance_lifetime: Option<u32>,
    /// The secrets from `server.secret_file`. `None` without a file, or if the secret of the process stays in use.
    pub secrets: Option<SecretRing>,
}

/// An upstream that shares no state with earlier configurations yet.
pub struct UpstreamBlueprint {
    /// Its name and settings, without servers and TLS.
    pub upstream: Upstream,
    /// Its servers.
    pub servers: Vec<ServerSpec>,
    /// The TLS settings for its servers. `None` for plain TCP.
    pub tls: Option<UpstreamTls>,
    /// The key that selects the server, with `balance = "hash"`.
    pub hash_key: Option<Arc<Key>>,
}

/// The target of a route.
pub enum TargetBlueprint {
    /// The upstream at this index of [`Blueprint::upstreams`].
    Upstream(usize),
    /// A fixed response.
    Reply(FixedResponse),
    /// A redirect to another address with this status.
    Redirect(RedirectTemplate, StatusCode),
}

/// The response and upstream of a rule.
pub struct RuleBlueprint {
    /// Its configured response. `None` for the default response.
    pub response: Option<Arc<ResponseTemplate>>,
    /// `divert`: the index of the upstream that gets the request instead.
    pub divert: Option<usize>,
}
