//! Tables of headers.

use http::{HeaderName, header};

use super::HeaderSetting;
use crate::config::scalar::{ValueError, header_name, header_value, parse_header_name};
use crate::config::section::{Raw, SectionReader};
use crate::config::{Spanned, Text, schema};
use crate::route::edit::{MessageKind, is_host};

/// `request_headers` or `response_headers` of a route.
#[derive(Clone, Debug, Default)]
pub struct HeaderEditSettings {
    /// Headers to set, each to a template.
    pub set: Vec<HeaderSetting>,
    /// Headers to remove.
    pub remove: Vec<HeaderName>,
}

/// Checks whether a header may be named. The error contains the reason if not.
type Allowed = fn(&HeaderName) -> Result<(), ValueError>;

/// Reads a table of headers with unique names.
pub(super) fn headers(s: &mut SectionReader<'_, '_>, allowed: Allowed) -> Vec<HeaderSetting> {
    let mut headers: Vec<HeaderSetting> = Vec::new();
    for (name, raw) in s.entries(schema::HEADER_NAME) {
        let Some(new) = one_header(s, &name, raw, allowed) else {
            continue;
        };
        let same = |old: &&HeaderSetting| old.name.value == new.name.value;
        if let Some(old) = headers.iter().find(same) {
            s.out
                .error(name.span, format!("`{}` is set twice", new.name.value))
                .related(old.name.span.clone(), "first set here");
            continue;
        }
        headers.push(new);
    }
    headers
}

fn one_header(
    s: &mut SectionReader<'_, '_>,
    name: &Text,
    raw: &Raw<'_>,
    allowed: Allowed,
) -> Option<HeaderSetting> {
    let value = s.entry(raw, &header_value());
    match parse_header_name(&name.value).and_then(|name| allowed(&name).map(|()| name)) {
        Ok(parsed) => Some(HeaderSetting {
            name: Spanned::new(parsed, name.span.clone()),
            value: value?,
        }),
        Err(wrong) => {
            s.wrong(name.span.clone(), wrong);
            None
        }
    }
}

/// Returns the error that only the gateway sets this header.
pub(super) fn owned(name: &HeaderName) -> ValueError {
    ValueError::new(format!("`{name}` is set by the gateway itself")).help("remove it")
}

/// Reads `request_headers` and `response_headers`.
pub(super) fn edits(s: &mut SectionReader<'_, '_>, message: MessageKind) -> HeaderEditSettings {
    let allowed: Allowed = match message {
        MessageKind::Request => |name| may_change(name, MessageKind::Request),
        MessageKind::Response => |name| may_change(name, MessageKind::Response),
    };
    let set = s.table("set", |s| headers(s, allowed)).unwrap_or_default();
    let remove = s.array_or("remove", header_name(), []);
    let remove = s.each_once("remove", remove, "a header is listed twice");
    for host in set.iter().filter(|h| h.name.value == header::HOST) {
        if message == MessageKind::Request && !is_host(&host.value.value) {
            let message = "this is not a valid host";
            s.out
                .error(host.value.span.clone(), message)
                .help("for example \"app.internal:8080\"");
        }
    }
    let remove = remove.into_iter();
    let remove = remove.filter(|name| may_remove(s, name, &set, message));
    let remove = remove.map(|name| name.value).collect();
    HeaderEditSettings { set, remove }
}

fn may_change(name: &HeaderName, message: MessageKind) -> Result<(), ValueError> {
    if message.owns(name) {
        Err(owned(name))
    } else {
        Ok(())
    }
}

fn may_remove(
    s: &mut SectionReader<'_, '_>,
    name: &Spanned<HeaderName>,
    set: &[HeaderSetting],
    message: MessageKind,
) -> bool {
    let host = message == MessageKind::Request && name.value == header::HOST;
    if host || message.owns(&name.value) {
        s.wrong(name.span.clone(), owned(&name.value));
        return false;
    }
    if let Some(header) = set.iter().find(|header| header.name.value == name.value) {
        let message = format!("`{}` is in both `set` and `remove`", name.value);
        s.out
            .error(name.span.clone(), message)
            .related(header.name.span.clone(), "here")
            .help("remove it from `remove`: `set` replaces the header");
        return false;
    }
    true
}
