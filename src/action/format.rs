//! The format of a response: problem details, HTML or text, negotiated by `Accept` (RFC 9110, 12.5.1).

use std::cmp::Reverse;

use http::HeaderValue;

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFormat {
    /// `application/problem+json` (RFC 9457).
    Problem,
    /// A small HTML page.
    Html,
    /// A line of text.
    Text,
}

/// The media types that select a format, in the gateway's order of preference.
const OFFERS: [(ResponseFormat, &str); 4] = [
    (ResponseFormat::Problem, "application/problem+json"),
    (ResponseFormat::Problem, "application/json"),
    (ResponseFormat::Html, "text/html"),
    (ResponseFormat::Text, "text/plain"),
];

/// How much a client prefers a media type: the quality in thousandths, then how exactly a range matches the
/// type, then the range's position. Zero if no range matches.
type Preference = (u16, u8, Reverse<usize>);

// === impl ResponseFormat ===

impl ResponseFormat {
    /// Returns the format that the `accept` lines prefer. Problem details if no range matches.
    pub fn negotiate(accept: &[&[u8]]) -> Self {
        let mut best = (ResponseFormat::Problem, Preference::default());
        for (form, media) in OFFERS {
            let preference = preference(accept, media);
            if preference.0 > 0 && preference > best.1 {
                best = (form, preference);
            }
        }
        best.0
    }

    /// The value of `content-type`.
    pub fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            ResponseFormat::Problem => "application/problem+json",
            ResponseFormat::Html => "text/html; charset=utf-8",
            ResponseFormat::Text => "text/plain; charset=utf-8",
        })
    }
}

/// Returns the preference of the range that matches `media` most exactly.
fn preference(accept: &[&[u8]], media: &str) -> Preference {
    let ranges = accept.iter().flat_map(|line| line.split(|&b| b == b','));
    let mut best = Preference::default();
    for (position, range) in ranges.enumerate() {
        if let Some((exactness, quality)) = range_of(range, media).filter(|r| r.0 > best.1) {
            best = (quality, exactness, Reverse(position));
        }
    }
    best
}

/// Returns how exactly a media range matches `media` (1: `*/*`, 2: `text/*`, 3: `text/html`) and its quality.
fn range_of(range: &[u8], media: &str) -> Option<(u8, u16)> {
    let range = std::str::from_utf8(range).ok()?;
    let mut pieces = range.split(';').map(str::trim);
    let (kind, sub) = pieces.next()?.split_once('/')?;
    let (own_kind, own_sub) = media.split_once('/')?;
    let same_kind = kind.eq_ignore_ascii_case(own_kind);
    let exactness = match (kind, sub) {
        ("*", "*") => 1,
        (_, "*") if same_kind => 2,
        _ if same_kind && sub.eq_ignore_ascii_case(own_sub) => 3,
        _ => return None,
    };
    let quality = pieces
        .find_map(|piece| piece.strip_prefix("q=").or(piece.strip_prefix("Q=")))
        .map_or(1000, thousandths);
    Some((exactness, quality))
}

fn thousandths(quality: &str) -> u16 {
    let value: f32 = quality.parse().unwrap_or(0.0);
    (value.clamp(0.0, 1.0) * 1000.0) as u16
}
