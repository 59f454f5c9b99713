//! Learns the real success responses of a route, so that a shadow response looks like them: their header names
//! in order, values that every client gets, the patterns of other values, and their timing.
//!
//! It keeps no body, no cookie and nothing like a token, and repeats a value only if at least 50 responses to at
//! least 10 clients had it. It never reads a clock, and its memory is bounded.

mod learned_header;
mod learned_responses;
mod pacing;
mod pattern;
mod progress;
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
pub use self::progress::LearningProgress;
use super::escape::media_type;
use super::{RefusingRule, RequestInfo, ResponseTemplate};
use crate::body::Body;
use crate::clock::Timestamp;

/// The maximum number of response classes.
const KINDS: usize = 64;

/// What is learned about all classes of responses.
pub struct ImitationStore {
    key: SipHasher13,
    kinds: RwLock<HashMap<ResponseClass, Arc<LearnedResponses>>>,
}

/// A class of similar responses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResponseClass {
    /// The route: its hosts and path.
    pub route: Arc<str>,
    /// The upstream that sends the responses.
    pub upstream: Arc<str>,
    /// Restricts the class to requests that this rule matches. `None` for all responses of the route.
    pub rule: Option<Arc<str>>,
    method: Method,
    http2: bool,
    status: StatusCode,
}

/// The head of a real success response, copied when it was sent.
pub struct HeadSent {
    /// The response headers, in order.
    pub headers: HeaderMap,
    /// The request headers.
    pub request_headers: HeaderMap,
    /// The request's id.
    pub request_id: String,
    /// The hash of the client's network: see [`ImitationStore::client`].
    pub client: u32,
    /// When the response was sent.
    pub when: SendSchedule,
}

/// When a response is sent.
#[derive(Clone, Copy, Debug)]
pub struct SendSchedule {
    /// The time.
    pub now: Timestamp,
    /// The time from the end of the request until the head of the response is sent.
    pub head: Duration,
}

/// The shape of an imitated response.
#[derive(Debug)]
pub struct Imitation {
    /// The headers in order. `None` if no value is known.
    fields: Vec<(HeaderName, Option<HeaderValue>)>,
    /// Whether the body is compressed.
    gzip: bool,
    /// Whether the body is sent without a length.
    pub streamed: bool,
}

/// Random numbers for generated values. They are keyed, so that a client that sees some of them cannot predict
/// the next.
#[derive(Debug)]
struct Dice {
    key: SipHasher13,
    drawn: u64,
}

// === impl ImitationStore ===

impl ImitationStore {
    /// Returns a keyed hash of a client's network.
    pub fn client(&self, network: IpAddr) -> u32 {
        let mut hasher = self.key;
        network.hash(&mut hasher);
        hasher.finish() as u32
    }

    /// Returns what is learned about a class. `None` if it is not observed yet.
    pub fn get(&self, kind: &ResponseClass) -> Option<Arc<LearnedResponses>> {
        self.kinds.read().get(kind).cloned()
    }

    /// Returns what is learned about a class and starts observing it. `None` if there are too many classes.
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

    /// Forgets the classes for which `wanted` returns `false`.
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

/// Draws a random key. Without random numbers the key is constant, which is better than no response.
fn random_key() -> SipHasher13 {
    let draw = || getrandom::u64().unwrap_or_default();
    SipHasher13::new_with_keys(draw(), draw())
}

// === impl ResponseClass ===

impl ResponseClass {
    /// Returns the class of a response with `status` to this request. `None` if it is never imitated.
    pub fn new(
        route: Arc<str>,
        upstream: Arc<str>,
        request: &RequestInfo<'_>,
        status: StatusCode,
    ) -> Option<Self> {
        // Clients can invent methods, and each would be a class.
        let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let is_known = known.contains(&request.method.as_str());
        let whole = status.is_success() && status != StatusCode::PARTIAL_CONTENT;
        (is_known && whole && !request.is_grpc()).then(|| Self {
            route,
            upstream,
            rule: None,
            method: request.method.clone(),
            http2: request.version == Version::HTTP_2,
            status,
        })
    }

    /// Restricts the class to requests that `rule` matches.
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
            drawn: 0,
        }
    }
}

impl Dice {
    fn next(&mut self) -> u64 {
        let mut hasher = self.key;
        hasher.write_u64(self.drawn);
        self.drawn = self.drawn.wrapping_add(1);
        hasher.finish()
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.next()) * end as u128;
        (wide >> 64) as usize
    }

    /// Returns a number from 0 up to, but not including, 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Builds `template` with the header names and order of a real success response. A configured header is used if no
/// real value can be repeated or generated; a header without either is omitted.
pub fn dress(
    request: &RequestInfo<'_>,
    template: &ResponseTemplate,
    imitation: &Imitation,
) -> Response<Body> {
    let empty = [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT].contains(&template.status);
    let body = match (empty, imitation.gzip) {
        (true, _) => Vec::new(),
        (false, true) => gzip(
            template
                .filled(request, &RefusingRule::NO_RULE)
                .1
                .as_bytes(),
        ),
        (false, false) => template
            .filled(request, &RefusingRule::NO_RULE)
            .1
            .into_bytes(),
    };
    let configured = |name: &HeaderName| {
        let mut headers = template.headers.iter();
        let (_, field) = headers.find(|(own, _)| own == name)?;
        field.value(request, &RefusingRule::NO_RULE)
    };
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = template.status;
    for (name, learned) in &imitation.fields {
        let value = match *name {
            CONTENT_LENGTH => Some(HeaderValue::from(body.len())),
            CONTENT_TYPE => {
                Some(content_type(template, learned.as_ref())).filter(|v| !v.is_empty())
            }
            _ => learned.clone().or_else(|| configured(name)),
        };
        if let Some(value) = value {
            response.headers_mut().append(name, value);
        }
    }
    if request.method != Method::HEAD {
        *response.body_mut() = Body::from(body);
    }
    response
}

/// Returns the real value, which may have other parameters, if its media type matches the configured one.
fn content_type(template: &ResponseTemplate, learned: Option<&HeaderValue>) -> HeaderValue {
    let same = learned.filter(|real| {
        let own = media_type(&template.content_type);
        own.is_empty() || media_type(real) == own
    });
    same.unwrap_or(&template.content_type).clone()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail; if it did, the response would have no body.
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}
