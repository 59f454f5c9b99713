//! A configured answer in the dress of a real one.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};

use super::Imitation;
use crate::action::{Asked, Canned, Refused};
use crate::body::Body;

/// `canned` with the fields of a real success: its names, in its order. What is configured stands
/// where no value of the real ones can be repeated or made; a field without either is left out.
pub fn dress(asked: &Asked<'_>, canned: &Canned, imitation: &Imitation) -> Response<Body> {
    let empty = matches!(
        canned.status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT
    );
    let body = match empty {
        true => Vec::new(),
        false => coded(canned.filled(asked).into_bytes(), imitation.gzip),
    };
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = canned.status;
    for (name, learned) in &imitation.fields {
        let value = match *name {
            CONTENT_LENGTH => Some(HeaderValue::from(body.len())),
            CONTENT_TYPE => Some(content_type(canned, learned.as_ref())).filter(|v| !v.is_empty()),
            _ => learned.clone().or_else(|| configured(asked, canned, name)),
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

/// The real one if it is of the same media type: it may spell it in another way.
fn content_type(canned: &Canned, learned: Option<&HeaderValue>) -> HeaderValue {
    let same = learned.filter(|real| {
        let (real, own) = (media_type(real), media_type(&canned.content_type));
        own.is_empty() || real.eq_ignore_ascii_case(own)
    });
    same.unwrap_or(&canned.content_type).clone()
}

fn media_type(value: &HeaderValue) -> &[u8] {
    let bytes = value.as_bytes();
    let end = bytes.iter().position(|byte| *byte == b';');
    let media = bytes.get(..end.unwrap_or(bytes.len()));
    media.unwrap_or_default().trim_ascii()
}

fn configured(asked: &Asked<'_>, canned: &Canned, name: &HeaderName) -> Option<HeaderValue> {
    let mut headers = canned.headers.iter();
    let (_, field) = headers.find(|(own, _)| own == name)?;
    field.value(asked, &Refused::NOBODY)
}

fn coded(body: Vec<u8>, gzip: bool) -> Vec<u8> {
    if !gzip {
        return body;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail; if it did, the answer would have no body.
    let written = encoder.write_all(&body).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}
