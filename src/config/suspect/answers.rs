//! Configured answers that say more than they should, or less than they were given.

use http::HeaderName;
use http::header::RETRY_AFTER;

use super::{Case, Warnings};
use crate::config::file::{File, Response};
use crate::decision::Action;

/// Warns of shadow answers that tell of a limit, and of bodies that are never sent.
pub(super) fn warn(cases: &[Case<'_>], file: &File, warnings: &mut Warnings<'_>) {
    for response in &file.responses {
        unsent_body(response, warnings);
        let named = |case: &&Case<'_>| {
            let name = case.written.response.as_ref();
            name.is_some_and(|name| name.value == response.name.value)
        };
        let mut shadows = cases.iter().filter(|c| c.rule.action == Action::Shadow);
        if let Some(case) = shadows.find(named) {
            telling(response, case, warnings);
        }
    }
}

/// Some answers have no content (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
fn unsent_body(response: &Response, warnings: &mut Warnings<'_>) {
    let status = response.status.as_ref();
    let bare = status.filter(|status| matches!(status.value, 204 | 205 | 304));
    if let Some(status) = bare.filter(|_| !response.body.value.is_empty()) {
        let message = format!("an answer with the status {} has no body", status.value);
        warnings
            .at(response.body.span.clone(), message)
            .related(status.span.clone(), "the status")
            .help("remove it, or use another status");
    }
}

fn telling(response: &Response, case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let status = response.status.as_ref().filter(|s| s.value == 429);
    let status = status.map(|status| ("the status 429".to_owned(), &status.span));
    let headers = response.headers.iter().map(|header| &header.name);
    let headers = headers.filter(|name| is_about_limits(&name.value));
    let headers = headers.map(|name| (format!("`{}`", name.value), &name.span));
    for (what, span) in status.into_iter().chain(headers) {
        let message = format!("{what} tells that there is a limit, in the answer of a shadow ban");
        warnings
            .at(span.clone(), message)
            .related(case.written.action.span.clone(), "the action")
            .help("remove it, unless your origin sends the same with every answer");
    }
}

fn is_about_limits(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == RETRY_AFTER.as_str()
        || name.starts_with("ratelimit")
        || name.starts_with("x-ratelimit")
        || name.starts_with("x-rate-limit")
}
