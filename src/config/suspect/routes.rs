//! Routes and servers that are written as other gateways have them, and mean something else here.

use std::net::{IpAddr, SocketAddr};

use super::Warnings;
use crate::config::Text;
use crate::config::file::{Address, File, Route, Target};
use crate::route::PathPattern;

/// Warns of hosts and paths that stand for themselves alone, and of servers that are the gateway.
pub(super) fn warn(file: &File, warnings: &mut Warnings<'_>) {
    for route in &file.routes {
        hosts(route, warnings);
        if let Some(path) = &route.path {
            placeholders(path, warnings);
            alone(path, route, file, warnings);
        }
    }
    circles(file, warnings);
}

/// nginx's name for every host.
fn hosts(route: &Route, warnings: &mut Warnings<'_>) {
    for host in route.hosts.iter().filter(|host| host.value == "_") {
        warnings
            .at(host.span.clone(), "`_` is a host like others here")
            .help("remove `hosts`: a route without it takes every host");
    }
}

/// `/user/:id`, as many frameworks write it.
fn placeholders(path: &Text, warnings: &mut Warnings<'_>) {
    let name = |segment: &str| {
        let name = segment.strip_prefix(':').unwrap_or_default();
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(letters)
    };
    let Some(written) = path.value.split('/').find(|segment| name(segment)) else {
        return;
    };
    let right = |segment: &str| match name(segment) {
        true => format!("{{{}}}", segment.trim_start_matches(':')),
        false => segment.to_owned(),
    };
    let right: Vec<_> = path.value.split('/').map(right).collect();
    let message = format!("`{written}` stands for itself here, not for any segment");
    warnings
        .at(path.span.clone(), message)
        .help(format!("write `{}`", right.join("/")));
}

/// `/` and `/api/`, which elsewhere take all that is below.
fn alone(path: &Text, route: &Route, file: &File, warnings: &mut Warnings<'_>) {
    // What the gateway answers itself may well be one page.
    let forwards = matches!(route.target, Some(Target::Upstream(_)));
    if !forwards || !path.value.ends_with('/') {
        return;
    }
    let below = format!("{}x", path.value);
    let others = file.routes.iter().filter(|other| other.span != route.span);
    let mut others = others.filter_map(|other| match &other.path {
        Some(path) => PathPattern::parse(&path.value).ok(),
        None => Some(PathPattern::Any),
    });
    let all = |pattern: &PathPattern| pattern.matches("/\0/\0");
    let start = path.value == "/";
    if others.any(|other| other.matches(&below) && (start || !all(&other))) {
        return;
    }
    let message = format!(
        "this route takes `{}` alone, and nothing below it",
        path.value
    );
    let warning = warnings.at(path.span.clone(), message);
    warning.help(match start {
        true => "remove `path`: a route without it takes every path".to_owned(),
        false => format!("write `{}*` for what is below it too", path.value),
    });
}

/// Servers that are listeners of this file.
fn circles(file: &File, warnings: &mut Warnings<'_>) {
    let servers = file.upstreams.iter().flat_map(|up| &up.servers);
    for server in servers.map(|member| &member.address) {
        let mut listeners = file.listeners.iter().map(|listener| &listener.address);
        let Some(own) = listeners.find(|own| is_at(&server.value, own.value)) else {
            continue;
        };
        warnings
            .at(
                server.span.clone(),
                "this server is the gateway itself: requests would go in circles",
            )
            .related(own.span.clone(), "it listens here")
            .help("name the address that the origin listens on");
    }
}

/// Whether who connects to `server` comes to `listener`, beyond doubt.
fn is_at(server: &Address, listener: SocketAddr) -> bool {
    let (ip, port) = match server {
        Address::Socket(address) => (Some(address.ip()), address.port()),
        Address::Name(name, port) if name.eq_ignore_ascii_case("localhost") => (None, *port),
        _ => return false,
    };
    if port == 0 || port != listener.port() {
        return false;
    }
    let own = listener.ip();
    match ip {
        None => own.is_loopback() || own.is_unspecified(),
        Some(ip) if own.is_unspecified() => is_here(ip) && (own.is_ipv6() || ip.is_ipv4()),
        Some(ip) => ip == own,
    }
}

/// Whether an address is this machine, whatever its network.
fn is_here(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified()
}
