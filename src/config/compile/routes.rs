//! `[[routes]]`.

use std::sync::Arc;

use super::Context;
use super::upstreams::Upstreams;
use crate::config::blueprint::TargetBlueprint;
use crate::config::file;
use crate::route::edit::ForwardPath;
use crate::route::{Edits, HostPattern, PathPattern, Pattern, Redirect};
use crate::snapshot::Route;

/// Compiles the routes, in file order.
pub fn routes(
    written: &[file::Route],
    upstreams: &Upstreams,
    cx: &mut Context<'_>,
) -> Vec<(Pattern, Route<TargetBlueprint>)> {
    let mut built = Vec::new();
    for route in written {
        let pattern = pattern(route, cx);
        let target = target(route, upstreams, cx);
        let edits = edits(route, cx);
        if let (Some(pattern), Some(target), Some(edits)) = (pattern, target, edits) {
            let edits = Some(edits).filter(|edits| !edits.is_empty());
            let edits = edits.map(Arc::new);
            built.push((pattern, Route { target, edits }));
        }
    }
    built
}

fn edits(route: &file::Route, cx: &mut Context<'_>) -> Option<Edits> {
    let path = match (&route.strip_prefix, route.forward_raw.value) {
        (Some(prefix), _) => ForwardPath::without(&prefix.value)
            .map_err(|message| {
                cx.diagnostics.error(prefix.span.clone(), message);
            })
            .ok()?,
        (None, true) => ForwardPath::Raw,
        (None, false) => ForwardPath::Normal,
    };
    Some(Edits {
        path,
        request: route.request_headers.clone(),
        response: route.response_headers.clone(),
    })
}

fn pattern(route: &file::Route, cx: &mut Context<'_>) -> Option<Pattern> {
    let hosts: Vec<String> = route.hosts.iter().map(|host| host.value.clone()).collect();
    let path = route.path.as_ref().map(|path| path.value.as_str());
    if let Ok(pattern) = Pattern::parse(&hosts, path) {
        return Some(pattern);
    }
    // Each by itself, so that every mistake is reported.
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
    route: &file::Route,
    upstreams: &Upstreams,
    cx: &mut Context<'_>,
) -> Option<TargetBlueprint> {
    match route.target.as_ref()? {
        // An unknown name was reported when the file was read.
        file::Target::Upstream(name) => upstreams.index(&name.value).map(TargetBlueprint::Upstream),
        file::Target::Respond(reply) => Some(TargetBlueprint::Reply(reply.clone())),
        file::Target::Redirect(text) => Redirect::parse(&text.value)
            .map(TargetBlueprint::Redirect)
            .map_err(|error| {
                cx.diagnostics.error(text.span.clone(), error);
            })
            .ok(),
    }
}
