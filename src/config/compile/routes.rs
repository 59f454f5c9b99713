//! `[[routes]]`.

use std::sync::Arc;

use http::StatusCode;

use super::Context;
use super::upstreams::Upstreams;
use crate::action::Reply;
use crate::config::blueprint::{RouteBlueprint, TargetBlueprint};
use crate::config::file;
use crate::route::edit::{Fields, ForwardPath};
use crate::route::{Edits, Pattern, Redirect};

/// Compiles the routes, in file order.
pub fn routes(
    written: &[file::Route],
    upstreams: &Upstreams,
    cx: &mut Context<'_>,
) -> Vec<(Pattern, RouteBlueprint)> {
    let mut built = Vec::new();
    for route in written {
        let pattern = pattern(route, cx);
        let target = target(route, upstreams, cx);
        let edits = edits(route, cx);
        if let (Some(pattern), Some(target), Some(edits)) = (pattern, target, edits) {
            let edits = Some(edits).filter(|edits| !edits.is_empty());
            let edits = edits.map(Arc::new);
            built.push((pattern, RouteBlueprint { target, edits }));
        }
    }
    built
}

fn edits(route: &file::Route, cx: &mut Context<'_>) -> Option<Edits> {
    let path = match (&route.strip_prefix, route.forward_path.value) {
        (Some(prefix), _) => ForwardPath::without(&prefix.value)
            .map_err(|message| {
                cx.diagnostics.error(prefix.span.clone(), message);
            })
            .ok()?,
        (None, file::PathForm::Raw) => ForwardPath::Raw,
        (None, file::PathForm::Normalized) => ForwardPath::Normal,
    };
    Some(Edits {
        path,
        request: fields(&route.request_headers),
        response: fields(&route.response_headers),
    })
}

fn fields(written: &file::HeaderEdits) -> Fields {
    let set = written.set.iter();
    let remove = written.remove.iter();
    Fields {
        set: set
            .map(|header| (header.name.value.clone(), header.value.value.clone()))
            .collect(),
        remove: remove.map(|name| name.value.clone()).collect(),
    }
}

fn pattern(route: &file::Route, cx: &mut Context<'_>) -> Option<Pattern> {
    let hosts: Vec<String> = route.hosts.iter().map(|host| host.value.clone()).collect();
    let path = route.path.as_ref().map(|path| path.value.as_str());
    if let Ok(pattern) = Pattern::parse(&hosts, path) {
        return Some(pattern);
    }
    // Each by itself, so that every mistake is reported.
    for host in &route.hosts {
        if let Err(error) = Pattern::parse(std::slice::from_ref(&host.value), None) {
            cx.diagnostics.error(host.span.clone(), error.message);
        }
    }
    let path = route.path.as_ref()?;
    if let Err(error) = Pattern::parse(&[], Some(&path.value)) {
        cx.diagnostics.error(path.span.clone(), error.message);
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
        file::Target::Respond(respond) => Some(TargetBlueprint::Reply(Reply {
            status: StatusCode::from_u16(respond.status.value).ok()?,
            content_type: respond.content_type.value.clone(),
            body: respond.body.value.clone(),
        })),
        file::Target::Redirect(text) => Redirect::parse(&text.value)
            .map(TargetBlueprint::Redirect)
            .map_err(|error| {
                cx.diagnostics.error(text.span.clone(), error.message);
            })
            .ok(),
    }
}
