//! `[[upstreams]]` and `[[routes]]`.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;

use super::Context;
use crate::action::Reply;
use crate::config::file;
use crate::observe::UpstreamMetrics;
use crate::route::edit::{Fields, ForwardPath};
use crate::route::{Edits, Pattern, Redirect, Table};
use crate::snapshot::{Route, Target};
use crate::upstream::{Balance, Server, Upstream};

/// The upstreams by name.
#[derive(Default)]
pub struct Upstreams(HashMap<String, (Arc<Upstream>, Arc<[UpstreamMetrics]>)>);

// === impl Upstreams ===

impl Upstreams {
    /// Where what is forwarded to `name` goes.
    pub fn target(&self, name: &str) -> Option<Target> {
        let (upstream, metrics) = self.0.get(name)?;
        Some(Target::Upstream {
            upstream: upstream.clone(),
            metrics: metrics.clone(),
        })
    }

    /// All their servers, with the upstream's name.
    pub fn into_servers(self) -> Vec<(Arc<str>, Arc<Server>)> {
        let mut servers = Vec::new();
        for (upstream, _) in self.0.into_values() {
            let own = upstream.servers.iter().cloned();
            servers.extend(own.map(|server| (upstream.name.clone(), server)));
        }
        servers
    }
}

/// Builds the upstreams. A server that was there before keeps what is known of it.
pub fn upstreams(written: &[file::Upstream], cx: &mut Context<'_>) -> Upstreams {
    let mut built = HashMap::new();
    for one in written {
        let name = &one.name.value;
        let server =
            |address: &crate::config::Spanned<_>| cx.lasting.servers.server(name, address.value);
        let servers: Vec<Arc<Server>> = one.servers.iter().map(server).collect();
        let metrics = servers
            .iter()
            .map(|server| cx.lasting.metrics.upstream(name, server.label()))
            .collect();
        let mut upstream = Upstream::new(name.as_str(), servers);
        upstream.balance = match one.balance.value {
            file::Balance::P2c => Balance::P2c,
            file::Balance::RoundRobin => Balance::RoundRobin,
        };
        upstream.connect_timeout = one.connect_timeout.value;
        upstream.response_timeout = one.response_timeout.value;
        upstream.max_idle_per_server = one.max_idle_per_server.value as usize;
        built.insert(name.clone(), (Arc::new(upstream), metrics));
    }
    Upstreams(built)
}

/// Builds the routes, in file order.
pub fn routes(
    written: &[file::Route],
    upstreams: &Upstreams,
    cx: &mut Context<'_>,
) -> Table<Route> {
    let mut built = Vec::new();
    for route in written {
        let pattern = pattern(route, cx);
        let target = target(route, upstreams, cx);
        let edits = edits(route, cx);
        if let (Some(pattern), Some(target), Some(edits)) = (pattern, target, edits) {
            let edits = Some(edits).filter(|edits| !edits.is_empty());
            let edits = edits.map(Box::new);
            built.push((pattern, Route { target, edits }));
        }
    }
    Table::new(built)
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

fn target(route: &file::Route, upstreams: &Upstreams, cx: &mut Context<'_>) -> Option<Target> {
    match route.target.as_ref()? {
        // An unknown name was reported when the file was read.
        file::Target::Upstream(name) => upstreams.target(&name.value),
        file::Target::Respond(respond) => Some(Target::Reply(Reply {
            status: StatusCode::from_u16(respond.status.value).ok()?,
            content_type: respond.content_type.value.clone(),
            body: respond.body.value.clone(),
        })),
        file::Target::Redirect(text) => Redirect::parse(&text.value)
            .map(Target::Redirect)
            .map_err(|error| {
                cx.diagnostics.error(text.span.clone(), error.message);
            })
            .ok(),
    }
}
