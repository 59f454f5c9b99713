//! What the real successes of a route look like, so that a shadow response looks like them: the
//! names of their headers in order, values that every client gets, how other values are built, and
//! how long they take.
//!
//! It keeps no body, no cookie and nothing like a token, and repeats a value only if it was the same
//! in at least 50 responses to at least 10 clients. It never reads a clock, and its memory is
//! bounded.

mod learned_header;
mod learned_responses;
mod pacing;
mod pattern;
mod runs;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version};
use parking_lot::RwLock;
use siphasher::sip::SipHasher13;

pub use self::learned_responses::LearnedResponses;
pub use self::pacing::ResponsePacing;
use super::template::media_type;
use super::{RefusingRule, RequestInfo, ResponseTemplate};
use crate::body::Body;
use crate::clock::Timestamp;

/// Kinds of responses that are remembered at once.
const KINDS: usize = 64;

/// What is known of all kinds of responses.
pub struct ImitationStore {
    key: SipHasher13,
    kinds: RwLock<HashMap<ResponseClass, Arc<LearnedResponses>>>,
}

/// Responses that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResponseClass {
    /// The route: its hosts and its path.
    pub route: Arc<str>,
    /// The upstream that sends them.
    pub upstream: Arc<str>,
    /// Only responses to requests that this rule matches. `None`: all responses of the route.
    pub rule: Option<Arc<str>>,
    method: Method,
    http2: bool,
    status: StatusCode,
}

/// The head of a real success, copied when it was sent.
pub struct HeadSent {
    /// Its headers, in order.
    pub headers: HeaderMap,
    /// The headers of its request.
    pub request_headers: HeaderMap,
    /// The id of its request.
    pub request_id: String,
    /// The client's network: see [`ImitationStore::client`].
    pub client: u32,
    /// When it was sent.
    pub when: SendSchedule,
}

/// When a response is sent.
#[derive(Clone, Copy, Debug)]
pub struct SendSchedule {
    /// The time.
    pub now: Timestamp,
    /// From the end of the request until the head of the response is sent.
    pub head: Duration,
}

/// What a response is to look like.
#[derive(Debug)]
pub struct Imitation {
    /// Its headers in order. `None` if no value is known.
    fields: Vec<(HeaderName, Option<HeaderValue>)>,
    /// Its body is compressed.
    gzip: bool,
    /// The length of its body is not sent beforehand.
    pub streamed: bool,
}

/// Random numbers for values that are made. Keyed, so that a client that sees some of them cannot
/// predict the next.
#[derive(Debug)]
struct Dice {
    key: SipHasher13,
    thrown: u64,
}

// === impl ImitationStore ===

impl ImitationStore {
    /// A client's network as it is remembered: a keyed hash.
    pub fn client(&self, network: IpAddr) -> u32 {
        let mut hasher = self.key;
        network.hash(&mut hasher);
        hasher.finish() as u32
    }

    /// What is known of a kind.
    pub fn get(&self, kind: &ResponseClass) -> Option<Arc<LearnedResponses>> {
        self.kinds.read().get(kind).cloned()
    }

    /// What is known of a kind, which is learned from now on. `None` if too many kinds are.
    pub fn get_or_begin(&self, kind: ResponseClass) -> Option<Arc<LearnedResponses>> {
        if let Some(known) = self.get(&kind) {
            return Some(known);
        }
        let mut kinds = self.kinds.write();
        if kinds.len() >= KINDS && !kinds.contains_key(&kind) {
            return None;
        }
        let memory = kinds.entry(kind).or_default();
        Some(memory.clone())
    }

    /// Forgets the kinds that are not `wanted` any more.
    pub fn retain(&self, wanted: impl Fn(&ResponseClass) -> bool) {
        self.kinds.write().retain(|kind, _| wanted(kind));
    }
}

impl Default for ImitationStore {
    fn default() -> Self {
        Self {
            key: random_key(),
            kinds: RwLock::default(),
        }
    }
}

/// Without random numbers the key is a known one, which is better than no response.
fn random_key() -> SipHasher13 {
    let draw = || getrandom::u64().unwrap_or_default();
    SipHasher13::new_with_keys(draw(), draw())
}

// === impl ResponseClass ===

impl ResponseClass {
    /// The kind of a response with `status` to this request. `None` if it is never imitated.
    pub fn new(
        route: Arc<str>,
        upstream: Arc<str>,
        asked: &RequestInfo<'_>,
        status: StatusCode,
    ) -> Option<Self> {
        // Clients can invent methods; each would be a kind.
        let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let is_known = known.contains(&asked.method.as_str());
        let whole = status.is_success() && status != StatusCode::PARTIAL_CONTENT;
        (is_known && whole && !asked.is_grpc()).then(|| Self {
            route,
            upstream,
            rule: None,
            method: asked.method.clone(),
            http2: asked.version == Version::HTTP_2,
            status,
        })
    }

    /// Those of them whose requests `rule` matches.
    pub fn stopped_by(mut self, rule: &Arc<str>) -> Self {
        self.rule = Some(rule.clone());
        self
    }
}

// === impl Dice ===

impl Default for Dice {
    fn default() -> Self {
        Self {
            key: random_key(),
            thrown: 0,
        }
    }
}

impl Dice {
    fn throw(&mut self) -> u64 {
        let mut hasher = self.key;
        hasher.write_u64(self.thrown);
        self.thrown = self.thrown.wrapping_add(1);
        hasher.finish()
    }

    /// A number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.throw()) * end as u128;
        (wide >> 64) as usize
    }

    /// A number from 0 to 1, without 1.
    fn share(&mut self) -> f64 {
        (self.throw() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// `canned` with the headers of a real success: its names, in its order. A configured header is used
/// if no real value can be repeated or made; a header without either is left out.
pub fn dress(
    asked: &RequestInfo<'_>,
    canned: &ResponseTemplate,
    imitation: &Imitation,
) -> Response<Body> {
    let empty = [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT].contains(&canned.status);
    let body = match (empty, imitation.gzip) {
        (true, _) => Vec::new(),
        (false, true) => gzip(canned.filled(asked, &RefusingRule::NOBODY).as_bytes()),
        (false, false) => canned.filled(asked, &RefusingRule::NOBODY).into_bytes(),
    };
    let configured = |name: &HeaderName| {
        let mut headers = canned.headers.iter();
        let (_, field) = headers.find(|(own, _)| own == name)?;
        field.value(asked, &RefusingRule::NOBODY)
    };
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = canned.status;
    for (name, learned) in &imitation.fields {
        let value = match *name {
            CONTENT_LENGTH => Some(HeaderValue::from(body.len())),
            CONTENT_TYPE => Some(content_type(canned, learned.as_ref())).filter(|v| !v.is_empty()),
            _ => learned.clone().or_else(|| configured(name)),
        };
        if let Some(value) = value {
            response.headers_mut().append(name, value);
        }
    }
    if asked.method != Method::HEAD {
        *response.body_mut() = Body::from(body);
    }
    response
}

/// The real value if it is of the same media type: it may have other parameters.
fn content_type(canned: &ResponseTemplate, learned: Option<&HeaderValue>) -> HeaderValue {
    let same = learned.filter(|real| {
        let own = media_type(&canned.content_type);
        own.is_empty() || media_type(real) == own
    });
    same.unwrap_or(&canned.content_type).clone()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail; if it did, the response would have no body.
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}
