//! `[[routes]]`.

use std::sync::Arc;

use http::StatusCode;

use super::CompileContext;
use super::header_values::ValueCompiler;
use super::responses::ResponseTemplates;
use super::rules::RuleCompiler;
use super::upstreams::UpstreamBlueprints;
use crate::action::ErrorPages;
use crate::config::blueprint::TargetBlueprint;
use crate::config::file;
use crate::route::edit::ForwardPath;
use crate::route::{
    HostPattern, PathPattern, PathRewrite, RedirectTemplate, RouteConditions, RouteEdits,
    RoutePattern, UrlScheme,
};
use crate::snapshot::RouteConfig;

/// Requests that validate the control of a domain use plain HTTP (RFC 8555, section 8.3).
const ACME: &str = "/.well-known/acme-challenge/*";

/// A route and what it matches.
type BuiltRoute = (RoutePattern, RouteConfig<TargetBlueprint>);

/// Compiles the routes, in file order, after those of listeners with `redirect_to_https`.
pub fn routes(
    file: &file::ConfigFile,
    shared: &RuleCompiler<'_>,
    cx: &mut CompileContext<'_>,
) -> Vec<BuiltRoute> {
    let values = ValueCompiler {
        lists: shared.keys.lists,
        fields: shared.keys.without_body().fields,
    };
    let mut built: Vec<_> = redirects_to_https(file, &shared.responses).collect();
    for route in &file.routes {
        let pattern = pattern(route, cx);
        let target = target(route, shared.upstreams, cx);
        let edits = edits(route, &values, cx);
        if let (Some(pattern), Some(target), Some(edits)) = (pattern, target, edits) {
            let edits = Some(edits).filter(|edits| !edits.is_empty());
            let max_body = route.max_body_bytes.as_ref().map(|max| max.value);
            let max_body = max_body.unwrap_or(file.limits.max_body_bytes);
            let config = RouteConfig {
                target,
                edits: edits.map(Arc::new),
                response_timeout: route.response_timeout.as_ref().map(|time| time.value),
                max_body: Some(max_body).filter(|max| *max > 0),
                errors: errors(route, file, &shared.responses),
            };
            built.push((pattern, config));
        }
    }
    built
}

/// Returns the error pages of a route, then those of all routes. `None` if there are none.
fn errors(
    route: &file::RouteSettings,
    file: &file::ConfigFile,
    responses: &ResponseTemplates<'_>,
) -> Option<Arc<ErrorPages>> {
    let mut pages = responses.error_pages(&route.errors);
    pages.extend(&responses.error_pages(&file.errors));
    shared_pages(pages)
}

/// Returns the pages for routes. `None` if there are none.
pub fn shared_pages(pages: ErrorPages) -> Option<Arc<ErrorPages>> {
    (!pages.is_empty()).then(|| Arc::new(pages))
}

/// Returns a route for each listener with `redirect_to_https`. It redirects to the port of the first TLS listener.
fn redirects_to_https(
    file: &file::ConfigFile,
    responses: &ResponseTemplates<'_>,
) -> impl Iterator<Item = BuiltRoute> {
    let mut secure = file.listeners.iter().filter(|one| one.tls.is_some());
    let port = secure.next().map_or(0, |one| one.address.value.port());
    // Port 0 is known only once the listener is open.
    let to = match port {
        0 | 443 => "https://{host}{uri}".to_owned(),
        port => format!("https://{{host}}:{port}{{uri}}"),
    };
    let redirecting = file.listeners.iter();
    let redirecting = redirecting.filter(|one| one.redirect_to_https.value);
    redirecting.filter_map(move |listener| {
        let conditions = RouteConditions {
            listener: Some(listener.label().into()),
            // A trusted proxy may have received the request over TLS.
            scheme: Some(UrlScheme::Http),
            except: Some(PathPattern::parse(ACME).ok()?),
            ..RouteConditions::default()
        };
        let location = RedirectTemplate::parse(&to).ok()?;
        let target = TargetBlueprint::Redirect(location, StatusCode::PERMANENT_REDIRECT);
        let pattern = RoutePattern::parse(&[], None).ok()?.when(conditions);
        let config = RouteConfig {
            target,
            edits: None,
            response_timeout: None,
            max_body: Some(file.limits.max_body_bytes).filter(|max| *max > 0),
            errors: shared_pages(responses.error_pages(&file.errors)),
        };
        Some((pattern.named(Some("redirect_to_https")), config))
    })
}

fn conditions(route: &file::RouteSettings) -> RouteConditions {
    let headers = route.headers.iter();
    let headers = headers.map(|one| (one.name.value.clone(), one.value.value.clone()));
    RouteConditions {
        listener: route
            .listener
            .as_ref()
            .map(|name| name.value.as_str().into()),
        scheme: route.scheme.as_ref().map(|scheme| scheme.value),
        methods: route.methods.iter().map(|one| one.value.clone()).collect(),
        headers: headers.collect(),
        except: None,
    }
}

fn edits(
    route: &file::RouteSettings,
    values: &ValueCompiler<'_>,
    cx: &mut CompileContext<'_>,
) -> Option<RouteEdits> {
    // Evaluate each part separately, so that every error is reported.
    let path = forward_path(route, cx);
    let request = values.changes(&route.request_headers, cx);
    let response = values.changes(&route.response_headers, cx);
    Some(RouteEdits {
        path: path?,
        request: request?,
        response: response?,
    })
}

fn forward_path(route: &file::RouteSettings, cx: &mut CompileContext<'_>) -> Option<ForwardPath> {
    let (span, parsed) = match (&route.strip_prefix, &route.rewrite) {
        (Some(prefix), _) => (&prefix.span, ForwardPath::without(&prefix.value)),
        (None, Some(rewrite)) => {
            let from = route
                .path
                .as_ref()
                .map(|path| PathPattern::parse(&path.value));
            // A wrong path was reported with the pattern.
            let from = from.unwrap_or(Ok(PathPattern::Any)).ok()?;
            let parsed = PathRewrite::parse(&rewrite.value, &from);
            (&rewrite.span, parsed.map(ForwardPath::Rewrite))
        }
        (None, None) if route.forward_raw.value => return Some(ForwardPath::Raw),
        (None, None) => return Some(ForwardPath::Normal),
    };
    parsed
        .map_err(|message| {
            cx.diagnostics.error(span.clone(), message);
        })
        .ok()
}

fn pattern(route: &file::RouteSettings, cx: &mut CompileContext<'_>) -> Option<RoutePattern> {
    let hosts: Vec<String> = route.hosts.iter().map(|host| host.value.clone()).collect();
    let path = route.path.as_ref().map(|path| path.value.as_str());
    if let Ok(pattern) = RoutePattern::parse(&hosts, path) {
        let name = route.name.as_ref().map(|name| name.value.as_str());
        return Some(pattern.when(conditions(route)).named(name));
    }
    // Check each host separately, so that every error is reported.
    for host in &route.hosts {
        if let Err(error) = HostPattern::parse(&host.value) {
            cx.diagnostics.error(host.span.clone(), error);
        }
    }
    let path = route.path.as_ref()?;
    if let Err(error) = PathPattern::parse(&path.value) {
        cx.diagnostics.error(path.span.clone(), error);
    }
    None
}

fn target(
    route: &file::RouteSettings,
    upstreams: &UpstreamBlueprints,
    cx: &mut CompileContext<'_>,
) -> Option<TargetBlueprint> {
    match route.target.as_ref()? {
        // An unknown name was reported when the file was read.
        file::RouteTargetSettings::Upstream(name) => {
            upstreams.index(&name.value).map(TargetBlueprint::Upstream)
        }
        file::RouteTargetSettings::Respond(reply) => Some(TargetBlueprint::Reply(reply.clone())),
        file::RouteTargetSettings::Redirect(redirect) => {
            RedirectTemplate::parse(&redirect.to.value)
                .map(|location| TargetBlueprint::Redirect(location, redirect.status))
                .map_err(|error| {
                    cx.diagnostics.error(redirect.to.span.clone(), error);
                })
                .ok()
        }
    }
}
