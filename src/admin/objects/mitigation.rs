//! Bans, exemptions, keys and clients.

use serde::Serialize;

use super::{ApiTime, RawJson};

/// A ban in force.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct MitigationObject {
    /// 128 bits of the key's hash, in hexadecimal digits.
    pub id: String,
    pub rule: String,
    /// The readable key. It identifies the ban unless it is cut or contains a hash.
    pub key: String,
    pub action: &'static str,
    /// Whether the rule is a dry run: the ban mitigates nothing.
    pub dry_run: bool,
    pub until: ApiTime,
    /// The ordinal of this offence of the key, counted from 1.
    pub offence: u32,
    /// `None` if unknown.
    pub since: Option<ApiTime>,
    /// `rule` or `manual`.
    pub by: &'static str,
    /// Requests that this ban has mitigated on this gateway.
    pub mitigated: u64,
    /// The newest of them.
    pub last_seen: Option<ApiTime>,
    /// Distinct client addresses on this gateway, up to 64.
    pub addresses: u32,
    /// A sentence. `None` if it is no longer known.
    pub cause: Option<String>,
    /// `fleet` or `node`.
    pub scope: &'static str,
}

/// A page of bans.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct MitigationPage {
    /// Latest end first.
    pub items: Vec<MitigationObject>,
    /// The number of bans that the filters select.
    pub total: usize,
    /// The cursor of the next page. `None` on the last one.
    pub next: Option<String>,
    /// The size of this view without filters, as for the next two.
    pub all: usize,
    pub likely_false_positives: usize,
    pub manual: usize,
    pub common: Vec<CommonPartObject>,
}

/// A key part that most bans of a rule share.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct CommonPartObject {
    pub rule: String,
    pub field: String,
    pub value: String,
    /// 0.8 to 1.
    pub share_ratio: f64,
}

/// The result of unbanning several keys.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs)]
pub struct RemovedObject {
    pub removed: usize,
    /// `fleet` or `node`.
    pub scope: &'static str,
}

/// One of the hottest keys of a rule.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct TopKeyObject {
    pub key: String,
    pub parts: Vec<KeyPartObject>,
    /// 0 during a ban.
    pub count: u64,
    pub limit: u64,
    /// `None` if the key is not banned.
    pub banned_until: Option<ApiTime>,
    /// Country, network, rate, and whether the candidate would refuse the key.
    pub note: String,
    /// The newest request in the form of an explain request. `None` if it is not known.
    pub sample: Option<RawJson>,
}

/// One part of a key.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct KeyPartObject {
    pub field: String,
    /// `None` if the part is missing.
    pub value: Option<String>,
}

/// What is known about a client.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct ClientObject {
    /// `None` if only a key is known.
    pub ip: Option<String>,
    pub asn: Option<u32>,
    pub as_name: Option<String>,
    pub country: Option<String>,
    /// `None` if it is not exempt.
    pub exempt_until: Option<ApiTime>,
    pub bans: Vec<MitigationObject>,
    /// The newest 20.
    pub decisions: Vec<RawJson>,
    /// Mitigated requests since `window_start`.
    pub mitigated: u64,
    /// `None` if forwarded requests are not recorded.
    pub forwarded: Option<u64>,
    /// The time of the oldest recorded decision. `None` if there is none.
    pub window_start: Option<ApiTime>,
}

/// An address or a network that no rule acts on.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct ExemptionObject {
    pub ip: String,
    pub since: ApiTime,
    pub until: ApiTime,
    pub note: Option<String>,
    /// `fleet` or `node`.
    pub scope: &'static str,
}
