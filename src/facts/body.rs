//! The part of a request body that rules can read, and which parts of it rules read.
//!
//! A body with two readings has none: fields of a form are missing if the body is truncated, content-encoded, not
//! declared as a form or has very many fields. Form fields are decoded as query arguments are.

use std::borrow::Cow;
use std::cell::OnceCell;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use super::getters;
use super::maps::split;
use super::query;
use crate::expr::FieldId;

/// A form with more fields than this is not read. It is the limit of common frameworks.
pub const MAX_FORM_FIELDS: usize = 1000;

/// The media type of an urlencoded form.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// A name and its value, decoded.
pub type FormField = (Box<[u8]>, Box<[u8]>);

/// The first bytes of a request body.
#[derive(Debug)]
pub struct InspectedBody {
    bytes: Bytes,
    is_complete: bool,
    kind: BodyKind,
    has_form: bool,
    fields: OnceCell<Vec<FormField>>,
}

/// What the headers of a request declare about its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// An urlencoded form.
    Form,
    /// Any other body that can be read as it is.
    Plain,
    /// A multipart body.
    Multipart,
    /// A body with a content coding, such as gzip.
    Encoded,
}

/// The parts of a body that rules read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyReads {
    /// The fields of a form.
    pub form: bool,
    /// The bytes.
    pub raw: bool,
    /// Whether the body is longer than what is read of it.
    pub truncated: bool,
    /// The user of the request, which the body can contain: see [`super::KnownClients::user_reads`].
    pub user: bool,
}

// === impl InspectedBody ===

impl InspectedBody {
    /// A body that begins with `bytes`. `is_complete` is whether it ends with them.
    pub fn new(bytes: Bytes, is_complete: bool, kind: BodyKind) -> Self {
        let few = || split(&bytes, b'&').nth(MAX_FORM_FIELDS).is_none();
        let has_form = kind == BodyKind::Form && is_complete && few();
        Self {
            bytes,
            is_complete,
            kind,
            has_form,
            fields: OnceCell::new(),
        }
    }

    /// The first bytes, whatever their kind.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether the body ends with [`InspectedBody::bytes`].
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the fields of the form can be read.
    pub fn has_form(&self) -> bool {
        self.has_form
    }

    /// The bytes as rules read them. `None` for a multipart or encoded body.
    pub fn raw(&self) -> Option<&[u8]> {
        let is_readable = matches!(self.kind, BodyKind::Form | BodyKind::Plain);
        is_readable.then_some(&self.bytes)
    }

    /// The `nth` value of the form field `name`. `None` if there is none.
    pub fn form_value(&self, name: &[u8], nth: usize) -> Option<Cow<'_, [u8]>> {
        query::find(self.form(), name, nth)
    }

    /// The fields of the form, in order.
    pub fn form_fields(&self) -> &[FormField] {
        self.fields.get_or_init(|| {
            let pairs = query::parse(self.form()).into_iter();
            let owned = |(name, value): query::Argument<'_>| (name.into(), value.into());
            pairs.map(owned).collect()
        })
    }

    fn form(&self) -> &[u8] {
        if self.has_form { &self.bytes } else { &[] }
    }
}

// === impl BodyKind ===

impl BodyKind {
    /// What these request headers declare.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut codings = headers.get_all(CONTENT_ENCODING).iter();
        if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return BodyKind::Encoded;
        }
        let mut types = headers.get_all(CONTENT_TYPE).iter();
        let is_multipart =
            |media_type: &[u8]| media_type.to_ascii_lowercase().starts_with(b"multipart/");
        if types.any(|line| is_multipart(line.as_bytes().trim_ascii_start())) {
            return BodyKind::Multipart;
        }
        match request_media_type(headers) {
            Some(media_type) if *media_type == *FORM.as_bytes() => BodyKind::Form,
            _ => BodyKind::Plain,
        }
    }
}

/// The media type of a request in lower case, without parameters. `None` without a `Content-Type`, or with several,
/// of which an origin server may read another one.
pub(super) fn request_media_type(headers: &HeaderMap) -> getters::Bytes<'_> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let line = lines.next()?;
    let is_only = lines.next().is_none();
    getters::media_type_of(line.as_bytes()).filter(|_| is_only)
}

// === impl BodyReads ===

impl BodyReads {
    /// The fields of a form alone.
    pub const FORM: Self = Self {
        form: true,
        raw: false,
        truncated: false,
        user: false,
    };

    /// What an expression that reads `fields` reads of the body.
    pub fn of(fields: &[FieldId]) -> Self {
        use super::fields::{BODY_RAW, BODY_TRUNCATED, CLIENT_KNOWN_USER, FORM_FIELDS};
        Self {
            form: fields.iter().any(|field| FORM_FIELDS.contains(field)),
            raw: fields.contains(&BODY_RAW),
            truncated: fields.contains(&BODY_TRUNCATED),
            user: fields.contains(&CLIENT_KNOWN_USER),
        }
    }

    /// What either of two expressions reads.
    pub fn or(self, other: Self) -> Self {
        Self {
            form: self.form || other.form,
            raw: self.raw || other.raw,
            truncated: self.truncated || other.truncated,
            user: self.user || other.user,
        }
    }

    /// Whether nothing of the body is read.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Whether a body of this kind has any of it.
    pub fn are_in(self, kind: BodyKind) -> bool {
        self.truncated
            || match kind {
                BodyKind::Form => self.form || self.raw,
                BodyKind::Plain => self.raw,
                BodyKind::Multipart | BodyKind::Encoded => false,
            }
    }
}

#[cfg(test)]
mod tests;
