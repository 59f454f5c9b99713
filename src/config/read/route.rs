//! Reads `[[routes]]`.

use http::HeaderValue;

use crate::config::defaults;
use crate::config::file::{Respond, Route, Target};
use crate::config::scalar::{filled, header_value, status, text};
use crate::config::section::Section;
use crate::config::suggest::either;

const TARGETS: [&str; 3] = ["upstream", "respond", "redirect"];

pub(super) fn route(s: &mut Section<'_, '_>) -> Route {
    s.later(&[
        "request_headers",
        "response_headers",
        "strip_prefix",
        "forward_path",
    ]);
    one_target(s);
    Route {
        span: s.span(),
        hosts: s.array("hosts", filled).unwrap_or_default(),
        path: s.optional("path", filled),
        target: target(s),
    }
}

/// All three are read, so that their own mistakes are found; the first that is there is taken.
fn target(s: &mut Section<'_, '_>) -> Option<Target> {
    let upstream = s.optional("upstream", filled).map(Target::Upstream);
    let respond = s.table("respond", respond).map(Target::Respond);
    let redirect = s.optional("redirect", filled).map(Target::Redirect);
    upstream.or(respond).or(redirect)
}

fn one_target(s: &mut Section<'_, '_>) {
    let spans = TARGETS.iter().filter_map(|key| s.key_span(key));
    let mut given: Vec<_> = spans.collect();
    given.sort_by_key(|span| span.start);
    let names = either(&TARGETS);
    match given.as_slice() {
        [] => {
            let message = format!("a route needs {names}");
            s.out
                .error(s.span(), message)
                .help("for example `upstream = \"app\"`");
        }
        [_] => {}
        [first, rest @ ..] => {
            for span in rest {
                let message = format!("a route has only one of {names}");
                s.out
                    .error(span.clone(), message)
                    .related(first.clone(), "it has this one");
            }
        }
    }
}

fn respond(s: &mut Section<'_, '_>) -> Respond {
    Respond {
        status: s.or("status", status, defaults::RESPOND_STATUS),
        content_type: s.or(
            "content_type",
            header_value,
            HeaderValue::from_static(defaults::CONTENT_TYPE),
        ),
        body: s.or("body", text, ""),
    }
}
