//! Reads the start of a request body before the rules run, if a rule may need it.
//!
//! What was read is put back, so that all later stages see the whole body. The rules decide from the request head
//! whether they may need a body. Without a rule that reads bodies, nothing here runs.

use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderMap, Response, Version};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use super::forward::is_too_large;
use super::request_context::RequestContext;
use super::request_state::LoggedBody;
use super::respond::HandledResponse;
use crate::action::{GatewayError, RequestInfo};
use crate::body::BodyError;
use crate::body::budget::{BodyBudget, BodyReservation};
use crate::facts::{BodyKind, BodyLength, BodyReads, InspectedBody, RequestFacts};
use crate::listen::{PutBack, RequestBody, TooSlow};
use crate::observe::BodyInspection;
use crate::snapshot::Snapshot;

/// How long an HTTP/2 client with `Expect: 100-continue` may wait for a response that hyper cannot send, before the
/// rules run without its body.
const UNASKED_WAIT: Duration = Duration::from_secs(1);

/// The memory that the first bytes of a body take.
const LEAST_BUFFER: usize = 512;

/// What to do about the body of a request before its rules run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectionPlan {
    /// No rule may need it.
    Ignore,
    /// A rule may need it, but it has no value that rules can read.
    Skip(BodyInspection),
    /// Read its start.
    Read(BodyKind),
}

/// The start of a body, and what else was read of it.
struct BodyStart {
    /// The first bytes, at most as many as rules can read.
    bytes: Vec<u8>,
    /// The memory of `bytes`. It grows with what arrives: a length that a client only declares takes nothing.
    reservation: BodyReservation,
    /// Whether the budget had no memory for more.
    is_full: bool,
    /// The rest of the last frame.
    rest: Bytes,
    trailers: Option<HeaderMap>,
    /// Whether the body ends with `bytes`.
    is_complete: bool,
}

/// Reads the start of the body if a rule may need it, and adds it to the facts. Returns why the body cannot be read.
/// `None` if it can. Callers box the future, so that a request without an inspection does not take its memory.
pub async fn inspect(
    request: &mut RequestContext<'_, '_>,
    incoming: &mut RequestBody,
) -> Option<GatewayError> {
    if incoming.is_end_stream() {
        return None;
    }
    let result = match InspectionPlan::of(
        request.snapshot(),
        request.info,
        request.facts,
        request.state.meter.max.get(),
    ) {
        InspectionPlan::Ignore => return None,
        InspectionPlan::Skip(why) => why,
        InspectionPlan::Read(kind) => match read(request, incoming, kind).await {
            Ok(result) => result,
            Err(error) if error.is::<TooSlow>() => return Some(GatewayError::BodyTooSlow),
            Err(_) => return Some(GatewayError::Malformed),
        },
    };
    request
        .state
        .core
        .live
        .process
        .metrics
        .count_inspection(result);
    request.restart_clock();
    None
}

/// Reads the start of the body within the budget of all inspections.
async fn read(
    request: &RequestContext<'_, '_>,
    incoming: &mut RequestBody,
    kind: BodyKind,
) -> Result<BodyInspection, BodyError> {
    let (snapshot, facts) = (request.snapshot(), request.facts);
    let declared = facts.head.body_size();
    let most = snapshot.settings.inspect_body;
    let budget = &request.state.core.live.process.inspected;
    let Some(mut start) = BodyStart::within(budget) else {
        return Ok(BodyInspection::Full);
    };
    if !start.begin(request.info, incoming, most).await? {
        return Ok(BodyInspection::Unsupported);
    }
    start.fill(incoming, most).await?;
    start.is_complete |= declared == Some(start.bytes.len() as u64);
    let bytes = start.reservation.hold(start.bytes);
    incoming.put_back(PutBack {
        start: bytes.clone(),
        rest: start.rest,
        trailers: start.trailers,
    });
    if start.is_full {
        return Ok(BodyInspection::Full);
    }
    let body = InspectedBody::new(bytes, start.is_complete, kind);
    let result = result_of(snapshot, &body, kind);
    facts.set_body(body);
    Ok(result)
}

/// Returns how an inspection is counted.
fn result_of(snapshot: &Snapshot, body: &InspectedBody, kind: BodyKind) -> BodyInspection {
    let is_repeated = |name: &[u8]| body.form_value(name, 1).is_some();
    let mut names = snapshot.rules.form_names().iter();
    if !body.is_complete() {
        BodyInspection::Truncated
    } else if kind == BodyKind::Form && !body.has_form() {
        BodyInspection::Unsupported
    } else if names.any(|name| is_repeated(name.as_bytes())) {
        BodyInspection::Ambiguous
    } else {
        BodyInspection::Read
    }
}

/// Refuses a request whose body cannot be read, before any rule.
pub fn refuse(request: &mut RequestContext<'_, '_>, fault: GatewayError) -> Response<LoggedBody> {
    request.state.core.fault(fault);
    let handled = HandledResponse::of_fault(fault, request.info);
    request.start_response(handled.closing(true, request.info))
}

// === impl InspectionPlan ===

impl InspectionPlan {
    /// Returns what to do about the body of a request with this head.
    pub fn of(
        snapshot: &Snapshot,
        info: &RequestInfo<'_>,
        facts: &RequestFacts<'_>,
        max_body: Option<u64>,
    ) -> Self {
        let is_message = facts.head.body != BodyLength::None && facts.head.upgrade.is_none();
        // A body that is too large is refused later, without reading it.
        if !is_message || is_too_large(facts, max_body) {
            return Self::Ignore;
        }
        let reads = body_reads(snapshot, facts);
        if reads.is_none() {
            return Self::Ignore;
        }
        let kind = BodyKind::of(facts.headers);
        // A streaming call may wait for a response before it sends more.
        if info.is_grpc() {
            return Self::Skip(BodyInspection::Unsupported);
        }
        match kind {
            _ if reads.are_in(kind) => Self::Read(kind),
            BodyKind::Encoded => Self::Skip(BodyInspection::Encoded),
            _ => Self::Skip(BodyInspection::Unsupported),
        }
    }
}

/// Returns what rules and known clients read of the body of this request.
fn body_reads(snapshot: &Snapshot, facts: &RequestFacts<'_>) -> BodyReads {
    let mut reads = snapshot.rules.body_reads(facts);
    if let Some(known) = snapshot.known_clients() {
        reads = reads.or(known.body_reads(facts));
        if reads.user {
            reads = reads.or(known.user_reads());
        }
    }
    BodyReads {
        user: false,
        ..reads
    }
}

// === impl BodyStart ===

impl BodyStart {
    /// Creates an empty one. `None` if the budget is used up.
    fn within(budget: &BodyBudget) -> Option<Self> {
        Some(Self {
            bytes: Vec::new(),
            reservation: budget.reserve(LEAST_BUFFER)?,
            is_full: false,
            rest: Bytes::new(),
            trailers: None,
            is_complete: false,
        })
    }

    /// Makes memory for `more` bytes, `most` in all. Returns whether the budget has it.
    fn grow(&mut self, more: usize, most: usize) -> bool {
        let needed = self.bytes.len() + more;
        if needed <= self.bytes.capacity() {
            return true;
        }
        let capacity = needed
            .next_power_of_two()
            .clamp(LEAST_BUFFER, most.max(LEAST_BUFFER));
        if !self.reservation.extend_to(capacity) {
            return false;
        }
        self.bytes.reserve_exact(capacity - self.bytes.len());
        true
    }

    /// Reads the first frame. Returns `false` if the client waits for a response that cannot be sent: hyper sends
    /// 100 Continue when an HTTP/1 body is first read, and never over HTTP/2.
    async fn begin(
        &mut self,
        info: &RequestInfo<'_>,
        body: &mut RequestBody,
        most: usize,
    ) -> Result<bool, BodyError> {
        if info.version != Version::HTTP_2 || !info.headers.contains_key(EXPECT) {
            return Ok(true);
        }
        match timeout(UNASKED_WAIT, self.read_frame(body, most)).await {
            Ok(read) => read.map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Reads until the body ends or `most` bytes were read.
    async fn fill(&mut self, body: &mut RequestBody, most: usize) -> Result<(), BodyError> {
        while !self.is_complete && !self.is_full && self.bytes.len() < most {
            self.read_frame(body, most).await?;
        }
        Ok(())
    }

    async fn read_frame(&mut self, body: &mut RequestBody, most: usize) -> Result<(), BodyError> {
        let Some(frame) = body.frame().await.transpose()? else {
            self.is_complete = true;
            return Ok(());
        };
        match frame.into_data() {
            Ok(mut data) => {
                let room = most.saturating_sub(self.bytes.len()).min(data.len());
                self.is_full = !self.grow(room, most);
                if !self.is_full {
                    self.bytes.extend_from_slice(&data.split_to(room));
                }
                self.rest = data;
                self.is_complete = self.rest.is_empty() && body.is_end_stream();
            }
            Err(frame) => self.trailers = frame.into_trailers().ok(),
        }
        Ok(())
    }
}
