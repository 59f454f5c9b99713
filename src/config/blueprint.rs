//! A configuration as it is meant: checked and compiled, but without any effect yet.
//!
//! [`crate::process::ProcessState::install`] makes a [`crate::snapshot::Snapshot`] of it. A
//! blueprint that is dropped leaves no trace: it has registered nothing and opened nothing for
//! writing.

use std::net::SocketAddr;
use std::sync::Arc;

use super::file::AccessLogSettings;
use crate::action::{FixedResponse, ResponseTemplate};
use crate::observe::{LogOutput, Redactor};
use crate::route::{RedirectTemplate, RoutePattern};
use crate::rules::{Key, RuleSet};
use crate::snapshot::{GatewaySettings, ListenerSettings, RouteConfig};
use crate::upstream::{ServerSpec, Upstream, UpstreamTls};

/// One configuration, not in use yet.
pub struct Blueprint {
    /// Where clients connect.
    pub listeners: Vec<ListenerSettings>,
    /// The upstreams, sorted by name.
    pub upstreams: Vec<UpstreamBlueprint>,
    /// The routes, in file order.
    pub routes: Vec<(RoutePattern, RouteConfig<TargetBlueprint>)>,
    /// The rules. Their ids have no slots.
    pub rules: RuleSet,
    /// What belongs to each rule beside its logic, by rule index.
    pub rule_resources: Vec<RuleBlueprint>,
    /// Which values are secret; it has no secret to hash them with.
    pub redactor: Redactor,
    /// Where the access log goes.
    pub access: AccessLogSettings,
    /// How an entry of the access log is written.
    pub access_format: LogOutput,
    /// Connections at once.
    pub max_connections: usize,
    /// The admin port.
    pub admin: Option<SocketAddr>,
    /// The settings that need no installation.
    pub settings: GatewaySettings,
}

/// An upstream that shares nothing with earlier configurations yet.
pub struct UpstreamBlueprint {
    /// Its name and settings, without servers and TLS.
    pub upstream: Upstream,
    /// Its servers.
    pub servers: Vec<ServerSpec>,
    /// TLS to its servers.
    pub tls: Option<UpstreamTls>,
    /// The key that chooses the server, with `balance = "hash"`.
    pub hash_key: Option<Arc<Key>>,
}

/// The target of a route.
pub enum TargetBlueprint {
    /// The upstream at this index of [`Blueprint::upstreams`].
    Upstream(usize),
    /// A fixed response.
    Reply(FixedResponse),
    /// Another address.
    Redirect(RedirectTemplate),
}

/// What belongs to a rule beside its logic.
pub struct RuleBlueprint {
    /// Its configured response.
    pub response: Option<Arc<ResponseTemplate>>,
    /// `divert`: the index of the upstream that responds instead.
    pub divert: Option<usize>,
}
