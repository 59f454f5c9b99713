//! `[[routes]]`.

use std::sync::Arc;

use super::CompileContext;
use super::upstreams::UpstreamBlueprints;
use crate::config::blueprint::TargetBlueprint;
use crate::config::file;
use crate::route::edit::ForwardPath;
use crate::route::{HostPattern, PathPattern, RedirectTemplate, RouteEdits, RoutePattern};
use crate::snapshot::RouteConfig;

/// Compiles the routes, in file order.
pub fn routes(
    written: &[file::RouteSettings],
    upstreams: &UpstreamBlueprints,
    cx: &mut CompileContext<'_>,
) -> Vec<(RoutePattern, RouteConfig<TargetBlueprint>)> {
    let mut built = Vec::new();
    for route in written {
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
        return Some(pattern);
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
        file::RouteTargetSettings::Redirect(text) => RedirectTemplate::parse(&text.value)
            .map(TargetBlueprint::Redirect)
            .map_err(|error| {
                cx.diagnostics.error(text.span.clone(), error);
            })
            .ok(),
    }
}
