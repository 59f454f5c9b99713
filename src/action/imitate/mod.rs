//! What a route's real successes look like, so that a shadow answer looks like them: the names of
//! their fields in order, values that everybody gets, how the others are built, and how long they
//! take.
//!
//! It keeps no body, no cookie, nothing like a token, and repeats a value only if it was the same
//! in at least 50 answers to at least 10 clients. It never reads a clock, and its memory is bounded.

mod clients;
mod decimals;
mod dice;
mod dress;
mod field;
mod memory;
mod numbers;
mod pace;
mod pattern;
mod private;
mod run;
mod shape;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hasher as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use parking_lot::RwLock;
use siphasher::sip::SipHasher13;

pub use self::dress::dress;
pub use self::memory::Memory;
pub use self::pace::Pace;
use super::Asked;
use crate::clock::Timestamp;

/// Kinds of answers that are remembered at once.
const KINDS: usize = 64;

/// What is known of all kinds of answers.
pub struct Imitations {
    key: (u64, u64),
    kinds: RwLock<HashMap<Kind, Arc<Memory>>>,
}

/// Answers that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The route: its hosts and its path.
    pub route: Arc<str>,
    /// Who answers.
    pub upstream: Arc<str>,
    /// Only what this rule would stop; `None`: all that takes the route.
    pub rule: Option<Arc<str>>,
    method: Method,
    http2: bool,
    status: StatusCode,
}

/// The head of a real success.
pub struct Seen<'a> {
    /// Its fields, in order.
    pub headers: &'a HeaderMap,
    /// What was asked.
    pub asked: &'a Asked<'a>,
    /// Who asked: see [`Imitations::client`].
    pub client: u32,
    /// When it came.
    pub when: When,
}

/// When an answer comes.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// The time.
    pub now: Timestamp,
    /// From the end of the request until the head of the answer is written.
    pub head: Duration,
    /// How far from then that may be: the standard deviation. Nothing for what has come already.
    pub spread: Duration,
}

/// What an answer is to look like.
#[derive(Debug)]
pub struct Imitation {
    /// Its fields in order; `None`: no value is known.
    fields: Vec<(HeaderName, Option<HeaderValue>)>,
    /// Its body is compressed.
    gzip: bool,
    /// The length of its body is not told beforehand.
    pub streamed: bool,
}

// === impl Imitations ===

impl Imitations {
    /// Nothing is known.
    pub fn new() -> Self {
        let draw = || getrandom::u64().unwrap_or_default();
        Self {
            key: (draw(), draw()),
            kinds: RwLock::default(),
        }
    }

    /// A client's network as it is remembered: a keyed hash.
    pub fn client(&self, network: IpAddr) -> u32 {
        let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        match network {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.finish() as u32
    }

    /// What is known of a kind.
    pub fn get(&self, kind: &Kind) -> Option<Arc<Memory>> {
        self.kinds.read().get(kind).cloned()
    }

    /// The same, to be learned from now on; `None`: there is no room.
    pub fn get_or_begin(&self, kind: Kind) -> Option<Arc<Memory>> {
        if let Some(known) = self.get(&kind) {
            return Some(known);
        }
        let mut kinds = self.kinds.write();
        if kinds.len() >= KINDS && !kinds.contains_key(&kind) {
            return None;
        }
        let memory = kinds.entry(kind).or_insert_with(|| Arc::new(Memory::new()));
        Some(memory.clone())
    }

    /// Forgets the kinds that are not `wanted` any more.
    pub fn retain(&self, wanted: impl Fn(&Kind) -> bool) {
        self.kinds.write().retain(|kind, _| wanted(kind));
    }

    /// What it takes of memory, about.
    pub fn bytes(&self) -> usize {
        let kinds = self.kinds.read();
        kinds.values().map(|memory| memory.bytes()).sum()
    }
}

impl Default for Imitations {
    fn default() -> Self {
        Self::new()
    }
}

// === impl When ===

impl When {
    /// Then, and not a moment sooner or later.
    pub fn at(now: Timestamp, head: Duration) -> Self {
        let spread = Duration::ZERO;
        Self { now, head, spread }
    }

    /// So much later.
    pub fn later(self, by: Duration) -> Self {
        Self {
            now: self.now.plus(by),
            head: self.head + by,
            ..self
        }
    }
}

// === impl Kind ===

impl Kind {
    /// The kind of an answer with `status` to a request like this; `None`: it is never imitated.
    pub fn new(
        route: Arc<str>,
        upstream: Arc<str>,
        asked: &Asked<'_>,
        status: StatusCode,
    ) -> Option<Self> {
        let plain = matches!(
            *asked.method,
            Method::GET
                | Method::HEAD
                | Method::POST
                | Method::PUT
                | Method::PATCH
                | Method::DELETE
                | Method::OPTIONS
        );
        let whole = status.is_success() && status != StatusCode::PARTIAL_CONTENT;
        (plain && whole && !asked.is_grpc()).then(|| Self {
            route,
            upstream,
            rule: None,
            method: asked.method.clone(),
            http2: asked.version == Version::HTTP_2,
            status,
        })
    }

    /// Those of them that `rule` would stop.
    pub fn stopped_by(mut self, rule: &Arc<str>) -> Self {
        self.rule = Some(rule.clone());
        self
    }
}
