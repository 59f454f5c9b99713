//! Reads `[[routes]]`.

use http::HeaderValue;

use super::header::edits;
use crate::config::defaults;
use crate::config::file::{PathForm, Respond, Route, Target};
use crate::config::scalar::{choice, filled, header_value, status, text};
use crate::config::section::Section;
use crate::route::edit::Message;

const TARGETS: &[&str] = &["upstream", "respond", "redirect"];
const FORMS: &[(&str, PathForm)] = &[("normalized", PathForm::Normalized), ("raw", PathForm::Raw)];

pub(super) fn route(s: &mut Section<'_, '_>) -> Route {
    s.exactly_one("a route", TARGETS, "upstream = \"app\"");
    let edits = |s: &mut Section<'_, '_>, key, message| {
        let read = s.table(key, |s| edits(s, message));
        read.unwrap_or_default()
    };
    let route = Route {
        span: s.span(),
        hosts: s.array_or("hosts", filled(), []),
        path: s.optional("path", filled()),
        target: target(s),
        request_headers: edits(s, "request_headers", Message::Request),
        response_headers: edits(s, "response_headers", Message::Response),
        strip_prefix: s.optional("strip_prefix", filled()),
        forward_path: s.or("forward_path", choice(FORMS, &[]), defaults::FORWARD_PATH),
    };
    one_path(s, &route);
    must_forward(s, &route);
    route
}

/// A prefix is one of the normal form: of other bytes it cannot be told what it is.
fn one_path(s: &mut Section<'_, '_>, route: &Route) {
    let raw = Some(&route.forward_path).filter(|form| form.value == PathForm::Raw);
    if let (Some(prefix), Some(raw)) = (&route.strip_prefix, raw) {
        s.out
            .error(
                prefix.span.clone(),
                "a path that is forwarded as sent has no prefix to strip",
            )
            .related(raw.span.clone(), "forwarded as sent")
            .help("remove one of the two");
    }
}

/// What changes a request has no meaning where none is forwarded.
fn must_forward(s: &mut Section<'_, '_>, route: &Route) {
    if matches!(route.target, None | Some(Target::Upstream(_))) {
        return;
    }
    for key in ["request_headers", "strip_prefix", "forward_path"] {
        if let Some(span) = s.key_span(key) {
            let message = format!("`{key}` has no meaning for a route that forwards nothing");
            s.out.error(span, message).help("remove it");
        }
    }
}

/// All three are read, so that their own mistakes are found; the first that is there is taken.
fn target(s: &mut Section<'_, '_>) -> Option<Target> {
    let upstream = s.optional("upstream", filled()).map(Target::Upstream);
    let respond = s.table("respond", respond).map(Target::Respond);
    let redirect = s.optional("redirect", filled()).map(Target::Redirect);
    upstream.or(respond).or(redirect)
}

fn respond(s: &mut Section<'_, '_>) -> Respond {
    Respond {
        status: s.or("status", status(), defaults::RESPOND_STATUS),
        content_type: s.or(
            "content_type",
            header_value(),
            HeaderValue::from_static(defaults::CONTENT_TYPE),
        ),
        body: s.or("body", text(), ""),
    }
}
