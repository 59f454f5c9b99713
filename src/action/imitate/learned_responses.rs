//! What is learned about one class of responses. Cores share it behind a lock, held while one head is processed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;

use super::learned_header::{ENOUGH, LearnedHeader};
use super::pacing::{PacingHistory, ResponsePacing};
use super::progress::{BodyFeatures, LearningProgress};
use super::{Dice, HeadSent, Imitation, SendSchedule};
use crate::action::RequestInfo;
use crate::action::escape::media_type;

/// The maximum number of header sequences per class.
const SHAPES: usize = 3;
/// The maximum number of headers of a response.
const FIELDS: usize = 32;
/// The maximum size of the header values kept per sequence, in bytes.
const VALUE_BYTES: usize = 8192;
/// Once a class is learned, one response in this many is observed.
const SAMPLED: u32 = 8;
/// After an unexpected response, this many responses are all observed.
const ATTENTION: u32 = 128;
/// After this many responses, the counts are halved.
const HALF_LIFE: u32 = 1024;
/// The longest `content-type` that is compared with the configured one, in bytes.
const LONGEST_TYPE: usize = 128;
/// The number of different clients that must have received a value before it is repeated.
pub(super) const ENOUGH_CLIENTS: usize = 10;

/// What is learned about one class of responses.
#[derive(Debug, Default)]
pub struct LearnedResponses {
    /// Whether enough is learned and nothing has changed recently.
    settled: AtomicBool,
    passed: AtomicU32,
    known: Mutex<HeadersOfShape>,
}

#[derive(Debug, Default)]
struct HeadersOfShape {
    shapes: Vec<HeaderOrder>,
    paces: PacingHistory,
    bodies: BodyFeatures,
    attention: u32,
    dice: Dice,
}

/// Responses with equal header names in equal order.
#[derive(Debug)]
struct HeaderOrder {
    fields: Vec<LearnedHeader>,
    /// The number of responses, halved regularly.
    count: u32,
    responses: u32,
    clients: SeenClients,
}

/// The first [`ENOUGH_CLIENTS`] different clients that received a response or a value, as keyed hashes.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenClients(Vec<u32>);

// === impl LearnedResponses ===

impl LearnedResponses {
    /// Returns whether to observe the next response: every one until enough is learned, then a sample.
    pub fn is_curious(&self) -> bool {
        let passed = self.passed.fetch_add(1, Ordering::Relaxed);
        !self.settled.load(Ordering::Relaxed) || passed.is_multiple_of(SAMPLED)
    }

    /// Learns the head of a real success response.
    pub fn learn(&self, sent: &HeadSent) {
        if entries(&sent.headers).count() > FIELDS {
            return;
        }
        let settled = self.known.lock().learn(sent);
        self.settled.store(settled, Ordering::Relaxed);
    }

    /// Learns the timing of a real success response.
    pub fn learn_pace(&self, pace: ResponsePacing) {
        self.known.lock().paces.learn(pace);
    }

    /// Draws the timing of a response. `None` if not enough is learned.
    pub fn pace(&self) -> Option<ResponsePacing> {
        let known = &mut *self.known.lock();
        let pace = known.paces.draw(&mut known.dice);
        pace.filter(|_| known.shapes.iter().any(HeaderOrder::is_known))
    }

    /// Returns how much is learned, and what is known about the bodies.
    pub(super) fn progress(&self) -> (LearningProgress, BodyFeatures) {
        let known = &*self.known.lock();
        let most = known.shapes.iter().max_by_key(|shape| shape.responses);
        let progress = LearningProgress {
            responses: most.map_or(0, |shape| shape.responses),
            clients: most.map_or(0, |shape| shape.clients.count()),
            is_ready: known.shapes.iter().any(HeaderOrder::is_known),
            difference: None,
        };
        (progress, known.bodies.clone())
    }

    /// Builds the head of a response for that time. `None` if not enough is learned.
    pub fn imitate(&self, request: &RequestInfo<'_>, when: SendSchedule) -> Option<Imitation> {
        let known = &mut *self.known.lock();
        let gzip = accepts_gzip(request.headers);
        let shapes = known.shapes.iter().filter(|shape| shape.is_known());
        let shape = shapes.max_by_key(|shape| (shape.suits(gzip), shape.count))?;
        let coded = gzip && shape.coding() == Some(b"gzip");
        let fields = shape.fields.iter();
        let fields = fields.filter(|field| coded || field.name != CONTENT_ENCODING);
        let dice = &mut known.dice;
        Some(Imitation {
            fields: fields
                .map(|field| (field.name.clone(), field.value(request, when, dice)))
                .collect(),
            gzip: coded,
            streamed: !shape.fields.iter().any(|f| f.name == CONTENT_LENGTH),
        })
    }
}

// === impl HeadersOfShape ===

impl HeadersOfShape {
    /// Learns a head. Returns whether enough is learned and nothing is unexpected.
    fn learn(&mut self, sent: &HeadSent) -> bool {
        self.learn_body(&sent.headers);
        let shape = self.shape_of(&sent.headers);
        let surprise = shape.is_none_or(|shape| shape.learn(sent));
        self.attention = if surprise {
            ATTENTION
        } else {
            self.attention.saturating_sub(1)
        };
        if self.shapes.iter().any(|shape| shape.count >= HALF_LIFE) {
            self.shapes.iter_mut().for_each(|shape| shape.count /= 2);
        }
        let known = self.shapes.iter().any(HeaderOrder::is_known);
        self.attention == 0 && known && self.paces.is_full()
    }

    fn learn_body(&mut self, headers: &HeaderMap) {
        let has_no_length = headers.contains_key(CONTENT_ENCODING);
        let length = headers.get(CONTENT_LENGTH).filter(|_| !has_no_length);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        if let Some(length) = length {
            self.bodies.add_length(length);
        }
        let content_type = headers
            .get(CONTENT_TYPE)
            .filter(|value| value.len() <= LONGEST_TYPE);
        if let Some(content_type) = content_type {
            self.bodies.media_type = media_type(content_type);
        }
    }

    /// Returns the sequence with these names, which may replace the least common one. `None` while it is too
    /// rare to replace one.
    fn shape_of(&mut self, headers: &HeaderMap) -> Option<&mut HeaderOrder> {
        let known = self.shapes.iter().position(|shape| shape.is_of(headers));
        if let Some(index) = known {
            return self.shapes.get_mut(index);
        }
        if self.shapes.len() >= SHAPES {
            let least = self.shapes.iter_mut().min_by_key(|shape| shape.count)?;
            least.count = least.count.saturating_sub(1);
            if least.count > 0 {
                return None;
            }
            *least = HeaderOrder::new(headers);
            return Some(least);
        }
        self.shapes.push(HeaderOrder::new(headers));
        self.shapes.last_mut()
    }
}

// === impl HeaderOrder ===

impl HeaderOrder {
    fn new(headers: &HeaderMap) -> Self {
        Self {
            fields: names(headers).map(LearnedHeader::new).collect(),
            count: 0,
            responses: 0,
            clients: SeenClients::default(),
        }
    }

    /// Returns whether a response with these headers has this sequence.
    fn is_of(&self, headers: &HeaderMap) -> bool {
        names(headers).eq(self.fields.iter().map(|field| &field.name))
    }

    /// Learns a response. Returns whether a part of it is unexpected.
    fn learn(&mut self, sent: &HeadSent) -> bool {
        self.count += 1;
        self.responses = self.responses.saturating_add(1);
        self.clients.add(sent.client);
        let mut kept: usize = self.fields.iter().map(LearnedHeader::value_bytes).sum();
        let mut surprise = false;
        for (field, (_, value)) in self.fields.iter_mut().zip(entries(&sent.headers)) {
            let before = field.value_bytes();
            surprise |= field.learn(value, sent, VALUE_BYTES.saturating_sub(kept));
            kept = kept + field.value_bytes() - before;
        }
        surprise
    }

    /// Returns whether the sequence was seen often enough to be imitated.
    fn is_known(&self) -> bool {
        self.responses >= ENOUGH && self.clients.are_enough()
    }

    /// Returns the content coding of the bodies. `None` if they have none.
    fn coding(&self) -> Option<&[u8]> {
        let field = self.fields.iter().find(|f| f.name == CONTENT_ENCODING)?;
        Some(field.steady().map_or(b"", HeaderValue::as_bytes))
    }

    /// Returns whether this response suits a client that accepts gzip, or one that does not.
    fn suits(&self, gzip: bool) -> bool {
        self.coding().is_none_or(|coding| gzip && coding == b"gzip")
    }
}

/// Returns the headers of a response as sent, without `connection`.
fn entries(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers.iter().filter(|(name, _)| **name != CONNECTION)
}

fn names(headers: &HeaderMap) -> impl Iterator<Item = &HeaderName> {
    entries(headers).map(|(name, _)| name)
}

/// Returns whether the client accepts gzip (RFC 9110, section 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter();
    let mut codings = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let is_zero = |quality: &[u8]| quality.iter().all(|byte| matches!(byte, b'0' | b'.'));
    codings.any(|coding| {
        let mut parts = coding.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let mut qualities = parts.filter_map(|part| part.strip_prefix(b"q="));
        name.eq_ignore_ascii_case(b"gzip") && !qualities.any(is_zero)
    })
}

// === impl SeenClients ===

impl SeenClients {
    pub(super) fn add(&mut self, client: u32) {
        if !self.are_enough() && !self.0.contains(&client) {
            self.0.push(client);
        }
    }

    pub(super) fn are_enough(&self) -> bool {
        self.count() >= ENOUGH_CLIENTS
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}
