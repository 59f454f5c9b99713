//! Counts an HTTP/2 client's frames and limits them.
//!
//! h2 counts streams, early resets, CONTINUATION and empty DATA. The meter counts the rest within [`WINDOW`],
//! and finds a few errors that h2 accepts or reports with another code. It reads frame headers, never a request.
//!
//! If honest clients send a type of frame in reaction to requests or responses, its budget grows with them: a
//! frame that a stream or a response has earned costs less than that one did.

use std::time::Duration;

use tokio::time::Instant;

use super::ClientWindows;
use super::frames::{ClosedStreams, FLAGS, FrameHeader, FrameScanner, flag, kind};
use crate::listen::H2Violation;

/// The time span of the budgets.
const WINDOW: Duration = Duration::from_secs(30);

/// The number of frames of one type that a client may send within [`WINDOW`].
struct FrameBudget {
    /// The index of its counter.
    index: usize,
    /// The frames allowed in any case.
    base: u32,
    /// The additional frames for each opened stream and each frame of a response.
    earned: u32,
    /// The violation if the client sends more.
    what: &'static str,
}

/// Streams that end because the client resets them or makes an error; the base is configured.
const RESETS: FrameBudget = FrameBudget::new(0, 0, 0, "too many stream resets");

/// A client sends its settings once, and changes its window as it measures its latency.
const SETTINGS: FrameBudget = FrameBudget::new(1, 100, 0, "too many SETTINGS frames");

/// Keep-alive is one PING per ten seconds. gRPC measures with one for each round trip with data, so each frame
/// of a response allows one more.
const PINGS: FrameBudget = FrameBudget::new(2, 1000, 1, "too many PING frames");

/// Firefox and nghttp2 build a tree of a dozen at the start and set the priority of each stream once or twice.
const PRIORITIES: FrameBudget = FrameBudget::new(3, 1000, 10, "too many PRIORITY frames");

/// PRIORITY_UPDATE (RFC 9218) and the reserved types that Chrome greases with are unknown here.
const UNKNOWN: FrameBudget = FrameBudget::new(4, 1000, 10, "too many frames of unknown types");

/// Clients were seen to send at most one for the stream and one for the connection after each DATA frame.
const UPDATES: FrameBudget = FrameBudget::new(5, 1000, 10, "too many WINDOW_UPDATE frames");

/// An increment below [`CRUMB`] makes the gateway split a response into tiny frames. A client of an event stream
/// may acknowledge each small event, at some hundred per second.
const CRUMBS: FrameBudget = FrameBudget::new(6, 10_000, 0, "too many small WINDOW_UPDATE frames");
const CRUMB: u32 = 256;

/// A body may end in an empty frame, which has END_STREAM and is not counted. Others carry no data at all.
const BLANKS: FrameBudget = FrameBudget::new(7, 100, 0, "too many empty DATA frames");

/// An empty part of a head that is not the last: no client sends one.
const HOLLOWS: FrameBudget =
    FrameBudget::new(8, 10, 0, "too many empty HEADERS and CONTINUATION frames");

/// A graceful shutdown takes two.
const GOAWAYS: FrameBudget = FrameBudget::new(9, 10, 0, "too many GOAWAY frames");

/// The connection preface (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The frames that both sides of a connection have sent.
#[derive(Debug)]
pub(super) struct H2Meter {
    /// The number of preface bytes read.
    preface: usize,
    /// Whether the client's first SETTINGS frame has arrived.
    greeted: bool,
    /// Whether a head is incomplete: h2 refuses any other frame until it is complete.
    in_head: bool,
    /// Whether the last frame is a part of a head.
    of_head: bool,
    /// Whether the last frame arrived alone, so that h2's next error must concern it.
    alone: bool,
    heads: u32,
    received: FrameScanner,
    sent: FrameScanner,
    streams: ClosedStreams,
    /// Where the flags of malformed trailers are in the bytes received last.
    malformed: Vec<usize>,
    /// The length of the last frame, if it was DATA.
    data: usize,
    windows: ClientWindows,
    max_resets: u32,
    since: Instant,
    /// The frames of each [`FrameBudget`] in the current window.
    counts: [u32; 10],
    /// The opened streams and the frames of their responses in the current window.
    earned: u32,
    /// The streams that ended because of a client error and are not reported yet.
    errors: u32,
    /// The error code of the GOAWAY that was sent.
    goaway_code: Option<u32>,
    violation: Option<H2Violation>,
}

// === impl FrameBudget ===

impl FrameBudget {
    const fn new(index: usize, base: u32, earned: u32, what: &'static str) -> Self {
        Self {
            index,
            base,
            earned,
            what,
        }
    }
}

// === impl H2Meter ===

impl H2Meter {
    /// `max_resets` is the limit per window of streams reset by the client or for its errors; 0 for no limit.
    pub(super) fn new(max_resets: u32, now: Instant) -> Self {
        Self {
            preface: 0,
            greeted: false,
            in_head: false,
            of_head: false,
            alone: false,
            heads: 0,
            received: FrameScanner::new(),
            sent: FrameScanner::new(),
            streams: ClosedStreams::default(),
            malformed: Vec::new(),
            data: 0,
            windows: ClientWindows::INITIAL,
            max_resets: if max_resets == 0 {
                u32::MAX
            } else {
                max_resets
            },
            since: now,
            counts: [0; 10],
            earned: 0,
            errors: 0,
            goaway_code: None,
            violation: None,
        }
    }

    /// Counts `bytes`, the next that the client sent. Returns how many of them are valid: fewer than all once
    /// the client has violated the protocol.
    pub(super) fn receive(&mut self, bytes: &[u8], now: Instant) -> usize {
        if now.duration_since(self.since) > WINDOW {
            self.since = now;
            (self.counts, self.earned) = ([0; 10], 0);
        }
        let between = self.received.is_between();
        let mut frames = 0;
        let mut rest = match self.greet(bytes) {
            Some(rest) => rest,
            None => return self.fail(H2Violation::PREFACE, 0),
        };
        loop {
            let is_split = self.received.is_in_header();
            let before = bytes.len() - rest.len() + self.received.remaining().min(rest.len());
            let Some(frame) = self.received.next(&mut rest) else {
                if frames > 0 {
                    self.alone = between && frames == 1;
                }
                return bytes.len();
            };
            frames += 1;
            if self.has_pseudo_trailers(&frame) && !is_split {
                self.malformed.push(before + FLAGS);
            }
            if let Err(violation) = self.judge(&frame) {
                return self.fail(violation, before);
            }
        }
    }

    /// Returns where the flags of malformed trailers are in the bytes received last: those that begin with a pseudo-header
    /// (RFC 9113, 8.1), which h2 ignores.
    pub(super) fn take_malformed(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.malformed)
    }

    fn has_pseudo_trailers(&self, frame: &FrameHeader) -> bool {
        let trails = frame.kind == kind::HEADERS && frame.stream <= self.streams.newest;
        trails && !self.in_head && frame.begins_with_pseudo_header()
    }

    /// Counts `bytes`, the next that were sent to the client.
    pub(super) fn send(&mut self, mut bytes: &[u8]) {
        while let Some(frame) = self.sent.next(&mut bytes) {
            match frame.kind {
                kind::DATA | kind::HEADERS => self.earned += 1,
                kind::RST_STREAM if is_their_error(frame.word()) => {
                    self.errors += 1;
                    if let Err(violation) = self.count_reset() {
                        self.fail(violation, 0);
                    }
                }
                kind::GOAWAY => self.goaway_code = Some(frame.second_word()),
                _ => {}
            }
        }
    }

    /// Returns whether `goaway`, a GOAWAY frame of h2, is about a head that it cannot decode: h2 sends
    /// PROTOCOL_ERROR, but RFC 9113, 4.3 requires COMPRESSION_ERROR. Only if there is no other cause: the head
    /// of a new stream arrived alone and complete, and h2 has no such stream.
    pub(super) fn is_unreadable(&self, goaway: &FrameHeader) -> bool {
        let head = self.received.last();
        let whole = head.flags & !flag::END_STREAM == flag::END_HEADERS;
        let new = head.stream == self.streams.newest && goaway.word() < head.stream;
        let protocol = goaway.second_word() == H2Violation::PROTOCOL_ERROR;
        let alone = self.alone && self.received.is_between() && self.sent.is_between();
        head.kind == kind::HEADERS && whole && new && protocol && alone
    }

    /// Records that hyper has ended the connection: it does so without GOAWAY for CONNECT with a body.
    pub(super) fn ended(&mut self) {
        if self.goaway_code.is_none() {
            self.fail(H2Violation::CONNECT, 0);
        }
    }

    /// Returns the violation that ends the connection, found by the meter or by h2.
    pub(super) fn violation(&self) -> Option<H2Violation> {
        let code = self.goaway_code.filter(|code| *code != 0);
        self.violation.or(code.map(H2Violation::from_code))
    }

    /// Returns whether the meter found a violation.
    pub(super) fn is_violated(&self) -> bool {
        self.violation.is_some()
    }

    /// Returns the final GOAWAY frame. `None` without a violation of the meter, or within another frame.
    pub(super) fn goaway(&self) -> Option<Vec<u8>> {
        let violation = self.violation.filter(|_| self.sent.is_between())?;
        let length = u8::try_from(8 + violation.what.len()).ok()?;
        let mut frame = vec![0, 0, length, kind::GOAWAY, 0, 0, 0, 0, 0];
        frame.extend_from_slice(&self.streams.newest.to_be_bytes());
        frame.extend_from_slice(&violation.code.to_be_bytes());
        frame.extend_from_slice(violation.what.as_bytes());
        Some(frame)
    }

    /// Returns the number of the incomplete head. The preface counts as a head, and so do bytes that may become
    /// one. `None` if there is none.
    pub(super) fn open_head(&self) -> Option<u32> {
        let within = self.in_head || (self.of_head && self.received.remaining() > 0);
        match (self.greeted, within, self.received.is_in_header()) {
            (false, _, _) | (true, true, _) => Some(self.heads),
            (true, false, true) => Some(self.heads.wrapping_add(1)),
            (true, false, false) => None,
        }
    }

    /// Returns the received bytes of an incomplete DATA frame.
    pub(super) fn unread(&self) -> usize {
        match self.received.remaining() {
            0 => 0,
            owed => self.data.saturating_sub(owed),
        }
    }

    /// Returns the client's windows.
    pub(super) fn windows(&self) -> ClientWindows {
        self.windows
    }

    /// Returns the number of streams that ended because of a client error since the last call.
    pub(super) fn take_errors(&mut self) -> u32 {
        std::mem::take(&mut self.errors)
    }

    fn fail(&mut self, violation: H2Violation, good: usize) -> usize {
        self.violation.get_or_insert(violation);
        good
    }

    /// Returns the bytes after the preface. `None` if the preface is invalid.
    fn greet<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let due = PREFACE.get(self.preface..).unwrap_or_default();
        let (first, rest) = bytes.split_at(due.len().min(bytes.len()));
        self.preface += first.len();
        due.starts_with(first).then_some(rest)
    }

    fn judge(&mut self, frame: &FrameHeader) -> Result<(), H2Violation> {
        if !self.greeted && (frame.kind != kind::SETTINGS || frame.has(flag::ACK)) {
            return Err(H2Violation::PREFACE);
        }
        self.greeted = true;
        self.of_head = matches!(frame.kind, kind::HEADERS | kind::CONTINUATION);
        self.heads = self.heads.wrapping_add(u32::from(!self.in_head));
        self.data = match frame.kind {
            kind::DATA => frame.length,
            _ => 0,
        };
        if !fits(frame) {
            return Err(H2Violation::SIZE);
        }
        match frame.kind {
            kind::DATA | kind::HEADERS if !self.in_head && self.streams.is_ended(frame.stream) => {
                return Err(H2Violation::CLOSED);
            }
            kind::SETTINGS => self
                .windows
                .apply_settings(frame, self.received.settings(frame))?,
            _ => {}
        }
        self.count(frame)?;
        self.streams.follow(frame);
        Ok(())
    }

    fn count(&mut self, frame: &FrameHeader) -> Result<(), H2Violation> {
        match frame.kind {
            kind::DATA if frame.is_blank() && !frame.has(flag::END_STREAM) => self.spend(&BLANKS),
            kind::DATA | kind::PUSH_PROMISE => Ok(()),
            kind::HEADERS | kind::CONTINUATION => self.count_head(frame),
            kind::PRIORITY => self.spend(&PRIORITIES),
            kind::RST_STREAM => self.count_reset(),
            kind::SETTINGS => self.spend(&SETTINGS),
            kind::PING => self.spend(&PINGS),
            kind::GOAWAY => self.spend(&GOAWAYS),
            kind::WINDOW_UPDATE => {
                self.windows.apply_update(frame);
                if frame.word() < CRUMB {
                    self.spend(&CRUMBS)?;
                }
                self.spend(&UPDATES)
            }
            _ => self.spend(&UNKNOWN),
        }
    }

    fn count_head(&mut self, frame: &FrameHeader) -> Result<(), H2Violation> {
        if frame.kind == kind::HEADERS && frame.stream > self.streams.newest {
            self.earned += 1;
        }
        self.in_head = !frame.has(flag::END_HEADERS);
        if frame.length == 0 && self.in_head {
            return self.spend(&HOLLOWS);
        }
        Ok(())
    }

    fn count_reset(&mut self) -> Result<(), H2Violation> {
        let base = self.max_resets;
        self.spend(&FrameBudget { base, ..RESETS })
    }

    /// Counts one more frame; above the budget it is a flood.
    fn spend(&mut self, budget: &FrameBudget) -> Result<(), H2Violation> {
        let earned = self.earned.saturating_mul(budget.earned);
        let bound = budget.base.saturating_add(earned);
        let Some(count) = self.counts.get_mut(budget.index) else {
            return Ok(());
        };
        *count = count.saturating_add(1);
        if *count > bound {
            return Err(H2Violation::flood(budget.what));
        }
        Ok(())
    }
}

/// Returns whether a frame has a valid size for its type: h2 sends PROTOCOL_ERROR, but RFC 9113, 4.2 requires
/// FRAME_SIZE_ERROR.
const fn fits(frame: &FrameHeader) -> bool {
    match frame.kind {
        kind::PRIORITY => frame.length == 5,
        kind::RST_STREAM | kind::WINDOW_UPDATE => frame.length == 4,
        kind::SETTINGS if frame.has(flag::ACK) => frame.length == 0,
        kind::SETTINGS => frame.length.is_multiple_of(6),
        kind::PING => frame.length == 8,
        kind::GOAWAY => frame.length >= 8,
        _ => true,
    }
}

/// Returns whether the gateway resets a stream with this code because of a client error (RFC 9113, 7): not
/// NO_ERROR, INTERNAL_ERROR, CANCEL and HTTP_1_1_REQUIRED.
const fn is_their_error(code: u32) -> bool {
    matches!(code, 1 | 3..=7 | 9..=12)
}

#[cfg(test)]
mod tests;
