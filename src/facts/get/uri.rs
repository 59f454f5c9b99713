//! The getters of the address that was asked for, in normal form and as sent.

use std::borrow::Cow;

use super::{Bytes, lower, text};
use crate::facts::{Head, View};

pub fn full_uri<'a>(view: View<'a, '_>) -> Bytes<'a> {
    absolute(view.request.head, &view.request.head.uri())
}

pub fn raw_full_uri<'a>(view: View<'a, '_>) -> Bytes<'a> {
    absolute(view.request.head, view.request.head.raw_uri())
}

pub fn raw_uri<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(view.request.head.raw_uri())
}

pub fn uri<'a>(view: View<'a, '_>) -> Bytes<'a> {
    Some(match view.request.head.uri() {
        Cow::Borrowed(uri) => Cow::Borrowed(uri.as_bytes()),
        Cow::Owned(uri) => Cow::Owned(uri.into_bytes()),
    })
}

pub fn path<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(&view.request.head.path)
}

pub fn extension<'a>(view: View<'a, '_>) -> Bytes<'a> {
    lower(extension_of(&view.request.head.path).as_bytes())
}

pub fn raw_extension<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(extension_of(view.request.head.raw_path))
}

fn absolute<'a>(head: &Head<'_>, uri: &str) -> Bytes<'a> {
    let scheme = if head.secure { "https" } else { "http" };
    let full = format!("{scheme}://{}{uri}", head.authority());
    Some(Cow::Owned(full.into_bytes()))
}

/// Empty where there is none, as Cloudflare has it; a name that is nothing but a dot and more
/// (`.env`) has none.
fn extension_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => "",
    }
}
