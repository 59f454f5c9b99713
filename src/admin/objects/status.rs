//! The state of the gateway, and what needs attention.

use serde::Serialize;

use super::{ApiTime, RawJson};

/// The state of the gateway.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct StatusObject {
    pub version: &'static str,
    /// The host name.
    pub instance: String,
    /// `running` or `draining`.
    pub state: &'static str,
    pub uptime_s: u64,
    pub now: ApiTime,
    pub connections: ConnectionsObject,
    pub held: HeldObject,
    pub store: StoreObject,
    pub config: ConfigObject,
    pub certificates: Vec<CertificateObject>,
    pub log_lines_dropped: u64,
    pub panics: u64,
    /// The newest tick. `None` if there is none yet.
    pub tick: Option<RawJson>,
    pub attention: Vec<AttentionObject>,
}

/// The connections of clients.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs)]
pub struct ConnectionsObject {
    pub open: usize,
    pub max: usize,
    /// The open tunnels, such as WebSockets, of the process.
    pub tunnels: usize,
}

/// The requests that rules hold.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs)]
pub struct HeldObject {
    pub now: usize,
    pub max: usize,
}

/// The store of counters and bans. Some fields are `None` for a memory store.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct StoreObject {
    /// `memory` or `redis`.
    pub kind: &'static str,
    /// `exact` or `async`.
    pub mode: Option<&'static str>,
    /// `ok`, `degraded`, or during an outage `local`, `open` or `closed`.
    pub state: &'static str,
    /// When the store entered this state. `None` if it has always been in it.
    pub since: Option<ApiTime>,
    /// Why the state is not `ok`.
    pub error: Option<String>,
    pub local_fraction: Option<f64>,
    pub roundtrip_p99_ms: Option<f64>,
    pub keys: usize,
    pub max_keys: usize,
    pub bans: usize,
    pub max_bans: usize,
}

/// The configuration.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct ConfigObject {
    pub file: String,
    pub loaded_at: ApiTime,
    pub rules: usize,
    /// `None` before the first reload.
    pub last_reload: Option<LastReloadObject>,
}

/// The last reload.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct LastReloadObject {
    pub at: ApiTime,
    pub ok: bool,
    /// `SIGHUP` or `api`.
    pub by: &'static str,
    pub errors: Vec<ConfigErrorObject>,
}

/// An error in a configuration. Columns and lengths count characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs)]
pub struct ConfigErrorObject {
    pub file: String,
    pub line: usize,
    /// Starts at 1.
    pub column: usize,
    pub length: usize,
    pub message: String,
    /// The line with the error.
    pub source: String,
}

/// A certificate of a listener.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct CertificateObject {
    pub listener: String,
    /// The first name of the certificate.
    pub name: String,
    pub not_after: ApiTime,
}

/// How urgent an entry is, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AttentionLevel {
    /// Clients are refused or harmed, or soon will be.
    Crit,
    /// Something works less well than it should.
    Warn,
    /// Something to look at.
    Note,
}

/// Something that needs attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs)]
pub struct AttentionObject {
    pub id: String,
    pub level: AttentionLevel,
    /// A sentence without a final full stop.
    pub text: String,
    /// More text. Empty if there is nothing to add.
    pub detail: String,
    pub since: ApiTime,
    /// Where to look. `None` if there is no such section.
    pub link: Option<String>,
}
