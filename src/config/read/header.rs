//! Reads tables of headers, and the changes that a route makes to them.

use http::{HeaderName, header};

use crate::config::file::{Header, HeaderEdits};
use crate::config::scalar::{Wrong, header_name, header_value, parse_header_name};
use crate::config::section::{Raw, Section};
use crate::config::{Spanned, Text, schema};
use crate::route::edit::{Message, is_host};

/// Whether a header may be named, and why not.
type Allowed = fn(&HeaderName) -> Result<(), Wrong>;

/// A table of headers, each name once.
pub(super) fn headers(s: &mut Section<'_, '_>, allowed: Allowed) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::new();
    for (name, raw) in s.entries(schema::HEADER_NAME) {
        let Some(new) = one_header(s, &name, raw, allowed) else {
            continue;
        };
        let same = |old: &&Header| old.name.value == new.name.value;
        if let Some(old) = headers.iter().find(same) {
            s.out
                .error(name.span, format!("`{}` is given twice", new.name.value))
                .related(old.name.span.clone(), "here already");
            continue;
        }
        headers.push(new);
    }
    headers
}

fn one_header(
    s: &mut Section<'_, '_>,
    name: &Text,
    raw: &Raw<'_>,
    allowed: Allowed,
) -> Option<Header> {
    let value = s.entry(raw, &header_value());
    match parse_header_name(&name.value).and_then(|name| allowed(&name).map(|()| name)) {
        Ok(parsed) => Some(Header {
            name: Spanned::new(parsed, name.span.clone()),
            value: value?,
        }),
        Err(wrong) => {
            s.wrong(name.span.clone(), wrong);
            None
        }
    }
}

/// A header that only the gateway writes.
pub(super) fn owned(name: &HeaderName) -> Wrong {
    Wrong::new(format!("`{name}` is set by the gateway itself")).help("remove it")
}

/// `request_headers` and `response_headers`.
pub(super) fn edits(s: &mut Section<'_, '_>, message: Message) -> HeaderEdits {
    let allowed: Allowed = match message {
        Message::Request => |name| may_change(name, Message::Request),
        Message::Response => |name| may_change(name, Message::Response),
    };
    let set = s.table("set", |s| headers(s, allowed)).unwrap_or_default();
    let remove = s.array_or("remove", header_name(), []);
    let remove = s.each_once("remove", remove, "a header is listed twice");
    for host in set.iter().filter(|h| h.name.value == header::HOST) {
        if message == Message::Request && !is_host(&host.value.value) {
            let message = "this is not a host";
            s.out
                .error(host.value.span.clone(), message)
                .help("for example \"app.internal:8080\"");
        }
    }
    let remove = remove.into_iter();
    let remove = remove.filter(|name| may_remove(s, name, &set, message));
    HeaderEdits {
        remove: remove.collect(),
        set,
    }
}

fn may_change(name: &HeaderName, message: Message) -> Result<(), Wrong> {
    match message.owns(name) {
        true => Err(owned(name)),
        false => Ok(()),
    }
}

fn may_remove(
    s: &mut Section<'_, '_>,
    name: &Spanned<HeaderName>,
    set: &[Header],
    message: Message,
) -> bool {
    let host = message == Message::Request && name.value == header::HOST;
    if host || message.owns(&name.value) {
        s.wrong(name.span.clone(), owned(&name.value));
        return false;
    }
    if let Some(header) = set.iter().find(|header| header.name.value == name.value) {
        let message = format!("`{}` is given twice: it is set too", name.value);
        s.out
            .error(name.span.clone(), message)
            .related(header.name.span.clone(), "here")
            .help("what is set replaces what was there");
        return false;
    }
    true
}
