//! `[[routes]]`.

use std::sync::Arc;

use http::StatusCode;

use super::CompileContext;
use super::upstreams::UpstreamBlueprints;
use crate::config::blueprint::TargetBlueprint;
use crate::config::file;
use crate::route::edit::ForwardPath;
use crate::route::{
    HostPattern, PathPattern, RedirectTemplate, RouteConditions, RouteEdits, RoutePattern,
    UrlScheme,
};
use crate::snapshot::RouteConfig;

/// Requests that validate the control of a domain use plain HTTP (RFC 8555, section 8.3).
const ACME: &str = "/.well-known/acme-challenge/*";

/// Compiles the routes, in file order, after those of listeners with `redirect_to_https`.
pub fn routes(
    file: &file::ConfigFile,
    upstreams: &UpstreamBlueprints,
    cx: &mut CompileContext<'_>,
) -> Vec<(RoutePattern, RouteConfig<TargetBlueprint>)> {
    let mut built: Vec<_> = redirects_to_https(file).collect();
    for route in &file.routes {
        let pattern = pattern(route, cx);
        let target = target(route, upstreams, cx);
        let edits = edits(route, cx);
        if let (Some(pattern), Some(target), Some(edits)) = (pattern, target, edits) {
            let edits = Some(edits).filter(|edits| !edits.is_empty());
            let edits = edits.map(Arc::new);
            built.push((pattern, RouteConfig { target, edits }));
        }
    }
    built
}

/// Returns a route for each listener with `redirect_to_https`. It redirects to the port of the first TLS listener.
fn redirects_to_https(
    file: &file::ConfigFile,
) -> impl Iterator<Item = (RoutePattern, RouteConfig<TargetBlueprint>)> {
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
        Some((
            pattern.named(Some("redirect_to_https")),
            RouteConfig {
                target,
                edits: None,
            },
        ))
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

fn edits(route: &file::RouteSettings, cx: &mut CompileContext<'_>) -> Option<RouteEdits> {
    let path = match (&route.strip_prefix, route.forward_raw.value) {
        (Some(prefix), _) => ForwardPath::without(&prefix.value)
            .map_err(|message| {
                cx.diagnostics.error(prefix.span.clone(), message);
            })
            .ok()?,
        (None, true) => ForwardPath::Raw,
        (None, false) => ForwardPath::Normal,
    };
    Some(RouteEdits {
        path,
        request: route.request_headers.clone(),
        response: route.response_headers.clone(),
    })
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
