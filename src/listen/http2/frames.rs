//! Finds the frames of one direction of an HTTP/2 connection by their headers (RFC 9113, 4.1), and tracks which
//! streams they have ended.
//!
//! It follows bytes in any split, keeps only the beginning of one frame, and makes no decision.

/// The size of a frame header, in octets.
const HEADER: usize = 9;

/// The position of the flags in it.
pub(super) const FLAGS: usize = 4;

/// The kept octets of a payload: enough for an increment, an error code or a GOAWAY.
const PEEK: usize = 8;

/// The size of a minimal GOAWAY frame, in octets; the last four are its error code.
pub(super) const GOAWAY: usize = HEADER + PEEK;

/// The kept octets of SETTINGS: eight settings; no client was seen to send more.
pub(super) const PEEK_SETTINGS: usize = 48;

/// The size of a setting, in octets.
const SETTING: usize = 6;

/// The frame types (RFC 9113, 6).
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const PRIORITY: u8 = 2;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PUSH_PROMISE: u8 = 5;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

/// The frame flags: ACK is END_STREAM's bit.
pub(super) mod flag {
    pub(in super::super) const ACK: u8 = 0x1;
    pub(in super::super) const END_STREAM: u8 = 0x1;
    pub(in super::super) const END_HEADERS: u8 = 0x4;
    pub(in super::super) const PADDED: u8 = 0x8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// The scanner's position in the bytes of a direction.
#[derive(Debug)]
pub(super) struct FrameScanner {
    begun: [u8; HEADER + PEEK_SETTINGS],
    have: usize,
    /// The number of payload bytes of the last frame that have not arrived.
    left: usize,
}

/// A frame header and the first octets of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    payload: [u8; PEEK],
}

/// Twice the streams that may be open at once by default.
const SPAN: u32 = 256;

/// The streams of a connection that their client has ended. They have odd numbers (RFC 9113, 5.1.1).
///
/// DATA or HEADERS on one of them is STREAM_CLOSED (RFC 9113, 5.1), but h2 sends PROTOCOL_ERROR. Only the newest
/// [`SPAN`] streams are remembered; older ones are left to h2.
#[derive(Debug, Default)]
pub(super) struct ClosedStreams {
    /// The highest stream number.
    pub(super) newest: u32,
    /// One bit for each of the newest streams, by its position among the odd numbers.
    ended: [u64; SPAN as usize / 64],
}

// === impl FrameScanner ===

impl FrameScanner {
    pub(super) const fn new() -> Self {
        Self {
            begun: [0; HEADER + PEEK_SETTINGS],
            have: 0,
            left: 0,
        }
    }

    /// Returns the next frame that begins in `bytes` and advances `bytes` past its beginning. `None` once all
    /// bytes are read.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Option<FrameHeader> {
        let skipped = self.left.min(bytes.len());
        self.left -= skipped;
        *bytes = bytes.get(skipped..)?;
        while self.have < self.wanted() {
            if bytes.is_empty() {
                return None;
            }
            self.gather(bytes);
        }
        let frame = FrameHeader::read(&self.begun);
        self.left = frame.length - (self.have - HEADER);
        self.have = 0;
        Some(frame)
    }

    /// Returns the identifiers and values of `frame`, which must be the last one returned and SETTINGS.
    pub(super) fn settings(&self, frame: &FrameHeader) -> impl Iterator<Item = (u16, u32)> {
        let end = HEADER + frame.length.min(PEEK_SETTINGS);
        let payload = self.begun.get(HEADER..end).unwrap_or_default();
        payload.chunks_exact(SETTING).filter_map(|setting| {
            let [a, b, value @ ..] = <[u8; SETTING]>::try_from(setting).ok()?;
            Some((u16::from_be_bytes([a, b]), u32::from_be_bytes(value)))
        })
    }

    /// Returns the last frame again, until another begins.
    pub(super) fn last(&self) -> FrameHeader {
        FrameHeader::read(&self.begun)
    }

    /// Returns the number of bytes before the next frame can begin.
    pub(super) fn remaining(&self) -> usize {
        self.left
    }

    /// Returns whether a header is incomplete.
    pub(super) fn is_in_header(&self) -> bool {
        self.have > 0
    }

    /// Returns whether a frame may begin here.
    pub(super) fn is_between(&self) -> bool {
        self.have == 0 && self.left == 0
    }

    fn gather(&mut self, bytes: &mut &[u8]) {
        let taken = (self.wanted() - self.have).min(bytes.len());
        let to = self.begun.get_mut(self.have..self.have + taken);
        let (now, later) = bytes.split_at(taken);
        if let Some(to) = to {
            to.copy_from_slice(now);
        }
        self.have += taken;
        *bytes = later;
    }

    fn wanted(&self) -> usize {
        match self.have {
            ..HEADER => HEADER,
            _ => {
                let frame = FrameHeader::read(&self.begun);
                let peek = match frame.kind {
                    kind::SETTINGS => PEEK_SETTINGS,
                    _ => PEEK,
                };
                HEADER + frame.length.min(peek)
            }
        }
    }
}

// === impl FrameHeader ===

impl FrameHeader {
    fn read(begun: &[u8; HEADER + PEEK_SETTINGS]) -> Self {
        let [a, b, c, kind, flags, s, t, r, e, payload @ ..] = *begun;
        let [p0, p1, p2, p3, p4, p5, p6, p7, ..] = payload;
        Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            // The first bit is reserved.
            stream: u32::from_be_bytes([s & 0x7f, t, r, e]),
            payload: [p0, p1, p2, p3, p4, p5, p6, p7],
        }
    }

    /// Returns the frame at the beginning of `bytes`, if it is GOAWAY.
    pub(super) fn goaway(bytes: &[u8]) -> Option<Self> {
        if bytes.get(3) != Some(&kind::GOAWAY) {
            return None;
        }
        let mut begun = [0; HEADER + PEEK_SETTINGS];
        let (to, from) = (begun.get_mut(..GOAWAY)?, bytes.get(..GOAWAY)?);
        to.copy_from_slice(from);
        Some(Self::read(&begun))
    }

    /// Returns whether `flag` is set.
    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether a DATA frame carries only padding.
    pub(super) const fn is_blank(&self) -> bool {
        let [padding, ..] = self.payload;
        if self.has(flag::PADDED) {
            self.length <= 1 + padding as usize
        } else {
            self.length == 0
        }
    }

    /// Returns whether the block of a HEADERS frame begins with a pseudo-header, which stands before all other headers
    /// (RFC 9113, 8.3). Only if the block names it literally or by HPACK's static table: the dynamic table is unknown here.
    pub(super) fn begins_with_pseudo_header(&self) -> bool {
        let padding = usize::from(self.has(flag::PADDED));
        let priority = if self.has(flag::PRIORITY) { 5 } else { 0 };
        let block = self.payload.get(padding + priority..self.length.min(PEEK));
        // RFC 7541, 6: an indexed header, a literal to be indexed, a new table size, another literal.
        match block.unwrap_or_default() {
            [first @ 0x80..=0xff, ..] => is_pseudo_index(first & 0x7f),
            [first @ 0x40..=0x7f, name @ ..] => is_pseudo_name(first & 0x3f, name),
            [0x20..=0x3f, ..] | [] => false,
            [first, name @ ..] => is_pseudo_name(first & 0x0f, name),
        }
    }

    /// Returns the first four octets of the payload: an increment or an error code.
    pub(super) const fn word(&self) -> u32 {
        let [a, b, c, d, ..] = self.payload;
        u32::from_be_bytes([a, b, c, d])
    }

    /// Returns the next four octets: the error code of GOAWAY.
    pub(super) const fn second_word(&self) -> u32 {
        let [_, _, _, _, a, b, c, d] = self.payload;
        u32::from_be_bytes([a, b, c, d])
    }
}

// === impl ClosedStreams ===

impl ClosedStreams {
    /// Returns whether the client ended this stream.
    pub(super) fn is_ended(&self, stream: u32) -> bool {
        let (word, bit) = position(stream);
        let known = stream % 2 == 1 && stream <= self.newest && self.newest - stream < 2 * SPAN;
        known && self.ended.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Records the streams that a frame opens and ends.
    pub(super) fn follow(&mut self, frame: &FrameHeader) {
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

    /// Opens a stream. Skipped streams are closed too, but not recorded as ended.
    fn open(&mut self, stream: u32) {
        if stream > self.newest {
            let skipped = ((stream - self.newest).div_ceil(2)).min(SPAN);
            for back in 0..skipped {
                let (word, bit) = position(stream.saturating_sub(2 * back));
                if let Some(word) = self.ended.get_mut(word) {
                    *word &= !bit;
                }
            }
            self.newest = stream;
        }
    }

    fn end(&mut self, stream: u32) {
        let (word, bit) = position(stream);
        if stream <= self.newest
            && self.newest - stream < 2 * SPAN
            && let Some(word) = self.ended.get_mut(word)
        {
            *word |= bit;
        }
    }
}

/// Returns whether an entry of HPACK's static table is a pseudo-header (RFC 7541, appendix A).
fn is_pseudo_index(index: u8) -> bool {
    (1..=14).contains(&index)
}

/// Returns whether the name of a literal is that of a pseudo-header: by `index`, or if that is zero, by its length and its
/// first octet, which may be in Huffman code.
fn is_pseudo_name(index: u8, name: &[u8]) -> bool {
    match name {
        _ if index > 0 => is_pseudo_index(index),
        [0x80..=0xff, first, ..] => first & 0xfe == 0xb8,
        [_, first, ..] => *first == b':',
        _ => false,
    }
}

fn position(stream: u32) -> (usize, u64) {
    let at = stream / 2 % SPAN;
    (at as usize / 64, 1 << (at % 64))
}

#[cfg(test)]
mod tests;
