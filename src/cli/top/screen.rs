//! What `lockgate top` can show, and the rows in its lists.

use std::net::IpAddr;

use serde_json::Value;

use super::api_fields::ApiFields as _;

/// What is on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopScreen {
    /// The figures, the entries that need attention, and the rules.
    Overview,
    /// A rule with its hottest keys.
    Rule(String),
    /// Active bans.
    Bans(BanSearch),
    /// One ban.
    Ban {
        /// The rule.
        rule: String,
        /// The key as listed.
        key: String,
    },
    /// The decisions of the stream.
    Decisions(StreamFilter),
    /// The servers of all upstreams.
    Upstreams,
    /// One server.
    Server {
        /// The name of the upstream.
        upstream: String,
        /// The configured address.
        address: String,
    },
    /// What is known about an address, a key or a request id.
    Client(String),
    /// What the rules would do with a request.
    Explanation(ExplainSubject),
    /// All keys.
    Help,
}

/// Which bans are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BanSearch {
    /// Whether only likely false positives are listed.
    pub is_likely_false: bool,
    /// `None` for bans of all rules.
    pub rule: Option<String>,
    /// A part of the key or of the rule's name.
    pub text: Option<String>,
}

/// Which decisions the gateway sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamFilter {
    /// `None` for decisions of all rules.
    pub rule: Option<String>,
    /// `None` for decisions about all clients.
    pub ip: Option<String>,
}

/// What is explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainSubject {
    /// An `explain` request.
    Request(Value),
    /// The newest request with the key of a ban.
    Ban {
        /// The rule.
        rule: String,
        /// The key as listed.
        key: String,
    },
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    HotKey,
    Ban,
    Decision,
    Server,
}

/// A row that can be selected.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRow {
    pub kind: RowKind,
    /// The rule, or the upstream of a server. Empty if no rule acted.
    pub rule: String,
    /// The key, or the address of a server.
    pub key: String,
    /// The object of the API.
    pub object: Value,
}

/// The identity of a row, which its selection follows.
pub type RowId = (String, String);

/// What a screen shows beside the figures that all screens share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScreenFigures {
    /// `None`: they have not been read.
    pub rows: Option<Vec<ListedRow>>,
    /// The members depend on the screen. `None`: it has not been read.
    pub about: Option<Value>,
    /// Why it could not be read.
    pub error: Option<String>,
}

// === impl ListedRow ===

impl ListedRow {
    /// A row for an object that has its `rule` and its `key`: a ban or a decision.
    pub fn of(kind: RowKind, object: &Value) -> Self {
        Self {
            kind,
            rule: object.text("rule").to_owned(),
            key: object.text("key").to_owned(),
            object: object.clone(),
        }
    }

    /// The identity.
    pub fn id(&self) -> RowId {
        match self.kind {
            RowKind::Decision => (String::new(), self.object.text("id").to_owned()),
            _ => (self.rule.clone(), self.key.clone()),
        }
    }

    /// Whether the row is a key that is banned.
    pub fn is_banned(&self) -> bool {
        match self.kind {
            RowKind::HotKey => !self.object.text("banned_until").is_empty(),
            RowKind::Ban => true,
            RowKind::Decision => self.object.flag("banned"),
            RowKind::Server => false,
        }
    }

    /// What `/api/clients/ID` finds the client by: the address, if there is one, otherwise the key. `None` for a server.
    pub fn client_id(&self) -> Option<String> {
        let is_address = |text: &&str| text.parse::<IpAddr>().is_ok();
        let address = match self.kind {
            RowKind::Server => return None,
            RowKind::Decision => Some(self.object.text("client_ip")),
            RowKind::Ban | RowKind::HotKey => self.key.split(' ').find(is_address),
        };
        let id = address.unwrap_or(&self.key);
        (!id.is_empty()).then(|| id.to_owned())
    }

    /// Whether the key contains a hash in place of a secret value.
    pub fn has_hashed_key(&self) -> bool {
        self.key
            .split(' ')
            .any(|part| part.trim_matches('"').starts_with("h:"))
    }
}

/// The name of a key: an empty one stands for all requests.
pub fn key_name(key: &str) -> &str {
    if key.is_empty() { "all requests" } else { key }
}
