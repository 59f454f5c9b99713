//! `[[routes]]`.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode};

use super::headers::{HeaderEditSettings, edits, headers};
use super::{HeaderSetting, optional_name};
use crate::action::FixedResponse;
use crate::config::scalar::{
    between, choice, duration, filled, header_value, method, redirect_status, size, status, text,
};
use crate::config::section::SectionReader;
use crate::config::{Spanned, Text, schema};
use crate::route::UrlScheme;
use crate::route::edit::MessageKind;

/// One of `[[routes]]`.
#[derive(Clone, Debug)]
pub struct RouteSettings {
    /// The header of the section.
    pub span: Range<usize>,
    /// The unique name in the access log. `None` for the path template.
    pub name: Option<Text>,
    /// The listener that the route matches. `None` for any.
    pub listener: Option<Text>,
    /// The scheme that the route matches. `None` for any.
    pub scheme: Option<Spanned<UrlScheme>>,
    /// The methods that the route matches. Empty for any.
    pub methods: Vec<Spanned<Method>>,
    /// The headers that the route matches.
    pub headers: Vec<HeaderSetting>,
    /// The hosts that the route matches. Empty for any host.
    pub hosts: Vec<Text>,
    /// The path template that the route matches. `None` for any path.
    pub path: Option<Text>,
    /// The target of its requests. Always present in a file without errors.
    pub target: Option<RouteTargetSettings>,
    /// Changes to the headers of forwarded requests.
    pub request_headers: HeaderEditSettings,
    /// Changes to the headers of responses.
    pub response_headers: HeaderEditSettings,
    /// A path prefix that is removed before forwarding.
    pub strip_prefix: Option<Text>,
    /// The path that is forwarded instead, a template.
    pub rewrite: Option<Text>,
    /// The timeout for the response head. `None` for that of the upstream.
    pub response_timeout: Option<Spanned<Duration>>,
    /// The maximum size of a request body in bytes, 0 for no limit. `None` for that of `[limits]`.
    pub max_body_bytes: Option<Spanned<u64>>,
    /// The responses to errors of the gateway.
    pub errors: Vec<ErrorPageSettings>,
    /// Whether paths are forwarded as the client sent them instead of normalized. Default false.
    pub forward_raw: Spanned<bool>,
}

/// The target of a route.
#[derive(Clone, Debug)]
pub enum RouteTargetSettings {
    /// The upstream with this name.
    Upstream(Text),
    /// A fixed response of the gateway.
    Respond(FixedResponse),
    /// A redirect.
    Redirect(RedirectSettings),
}

/// `redirect` of a route.
#[derive(Clone, Debug)]
pub struct RedirectSettings {
    /// The target, a template.
    pub to: Text,
    /// The status. Default 308.
    pub status: StatusCode,
}

/// `errors`: a response for some errors of the gateway.
#[derive(Clone, Debug)]
pub struct ErrorPageSettings {
    /// The statuses of the errors.
    pub statuses: RangeInclusive<u16>,
    /// The name of the response.
    pub response: Text,
}

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(86_400);
const TARGETS: &[&str] = &["upstream", "respond", "redirect"];
const FORMS: &[(&str, bool)] = &[("normalized", false), ("raw", true)];
const SCHEMES: &[(&str, UrlScheme)] = &[("http", UrlScheme::Http), ("https", UrlScheme::Https)];

pub(super) fn route(s: &mut SectionReader<'_, '_>) -> RouteSettings {
    s.exactly_one("a route", TARGETS, "upstream = \"app\"");
    let edits = |s: &mut SectionReader<'_, '_>, key, message| {
        let read = s.table(key, |s| edits(s, message));
        read.unwrap_or_default()
    };
    let route = RouteSettings {
        span: s.span(),
        name: optional_name(s),
        listener: s.optional("listener", filled()),
        scheme: s.optional("scheme", choice(SCHEMES, &[])),
        methods: methods(s),
        headers: s
            .table("headers", |s| headers(s, |_| Ok(())))
            .unwrap_or_default(),
        hosts: s.array_or("hosts", filled(), []),
        path: s.optional("path", filled()),
        target: target(s),
        request_headers: edits(s, "request_headers", MessageKind::Request),
        response_headers: edits(s, "response_headers", MessageKind::Response),
        strip_prefix: s.optional("strip_prefix", filled()),
        rewrite: s.optional("rewrite", filled()),
        response_timeout: s.table("timeouts", response_timeout).flatten(),
        max_body_bytes: s.optional("max_body_bytes", size()),
        errors: s.table("errors", error_pages).unwrap_or_default(),
        forward_raw: s.or("forward_path", choice(FORMS, &[]), false),
    };
    one_path(s, &route);
    must_forward(s, &route);
    route
}

fn methods(s: &mut SectionReader<'_, '_>) -> Vec<Spanned<Method>> {
    let methods = s.array_or("methods", method(), []);
    s.each_once("methods", methods, "a method is listed twice")
}

fn response_timeout(s: &mut SectionReader<'_, '_>) -> Option<Spanned<Duration>> {
    s.optional("response", between(SHORTEST, LONGEST, duration()))
}

/// Reads `errors`: the name of a response for each status or class of statuses.
pub(super) fn error_pages(s: &mut SectionReader<'_, '_>) -> Vec<ErrorPageSettings> {
    let mut pages = Vec::new();
    for (key, raw) in s.entries(schema::ERROR_STATUS) {
        let response = s.entry(raw, &filled());
        let Some(statuses) = error_statuses(&key.value) else {
            let message = format!("`{}` is not the status of an error", key.value);
            s.out
                .error(key.span, message)
                .help("write a status from 400 to 599, or \"4xx\" or \"5xx\"");
            continue;
        };
        pages.extend(response.map(|response| ErrorPageSettings { statuses, response }));
    }
    // A status is more specific than its class.
    pages.sort_by_key(|page| page.statuses.clone().count());
    pages
}

fn error_statuses(key: &str) -> Option<RangeInclusive<u16>> {
    match key {
        "4xx" => Some(400..=499),
        "5xx" => Some(500..=599),
        _ if key.len() == 3 => {
            let status = key.parse().ok();
            let status = status.filter(|status| (400..=599).contains(status));
            status.map(|status| status..=status)
        }
        _ => None,
    }
}

/// Refuses two settings that both choose the path: `strip_prefix`, `rewrite` and a raw `forward_path`.
fn one_path(s: &mut SectionReader<'_, '_>, route: &RouteSettings) {
    s.apart("a route", ["strip_prefix", "rewrite"]);
    if !route.forward_raw.value {
        return;
    }
    let prefix = route
        .strip_prefix
        .as_ref()
        .map(|prefix| ("strip_prefix", prefix));
    let rewrite = route.rewrite.as_ref().map(|rewrite| ("rewrite", rewrite));
    for (key, path) in prefix.into_iter().chain(rewrite) {
        let message = format!("`{key}` cannot be combined with a raw `forward_path`");
        s.out
            .error(path.span.clone(), message)
            .related(route.forward_raw.span.clone(), "`forward_path` is set here")
            .help("remove one of them");
    }
}

/// Reports settings that change requests in a route that forwards none.
fn must_forward(s: &mut SectionReader<'_, '_>, route: &RouteSettings) {
    if matches!(route.target, None | Some(RouteTargetSettings::Upstream(_))) {
        return;
    }
    for key in [
        "request_headers",
        "strip_prefix",
        "rewrite",
        "forward_path",
        "timeouts",
    ] {
        if let Some(span) = s.key_span(key) {
            let message = format!("`{key}` has no effect on a route without `upstream`");
            s.out.error(span, message).help("remove it");
        }
    }
}

/// Reads all three settings, so that the errors of each are found; the first one present is used.
fn target(s: &mut SectionReader<'_, '_>) -> Option<RouteTargetSettings> {
    let upstream = s
        .optional("upstream", filled())
        .map(RouteTargetSettings::Upstream);
    let respond = s
        .table("respond", respond)
        .map(RouteTargetSettings::Respond);
    let redirect = redirect(s).map(RouteTargetSettings::Redirect);
    upstream.or(respond).or(redirect)
}

/// Reads the target of a redirect, or a table with target and status.
fn redirect(s: &mut SectionReader<'_, '_>) -> Option<RedirectSettings> {
    let plain = filled().map(|to| Some((to, None, StatusCode::PERMANENT_REDIRECT)));
    let written = s.value_or_table("redirect", plain, None, |s| {
        let to = s.required("to", filled(), "\"https://{host}{uri}\"");
        let status = s.or("status", redirect_status(), StatusCode::PERMANENT_REDIRECT);
        let Spanned { value, span } = to?;
        Some(Some((value, Some(span), status.value)))
    });
    let (to, span, status) = written.value?;
    Some(RedirectSettings {
        to: Spanned::new(to, span.unwrap_or(written.span)),
        status,
    })
}

fn respond(s: &mut SectionReader<'_, '_>) -> FixedResponse {
    FixedResponse {
        status: s.or("status", status(), StatusCode::OK).value,
        content_type: content_type(s).value,
        body: s.or("body", text(), "").value,
    }
}

/// Reads the media type of a response.
pub(super) fn content_type(s: &mut SectionReader<'_, '_>) -> Spanned<HeaderValue> {
    let default = HeaderValue::from_static("text/plain; charset=utf-8");
    s.or("content_type", header_value(), default)
}
