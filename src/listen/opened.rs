//! Which streams of an HTTP/2 connection their client has ended.
//!
//! DATA or HEADERS on one of them is STREAM_CLOSED (RFC 9113, 5.1), where h2 says PROTOCOL_ERROR. It
//! remembers the newest [`SPAN`] streams; older ones it leaves to h2.

use super::frames::{Frame, flag, kind};

/// As many as may be open at once by default, and as many again.
const SPAN: u32 = 256;

/// The streams that a client opened. They have odd numbers (RFC 9113, 5.1.1).
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// The highest.
    pub(super) newest: u32,
    /// A bit for each of the newest, by its place among the odd numbers.
    ended: [u64; SPAN as usize / 64],
}

// === impl Opened ===

impl Opened {
    /// Whether the client ended this stream.
    pub(super) fn is_ended(&self, stream: u32) -> bool {
        let (word, bit) = place(stream);
        let known = stream % 2 == 1 && stream <= self.newest && self.newest - stream < 2 * SPAN;
        known && self.ended.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Takes note of what a frame opens and ends.
    pub(super) fn follow(&mut self, frame: &Frame) {
        if frame.stream.is_multiple_of(2) {
            return;
        }
        match frame.kind {
            kind::HEADERS => self.open(frame.stream),
            kind::DATA | kind::RST_STREAM => {}
            _ => return,
        }
        if frame.kind == kind::RST_STREAM || frame.has(flag::END_STREAM) {
            self.end(frame.stream);
        }
    }

    /// Those that were passed over are closed too, but not by an end.
    fn open(&mut self, stream: u32) {
        if stream > self.newest {
            let passed = ((stream - self.newest).div_ceil(2)).min(SPAN);
            for back in 0..passed {
                let (word, bit) = place(stream.saturating_sub(2 * back));
                if let Some(word) = self.ended.get_mut(word) {
                    *word &= !bit;
                }
            }
            self.newest = stream;
        }
    }

    fn end(&mut self, stream: u32) {
        let (word, bit) = place(stream);
        if stream <= self.newest
            && self.newest - stream < 2 * SPAN
            && let Some(word) = self.ended.get_mut(word)
        {
            *word |= bit;
        }
    }
}

fn place(stream: u32) -> (usize, u64) {
    let at = stream / 2 % SPAN;
    (at as usize / 64, 1 << (at % 64))
}

#[cfg(test)]
mod tests;
