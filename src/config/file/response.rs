//! `[responses]`.

use http::{HeaderName, HeaderValue, StatusCode, header};

use super::checked_name;
use super::headers::{headers, owned};
use super::route::content_type;
use crate::config::scalar::{ValueError, boolean, status, text};
use crate::config::section::SectionReader;
use crate::config::{Spanned, Text, schema};

/// One of `[responses]`.
#[derive(Clone, Debug)]
pub struct ResponseSettings {
    /// The name that rules use.
    pub name: Text,
    /// The status. `None` for 200, or 429 if a rule blocks with it.
    pub status: Option<Spanned<StatusCode>>,
    /// The media type. Default `text/plain; charset=utf-8`.
    pub content_type: Spanned<HeaderValue>,
    /// The body, a template with placeholders such as `{{uuid}}`. Default empty.
    pub body: Text,
    /// The HTML body for clients that prefer HTML, a template. `None` for `body`.
    pub html: Option<Text>,
    /// The JSON body for clients that prefer JSON, a template. `None` for `body`.
    pub json: Option<Text>,
    /// Headers in addition to the media type, in file order.
    pub headers: Vec<HeaderSetting>,
    /// `shadow`: whether to copy headers and timing of the route's real responses. Default false.
    pub imitate: Spanned<bool>,
}

/// A header of a response.
#[derive(Clone, Debug)]
pub struct HeaderSetting {
    /// Its name, in lower case.
    pub name: Spanned<HeaderName>,
    /// Its value.
    pub value: Spanned<HeaderValue>,
}

pub(super) fn responses(s: &mut SectionReader<'_, '_>) -> Vec<ResponseSettings> {
    let mut responses = Vec::new();
    for (name, raw) in s.entries(schema::NAME) {
        let name = checked_name(s, name);
        responses.extend(s.entry_table(raw, |s| response(s, name)));
    }
    responses
}

fn response(s: &mut SectionReader<'_, '_>, name: Text) -> ResponseSettings {
    let response = ResponseSettings {
        name,
        status: s.optional("status", status()),
        content_type: content_type(s),
        body: s.or("body", text(), ""),
        html: s.optional("html", text()),
        json: s.optional("json", text()),
        headers: s
            .table("headers", |s| headers(s, allowed))
            .unwrap_or_default(),
        imitate: s.or("imitate", boolean(), false),
    };
    must_succeed(s, &response);
    one_media_type(s, &response);
    response
}

/// Refuses `html` and `json` with `imitate`: an imitation has the media type of the real responses.
fn one_media_type(s: &mut SectionReader<'_, '_>, response: &ResponseSettings) {
    if !response.imitate.value {
        return;
    }
    for key in ["html", "json"] {
        if let Some(span) = s.key_span(key) {
            let message = format!("`{key}` cannot be combined with `imitate`");
            s.out
                .error(span, message)
                .related(response.imitate.span.clone(), "`imitate` is set here")
                .help("write `body` and `content_type`");
        }
    }
}

// === impl ResponseSettings ===

impl ResponseSettings {
    /// The bodies, each a template.
    pub fn bodies(&self) -> impl Iterator<Item = &Text> {
        [&self.body].into_iter().chain(&self.html).chain(&self.json)
    }
}

/// Requires a success status with `imitate`: the copied headers come from successful responses.
fn must_succeed(s: &mut SectionReader<'_, '_>, response: &ResponseSettings) {
    let status = response.status.as_ref().filter(|_| response.imitate.value);
    if let Some(status) = status.filter(|status| !status.value.is_success()) {
        s.out
            .error(status.span.clone(), "`imitate` requires a success status")
            .related(response.imitate.span.clone(), "`imitate` is set here")
            .help("write a status from 200 to 299, or remove `imitate`");
    }
}

/// Refuses headers that only the gateway sets (RFC 9110, section 7.6.1; RFC 9112, section 6).
pub(super) fn allowed(name: &HeaderName) -> Result<(), ValueError> {
    let own = [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::DATE,
        header::TRANSFER_ENCODING,
        header::TRAILER,
        header::UPGRADE,
    ];
    if *name == header::CONTENT_TYPE {
        return Err(ValueError::new(
            "`content-type` is not allowed here: use `content_type`",
        ));
    }
    if own.contains(name) || *name == "keep-alive" {
        Err(owned(name))
    } else {
        Ok(())
    }
}
