//! What an HTTP/2 client may do to a connection, counted frame by frame.
//!
//! h2 counts streams, early resets, CONTINUATION and empty DATA. This counts the rest within
//! [`WINDOW`], and sees to a few errors that h2 lets pass or calls by another name. It looks at
//! frame headers and never at a request.
//!
//! Where honest clients send a kind of frame because of what they ask for or get, the bound grows
//! with that: a frame that a stream or an answer [`Tally::earned`] costs less than that one did.

mod windows;

use tokio::time::Instant;

use super::Broken;
use super::frames::{Frame, Frames, flag, kind};
use super::opened::Opened;
pub(super) use windows::Windows;

/// The time that bounds are for.
const WINDOW: std::time::Duration = std::time::Duration::from_secs(30);

/// A client states its settings once, and changes its window as it finds out how far it is.
const SETTINGS: u32 = 100;

/// Keep-alive is a PING in ten seconds. gRPC measures with one for each round trip in which data
/// came, so each frame of an answer allows one more.
const PINGS: u32 = 1000;
const PINGS_EARNED: u32 = 1;

/// Firefox and nghttp2 build a tree of a dozen when they begin and place each stream once or
/// twice; PRIORITY_UPDATE (RFC 9218) and the reserved types that Chrome greases with are unknown
/// here.
const PRIORITIES: u32 = 1000;
const PRIORITIES_EARNED: u32 = 10;
const UNKNOWN: u32 = 1000;
const UNKNOWN_EARNED: u32 = 10;

/// One for the stream and one for the connection after each DATA frame is the most that clients
/// were seen to send.
const UPDATES: u32 = 1000;
const UPDATES_EARNED: u32 = 10;

/// An increment that makes us cut an answer into crumbs. A client of an event stream may give
/// back each small event, at some hundred a second.
const CRUMB: u32 = 256;
const CRUMBS: u32 = 10_000;

/// A body's end may come in an empty frame, which says END_STREAM and is not counted. Others carry
/// nothing at all.
const BLANKS: u32 = 100;

/// A part of a head without a byte of it, and not the last: no client sends one.
const HOLLOWS: u32 = 10;

/// A graceful end takes two.
const GOAWAYS: u32 = 10;

/// RFC 9113, 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What both sides of a connection have sent.
#[derive(Debug)]
pub(super) struct Meter {
    /// Bytes of the preface that were read.
    preface: usize,
    greeted: bool,
    /// A head has begun and not ended: whatever else comes is for h2 to refuse.
    in_head: bool,
    /// The last frame is a part of a head.
    of_head: bool,
    /// The last frame came alone: nothing else can be what h2 complains of next.
    alone: bool,
    heads: u32,
    heard: Frames,
    said: Frames,
    opened: Opened,
    /// The length of the last frame, if it was DATA.
    data: usize,
    windows: Windows,
    max_resets: u32,
    since: Instant,
    tally: Tally,
    /// Streams that ended for an error of the client, and were not reported yet.
    errors: u32,
    /// The error code of the GOAWAY that was sent.
    farewell: Option<u32>,
    broken: Option<Broken>,
}

/// Counts of the current window.
#[derive(Debug, Default)]
struct Tally {
    /// Streams that were opened, and frames of their answers.
    earned: u32,
    resets: u32,
    settings: u32,
    pings: u32,
    priorities: u32,
    unknown: u32,
    updates: u32,
    crumbs: u32,
    blanks: u32,
    hollows: u32,
    goaways: u32,
}

// === impl Meter ===

impl Meter {
    /// `max_resets`: of streams in a window, by the client or for its errors; 0 is no bound.
    pub(super) fn new(max_resets: u32, now: Instant) -> Self {
        Self {
            preface: 0,
            greeted: false,
            in_head: false,
            of_head: false,
            alone: false,
            heads: 0,
            heard: Frames::new(),
            said: Frames::new(),
            opened: Opened::default(),
            data: 0,
            windows: Windows::AT_FIRST,
            max_resets: if max_resets == 0 {
                u32::MAX
            } else {
                max_resets
            },
            since: now,
            tally: Tally::default(),
            errors: 0,
            farewell: None,
            broken: None,
        }
    }

    /// Counts `bytes`, the next that the client sent. Gives how many of them are good: fewer than
    /// all where the connection is broken.
    pub(super) fn hear(&mut self, bytes: &[u8], now: Instant) -> usize {
        if now.duration_since(self.since) > WINDOW {
            self.since = now;
            self.tally = Tally::default();
        }
        let between = self.heard.is_between();
        let mut frames = 0;
        let mut rest = match self.greet(bytes) {
            Some(rest) => rest,
            None => return self.fail(Broken::PREFACE, 0),
        };
        loop {
            let before = bytes.len() - rest.len() + self.heard.owed().min(rest.len());
            let Some(frame) = self.heard.next(&mut rest) else {
                if frames > 0 {
                    self.alone = between && frames == 1;
                }
                return bytes.len();
            };
            frames += 1;
            if let Err(broken) = self.judge(&frame) {
                return self.fail(broken, before);
            }
        }
    }

    /// Counts `bytes`, the next that were said to the client.
    pub(super) fn say(&mut self, mut bytes: &[u8]) {
        while let Some(frame) = self.said.next(&mut bytes) {
            match frame.kind {
                kind::DATA | kind::HEADERS => self.tally.earned += 1,
                kind::RST_STREAM if is_their_error(frame.word()) => {
                    self.errors += 1;
                    if let Err(broken) = self.reset() {
                        self.fail(broken, 0);
                    }
                }
                kind::GOAWAY => self.farewell = Some(frame.second_word()),
                _ => {}
            }
        }
    }

    /// Whether `goodbye`, a GOAWAY frame that h2 sends, blames a head that it cannot read: it says
    /// PROTOCOL_ERROR, where RFC 9113, 4.3 wants COMPRESSION_ERROR. Only where nothing else can be
    /// meant: the head of a new stream came alone and whole, and h2 knows of no such stream.
    pub(super) fn is_unreadable(&self, goodbye: &Frame) -> bool {
        let head = self.heard.last();
        let whole = head.flags & !flag::END_STREAM == flag::END_HEADERS;
        let new = head.stream == self.opened.newest && goodbye.word() < head.stream;
        let protocol = goodbye.second_word() == Broken::PROTOCOL;
        let alone = self.alone && self.heard.is_between() && self.said.is_between();
        head.kind == kind::HEADERS && whole && new && protocol && alone
    }

    /// Why hyper ended a connection that nobody else did, without a word: it does so for CONNECT
    /// with a body.
    pub(super) fn ended(&mut self) {
        if self.farewell.is_none() {
            self.fail(Broken::CONNECT, 0);
        }
    }

    /// Why the connection has to end, by this or by h2.
    pub(super) fn broken(&self) -> Option<Broken> {
        let told = self.farewell.filter(|code| *code != 0);
        self.broken.or(told.map(Broken::said))
    }

    /// Whether it is this that ends the connection.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// The GOAWAY frame to end with; `None`: one was sent, or there is no place for it.
    pub(super) fn goodbye(&self) -> Option<Vec<u8>> {
        let broken = self.broken.filter(|_| self.said.is_between())?;
        let length = u8::try_from(8 + broken.what.len()).ok()?;
        let mut frame = vec![0, 0, length, kind::GOAWAY, 0, 0, 0, 0, 0];
        frame.extend_from_slice(&self.opened.newest.to_be_bytes());
        frame.extend_from_slice(&broken.code.to_be_bytes());
        frame.extend_from_slice(broken.what.as_bytes());
        Some(frame)
    }

    /// The number of the head that has begun and not ended, if there is one; the preface is a head
    /// too, and so is what may become one.
    pub(super) fn owed(&self) -> Option<u32> {
        let within = self.in_head || (self.of_head && self.heard.owed() > 0);
        match (self.greeted, within, self.heard.is_in_header()) {
            (false, _, _) | (true, true, _) => Some(self.heads),
            (true, false, true) => Some(self.heads.wrapping_add(1)),
            (true, false, false) => None,
        }
    }

    /// The bytes of a DATA frame that came before the frame is whole.
    pub(super) fn unread(&self) -> usize {
        match self.heard.owed() {
            0 => 0,
            owed => self.data.saturating_sub(owed),
        }
    }

    /// What the client allows.
    pub(super) fn windows(&self) -> Windows {
        self.windows
    }

    /// How many streams ended for an error of the client since the last call.
    pub(super) fn take_errors(&mut self) -> u32 {
        std::mem::take(&mut self.errors)
    }

    fn fail(&mut self, broken: Broken, good: usize) -> usize {
        self.broken.get_or_insert(broken);
        good
    }

    /// What of `bytes` is behind the preface; `None`: it is another one.
    fn greet<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let due = PREFACE.get(self.preface..).unwrap_or_default();
        let (first, rest) = bytes.split_at(due.len().min(bytes.len()));
        self.preface += first.len();
        due.starts_with(first).then_some(rest)
    }

    fn judge(&mut self, frame: &Frame) -> Result<(), Broken> {
        if !self.greeted && (frame.kind != kind::SETTINGS || frame.has(flag::ACK)) {
            return Err(Broken::PREFACE);
        }
        self.greeted = true;
        self.of_head = matches!(frame.kind, kind::HEADERS | kind::CONTINUATION);
        self.heads = self.heads.wrapping_add(u32::from(!self.in_head));
        self.data = match frame.kind {
            kind::DATA => frame.length,
            _ => 0,
        };
        if !fits(frame) {
            return Err(Broken::SIZE);
        }
        match frame.kind {
            kind::DATA | kind::HEADERS if !self.in_head && self.opened.is_ended(frame.stream) => {
                return Err(Broken::CLOSED);
            }
            kind::SETTINGS => self.windows.settle(frame, self.heard.settings(frame))?,
            _ => {}
        }
        self.count(frame)?;
        self.opened.follow(frame);
        Ok(())
    }

    fn count(&mut self, frame: &Frame) -> Result<(), Broken> {
        let tally = &mut self.tally;
        let earned = tally.earned;
        let more = |base: u32, each: u32| base.saturating_add(earned.saturating_mul(each));
        match frame.kind {
            kind::DATA if frame.is_blank() && !frame.has(flag::END_STREAM) => {
                bump(&mut tally.blanks, BLANKS, "too many empty DATA frames")
            }
            kind::DATA | kind::PUSH_PROMISE => Ok(()),
            kind::HEADERS | kind::CONTINUATION => self.head(frame),
            kind::PRIORITY => {
                let bound = more(PRIORITIES, PRIORITIES_EARNED);
                bump(&mut tally.priorities, bound, "too many PRIORITY frames")
            }
            kind::RST_STREAM => self.reset(),
            kind::SETTINGS => bump(&mut tally.settings, SETTINGS, "too many SETTINGS frames"),
            kind::PING => {
                let bound = more(PINGS, PINGS_EARNED);
                bump(&mut tally.pings, bound, "too many PING frames")
            }
            kind::GOAWAY => bump(&mut tally.goaways, GOAWAYS, "too many GOAWAY frames"),
            kind::WINDOW_UPDATE => {
                self.windows.update(frame);
                if frame.word() < CRUMB {
                    bump(
                        &mut tally.crumbs,
                        CRUMBS,
                        "too many small WINDOW_UPDATE frames",
                    )?;
                }
                let bound = more(UPDATES, UPDATES_EARNED);
                bump(&mut tally.updates, bound, "too many WINDOW_UPDATE frames")
            }
            _ => {
                let bound = more(UNKNOWN, UNKNOWN_EARNED);
                bump(
                    &mut tally.unknown,
                    bound,
                    "too many frames of unknown types",
                )
            }
        }
    }

    fn head(&mut self, frame: &Frame) -> Result<(), Broken> {
        if frame.kind == kind::HEADERS && frame.stream > self.opened.newest {
            self.tally.earned += 1;
        }
        self.in_head = !frame.has(flag::END_HEADERS);
        match frame.length == 0 && self.in_head {
            true => bump(
                &mut self.tally.hollows,
                HOLLOWS,
                "too many empty parts of heads",
            ),
            false => Ok(()),
        }
    }

    fn reset(&mut self) -> Result<(), Broken> {
        bump(
            &mut self.tally.resets,
            self.max_resets,
            "too many stream resets",
        )
    }
}

/// Counts one more; past `bound` it is a flood.
fn bump(count: &mut u32, bound: u32, what: &'static str) -> Result<(), Broken> {
    *count = count.saturating_add(1);
    match *count > bound {
        true => Err(Broken::flood(what)),
        false => Ok(()),
    }
}

/// Whether a frame has a size that its type allows: h2 says PROTOCOL_ERROR where RFC 9113, 4.2
/// wants FRAME_SIZE_ERROR.
const fn fits(frame: &Frame) -> bool {
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

/// Codes of RST_STREAM with which we end a stream for what its client did wrong (RFC 9113, 7):
/// not NO_ERROR, INTERNAL_ERROR, CANCEL and HTTP_1_1_REQUIRED.
const fn is_their_error(code: u32) -> bool {
    matches!(code, 1 | 3..=7 | 9..=12)
}

#[cfg(test)]
mod tests;
