//! Reads `[[routes]]`.

use http::HeaderValue;

use crate::config::defaults;
use crate::config::file::{Respond, Route, Target};
use crate::config::scalar::{filled, header_value, status, text};
use crate::config::section::Section;

const TARGETS: &[&str] = &["upstream", "respond", "redirect"];

pub(super) fn route(s: &mut Section<'_, '_>) -> Route {
    s.later(&[
        "request_headers",
        "response_headers",
        "strip_prefix",
        "forward_path",
    ]);
    s.exactly_one("a route", TARGETS, "upstream = \"app\"");
    Route {
        span: s.span(),
        hosts: s.array_or("hosts", filled(), []),
        path: s.optional("path", filled()),
        target: target(s),
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
