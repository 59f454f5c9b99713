//! A configuration as it is meant: checked and compiled, but without any effect yet.
//!
//! [`crate::process::ProcessState::install`] makes a [`crate::snapshot::Snapshot`] of it. A
//! blueprint that is dropped leaves no trace: it has registered nothing and opened nothing for
//! writing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::file::Access;
use crate::action::{Reply, ResponseTemplate};
use crate::decision::RuleIndex;
use crate::expr::Lists;
use crate::facts::client_ip::ClientIp;
use crate::geo::Geo;
use crate::listen::Limits;
use crate::observe::{Format, Redactor};
use crate::route::{Edits, Pattern, Redirect};
use crate::rules::{Key, RuleSet};
use crate::snapshot::{KeyField, PerIp, StartupSettings};
use crate::tls::{Certificate, NewTerminator};
use crate::upstream::{NewSecure, Place, Upstream};

/// One configuration, not in use yet.
pub struct Blueprint {
    /// Where clients connect.
    pub listeners: Vec<ListenerBlueprint>,
    /// The upstreams, sorted by name.
    pub upstreams: Vec<UpstreamBlueprint>,
    /// The routes, in file order.
    pub routes: Vec<(Pattern, RouteBlueprint)>,
    /// The rules. Their ids have no slots.
    pub rules: RuleSet,
    /// What belongs to each rule beside its logic, by rule index.
    pub rule_resources: Vec<RuleBlueprint>,
    /// Which values are secret; it has no secret to hash them with.
    pub redactor: Redactor,
    /// Where the access log goes.
    pub access: Access,
    /// How an entry of the access log is written.
    pub access_format: Format,
    /// The certificate of listeners without one. `None` if no configuration of this process has
    /// needed one so far.
    pub development: Option<Certificate>,
    /// The settings that only a restart can change.
    pub startup: StartupSettings,
    /// Connections at once.
    pub max_connections: usize,
    /// Limits of a connection and a request.
    pub limits: Limits,
    /// The largest request body. `None` for no limit.
    pub max_body: Option<u64>,
    /// How long a stopping gateway waits for its clients.
    pub drain_timeout: Duration,
    /// Requests that may be held at once.
    pub max_held: usize,
    /// How a client's address is found.
    pub client_ip: ClientIp,
    /// How many connections a client may have. `None` for no limit.
    pub per_ip: Option<PerIp>,
    /// Disabled rules, each with the index of the rule that follows.
    pub disabled: Vec<(RuleIndex, Arc<str>)>,
    /// The lists that rules name.
    pub lists: Lists,
    /// Autonomous systems and countries.
    pub geo: Geo,
    /// What rules read and the access log would not show otherwise.
    pub key_fields: Vec<KeyField>,
    /// The admin port.
    pub admin: Option<SocketAddr>,
    /// The token that the admin port requires.
    pub admin_token: Option<String>,
}

/// A listener without an id and metrics.
pub struct ListenerBlueprint {
    /// The address to bind.
    pub address: SocketAddr,
    /// HTTP/2 is spoken.
    pub h2: bool,
    /// HTTP/1.1 is spoken.
    pub h1: bool,
    /// A PROXY header comes first, from trusted proxies alone.
    pub proxy_protocol: bool,
    /// `None` for plain TCP.
    pub tls: Option<NewTerminator>,
}

/// An upstream that shares nothing with earlier configurations yet.
pub struct UpstreamBlueprint {
    /// Its name and settings, without servers and TLS.
    pub upstream: Upstream,
    /// Its servers.
    pub servers: Vec<Place>,
    /// TLS to its servers.
    pub tls: Option<NewSecure>,
    /// The key that chooses the server, with `balance = "hash"`.
    pub hash_key: Option<Arc<Key>>,
}

/// A route.
pub struct RouteBlueprint {
    /// Where its requests go.
    pub target: TargetBlueprint,
    /// What is changed in requests and responses. `None` for nothing.
    pub edits: Option<Arc<Edits>>,
}

/// The target of a route.
pub enum TargetBlueprint {
    /// The upstream at this index of [`Blueprint::upstreams`].
    Upstream(usize),
    /// A fixed response.
    Reply(Reply),
    /// Another address.
    Redirect(Redirect),
}

/// What belongs to a rule beside its logic.
pub struct RuleBlueprint {
    /// Its configured response.
    pub response: Option<Arc<ResponseTemplate>>,
    /// `divert`: the index of the upstream that responds instead.
    pub divert: Option<usize>,
}
