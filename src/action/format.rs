//! Which form an answer takes: problem details, HTML or text, by `Accept` (RFC 9110, 12.5.1).

use std::cmp::Reverse;

use http::HeaderValue;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `application/problem+json` (RFC 9457).
    Problem,
    /// A small page.
    Html,
    /// A line of text.
    Text,
}

/// The media types that choose a form, in order of preference where a client has none.
const OFFERS: [(Form, &str); 4] = [
    (Form::Problem, "application/problem+json"),
    (Form::Problem, "application/json"),
    (Form::Html, "text/html"),
    (Form::Text, "text/plain"),
];

/// How much a client likes a media type: by quality, then the one it named more exactly, then
/// the one it named first.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Liking {
    /// Thousandths.
    quality: u16,
    exactness: Exactness,
    place: Reverse<usize>,
}

/// How exactly a media range names a media type (RFC 9110, 12.5.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Exactness {
    #[default]
    Unnamed,
    /// `*/*`
    Anything,
    /// `text/*`
    Kind,
    /// `text/html`
    Media,
}

// === impl Form ===

impl Form {
    /// The form that the lines of `accept` like best; a machine's form where they do not say.
    pub fn negotiate(accept: &[&[u8]]) -> Self {
        let mut best = (Form::Problem, Liking::default());
        for (form, media) in OFFERS {
            let liking = liking(accept, media);
            if liking.quality > 0 && liking > best.1 {
                best = (form, liking);
            }
        }
        best.0
    }

    /// Its `content-type`.
    pub fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Form::Problem => "application/problem+json",
            Form::Html => "text/html; charset=utf-8",
            Form::Text => "text/plain; charset=utf-8",
        })
    }
}

/// How much a client likes `media`: what the most exact of its ranges says.
fn liking(accept: &[&[u8]], media: &str) -> Liking {
    let ranges = accept.iter().flat_map(|line| line.split(|&b| b == b','));
    let mut best = Liking::default();
    for (place, range) in ranges.enumerate() {
        let Some((exactness, quality)) = range_of(range, media) else {
            continue;
        };
        if exactness > best.exactness {
            best = Liking {
                quality,
                exactness,
                place: Reverse(place),
            };
        }
    }
    best
}

/// How exactly a media range names `media`, and its quality; `None`: not at all.
fn range_of(range: &[u8], media: &str) -> Option<(Exactness, u16)> {
    let range = std::str::from_utf8(range).ok()?;
    let mut pieces = range.split(';').map(str::trim);
    let (kind, sub) = pieces.next()?.split_once('/')?;
    let (own_kind, own_sub) = media.split_once('/')?;
    let exactness = match (kind, sub) {
        ("*", "*") => Exactness::Anything,
        (_, "*") if kind.eq_ignore_ascii_case(own_kind) => Exactness::Kind,
        _ if kind.eq_ignore_ascii_case(own_kind) && sub.eq_ignore_ascii_case(own_sub) => {
            Exactness::Media
        }
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
