//! `[[routes]]`, and tables of headers.

use std::ops::Range;

use http::{HeaderName, HeaderValue, Method, StatusCode, header};

use super::{HeaderSetting, optional_name};
use crate::action::FixedResponse;
use crate::config::scalar::{
    ValueError, choice, filled, header_name, header_value, method, parse_header_name,
    redirect_status, status, text,
};
use crate::config::section::{Raw, SectionReader};
use crate::config::{Spanned, Text, schema};
use crate::route::UrlScheme;
use crate::route::edit::{HeaderChanges, MessageKind, is_host};

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
    pub request_headers: HeaderChanges,
    /// Changes to the headers of responses.
    pub response_headers: HeaderChanges,
    /// A path prefix that is removed before forwarding.
    pub strip_prefix: Option<Text>,
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

/// Refuses `strip_prefix` with `forward_raw`: it applies only to normalized paths.
fn one_path(s: &mut SectionReader<'_, '_>, route: &RouteSettings) {
    let raw = Some(&route.forward_raw).filter(|raw| raw.value);
    if let (Some(prefix), Some(raw)) = (&route.strip_prefix, raw) {
        s.out
            .error(
                prefix.span.clone(),
                "`strip_prefix` cannot be combined with a raw `forward_path`",
            )
            .related(raw.span.clone(), "`forward_path` is set here")
            .help("remove one of them");
    }
}

/// Reports settings that change requests in a route that forwards none.
fn must_forward(s: &mut SectionReader<'_, '_>, route: &RouteSettings) {
    if matches!(route.target, None | Some(RouteTargetSettings::Upstream(_))) {
        return;
    }
    for key in ["request_headers", "strip_prefix", "forward_path"] {
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
pub(super) fn edits(s: &mut SectionReader<'_, '_>, message: MessageKind) -> HeaderChanges {
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
    let set = set.into_iter().map(|one| (one.name.value, one.value.value));
    HeaderChanges {
        remove,
        set: set.collect(),
    }
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
