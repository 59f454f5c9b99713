//! Warnings about routes, servers and trusted proxies with a misleading meaning, and about unused
//! names.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::{LintCode, Warnings};
use crate::config::Text;
use crate::config::file::{
    ConfigFile, HeaderSetting, KnownClientSettings, RouteSettings, RouteTargetSettings,
    RuleSettings,
};
use crate::expr::{self, ExprOutline, TestRelation};
use crate::route::{HostPattern, PathPattern, PathSegment, UrlScheme};
use crate::upstream::{ServerEndpoint, ServerLocation};

/// The shortest prefix length of a trusted network. A wider network includes unknown hosts.
const WIDEST: u8 = 8;

/// Warns of routes, servers, and unused lists, responses and upstreams.
pub(super) fn warn(file: &ConfigFile, warnings: &mut Warnings<'_>) {
    unused_names(file, warnings);
    for (at, route) in file.routes.iter().enumerate() {
        let earlier = file.routes.get(..at).unwrap_or_default();
        unreachable(route, earlier, warnings);
        without_tls(route, file, warnings);
        foreign_hosts(route, warnings);
        if let Some(path) = &route.path {
            foreign_variables(path, warnings);
            not_a_prefix(path, route, file, warnings);
        }
    }
    loops(file, warnings);
}

/// Warns of trusted proxies that include unknown hosts, and of a listener that needs trusted proxies but has none.
pub(super) fn warn_of_trust(file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let trusted = &file.client_ip.trusted_proxies;
    let listeners = file.listeners.iter().filter(|_| trusted.is_empty());
    for listener in listeners.filter(|listener| listener.proxy_protocol.value) {
        let message = "no client can connect: only trusted proxies can send a PROXY header";
        let span = listener.proxy_protocol.span.clone();
        warnings
            .at(LintCode::NoTrustedProxy, &span, message)
            .help("list your proxies in `client_ip.trusted_proxies`");
    }
    for network in trusted.iter().filter(|net| includes_strangers(&net.value)) {
        let message = format!("every host in {} can set the client address", network.value);
        warnings
            .at(LintCode::WideTrust, &network.span, message)
            .help("list only the addresses of your proxies");
    }
}

/// Returns whether a network includes unknown hosts. `fc00::/7` is wide but not public (RFC 4193).
fn includes_strangers(network: &IpNet) -> bool {
    let private = match network {
        IpNet::V4(_) => false,
        IpNet::V6(v6) => v6.network().is_unique_local() && v6.broadcast().is_unique_local(),
    };
    network.prefix_len() < WIDEST && !private
}

fn unused_names(file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let lists = used_lists(file);
    let rules = || file.rules.iter();
    let responses = rules().filter_map(|rule| rule.response.as_ref());
    let of_errors = file.error_pages().map(|page| &page.response);
    let responses = responses.chain(of_errors);
    let responses: Vec<_> = responses.map(|name| name.value.clone()).collect();
    let of_rules = rules().filter_map(|rule| rule.upstream.as_ref());
    let of_routes = file.routes.iter().filter_map(|route| match &route.target {
        Some(RouteTargetSettings::Upstream(name)) => Some(name),
        _ => None,
    });
    let upstreams = of_rules.chain(of_routes);
    let upstreams: Vec<_> = upstreams.map(|name| name.value.clone()).collect();
    let lists = file.lists.iter().map(|one| ("list", &one.name, &lists));
    let own = file.responses.iter();
    let responses = own.map(|one| ("response", &one.name, &responses));
    let own = file.upstreams.iter();
    let upstreams = own.map(|one| ("upstream", &one.name, &upstreams));
    for (what, name, used) in lists.chain(responses).chain(upstreams) {
        if used.contains(&name.value) {
            continue;
        }
        let message = format!("no rule or route uses the {what} `{}`", name.value);
        let warning = warnings.at(LintCode::Unused, &name.span, message);
        warning.help(match (what, &*name.value) {
            ("list", "include") => "to include files, move it before the first `[section]`",
            _ => "remove it",
        });
    }
}

/// Returns the lists that any rule names, enabled or not.
fn used_lists(file: &ConfigFile) -> Vec<String> {
    let of_rules = file.rules.iter().flat_map(RuleSettings::expressions);
    let of_clients = file.known_clients.iter();
    let of_clients = of_clients.flat_map(KnownClientSettings::expressions);
    let named = file.expressions.iter().map(|named| &named.text);
    let expressions = of_rules.chain(of_clients).chain(named);
    expressions.flat_map(|text| lists_in(&text.value)).collect()
}

/// Returns the lists that an expression names. Empty if it cannot be parsed.
pub fn lists_in(expression: &str) -> Vec<String> {
    let outline = expr::outline(expression).ok();
    let leaves = outline.iter().flat_map(ExprOutline::leaves);
    let names = leaves.filter_map(|leaf| match &leaf.relation {
        TestRelation::InList(name) => Some(name.to_string()),
        _ => None,
    });
    names.collect()
}

fn unreachable(route: &RouteSettings, earlier: &[RouteSettings], warnings: &mut Warnings<'_>) {
    let Some(other) = earlier.iter().find(|other| hides(other, route)) else {
        return;
    };
    let file = |route: &RouteSettings| warnings.source.part(route.span.start).start;
    let help = if file(route) == file(other) {
        "the first match wins: put the narrower route first"
    } else {
        "routes follow the order of the files: put the wider route into the last file"
    };
    let message = "no request reaches this route";
    warnings
        .at(LintCode::UnreachableRoute, &route.span, message)
        .related(other.span.clone(), "this route matches all its requests")
        .help(help);
}

/// Warns of a route for `https` in a gateway whose clients can only use plain HTTP.
fn without_tls(route: &RouteSettings, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let scheme = route.scheme.as_ref();
    let Some(scheme) = scheme.filter(|one| one.value == UrlScheme::Https) else {
        return;
    };
    let has_tls = file.listeners.iter().any(|one| one.tls.is_some());
    if has_tls || !file.client_ip.trusted_proxies.is_empty() {
        return;
    }
    let message = "no request reaches this route: no listener has TLS";
    warnings
        .at(LintCode::UnreachableRoute, &scheme.span, message)
        .help("add `[listeners.tls]`; or, behind a proxy that terminates TLS and sets `x-forwarded-proto`, list it in `client_ip.trusted_proxies`");
}

fn hides(wide: &RouteSettings, narrow: &RouteSettings) -> bool {
    let paths = pattern(wide).zip(pattern(narrow));
    paths.is_some_and(|(wide, narrow)| path_hides(&wide, &narrow))
        && hosts_hide(wide, narrow)
        && conditions_hide(wide, narrow)
}

/// Returns whether requests that meet the further conditions of `narrow` meet those of `wide`.
fn conditions_hide(wide: &RouteSettings, narrow: &RouteSettings) -> bool {
    let listener = |route: &RouteSettings| route.listener.as_ref().map(|one| one.value.clone());
    let scheme = |route: &RouteSettings| route.scheme.as_ref().map(|one| one.value);
    let lists = |method| wide.methods.iter().any(|one| one.value == method);
    let mut methods = narrow.methods.iter().map(|one| one.value.clone());
    let has = |header: &HeaderSetting| {
        let mut own = narrow.headers.iter();
        own.any(|own| own.name.value == header.name.value && own.value.value == header.value.value)
    };
    (wide.listener.is_none() || listener(wide) == listener(narrow))
        && (wide.scheme.is_none() || scheme(wide) == scheme(narrow))
        && (wide.methods.is_empty() || !narrow.methods.is_empty() && methods.all(lists))
        && wide.headers.iter().all(has)
}

fn pattern(route: &RouteSettings) -> Option<PathPattern> {
    match &route.path {
        Some(path) => PathPattern::parse(&path.value).ok(),
        None => Some(PathPattern::Any),
    }
}

fn path_hides(wide: &PathPattern, narrow: &PathPattern) -> bool {
    let (path, open) = match narrow {
        _ if *wide == PathPattern::Any => return true,
        PathPattern::Any => return false,
        PathPattern::Exact(path) => (path.to_string(), false),
        PathPattern::Prefix(path) => (path.to_string(), true),
        PathPattern::Template { segments, open } => (sample(segments), *open),
    };
    // A pattern that matches a path and one path below it matches all paths below it.
    wide.matches(&path) && (!open || wide.matches(&format!("{path}/{ANY}")))
}

/// A segment that only a variable can match: no path contains it.
const ANY: &str = "\0";

fn sample(segments: &[PathSegment]) -> String {
    let text = |segment: &PathSegment| match segment {
        PathSegment::Literal(text) => format!("/{text}"),
        PathSegment::Variable(_) => format!("/{ANY}"),
    };
    segments.iter().map(text).collect()
}

fn hosts_hide(wide: &RouteSettings, narrow: &RouteSettings) -> bool {
    let patterns = |route: &RouteSettings| -> Option<Vec<HostPattern>> {
        let hosts = route.hosts.iter();
        hosts
            .map(|host| HostPattern::parse(&host.value).ok())
            .collect()
    };
    let (Some(wide), Some(narrow)) = (patterns(wide), patterns(narrow)) else {
        return false;
    };
    let hidden = |host: &HostPattern| wide.iter().any(|wide| host_hides(wide, host));
    wide.is_empty()
        || wide.contains(&HostPattern::Any)
        || !narrow.is_empty() && narrow.iter().all(hidden)
}

fn host_hides(wide: &HostPattern, narrow: &HostPattern) -> bool {
    use HostPattern::{Any, Below, Exact};
    let port = |wide: &Option<_>, narrow| wide.is_none() || wide == narrow;
    match (wide, narrow) {
        (Any, _) => true,
        (Exact(wide, a), Exact(narrow, b)) => wide == narrow && port(a, b),
        (Below(wide, a), Below(narrow, b)) => narrow.ends_with(&**wide) && port(a, b),
        (Below(wide, a), Exact(narrow, b)) => {
            narrow.len() > wide.len() && narrow.ends_with(&**wide) && port(a, b)
        }
        (_, Any) | (Exact(..), Below(..)) => false,
    }
}

/// Warns of `_`, nginx's name for every host.
fn foreign_hosts(route: &RouteSettings, warnings: &mut Warnings<'_>) {
    for host in route.hosts.iter().filter(|host| host.value == "_") {
        let message = "`_` is an ordinary host name here";
        warnings
            .at(LintCode::ForeignRoute, &host.span, message)
            .help("remove `hosts`: a route without it matches every host");
    }
}

/// Warns of variables like `/user/:id`, the syntax of many frameworks.
fn foreign_variables(path: &Text, warnings: &mut Warnings<'_>) {
    let variable = |segment: &str| {
        let name = segment.strip_prefix(':').unwrap_or_default();
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(letters)
    };
    let Some(written) = path.value.split('/').find(|segment| variable(segment)) else {
        return;
    };
    let message = format!("`{written}` is literal text here, not a path variable");
    let name = written.trim_start_matches(':');
    warnings
        .at(LintCode::ForeignRoute, &path.span, message)
        .help(format!("write `{{{name}}}`"));
}

/// Warns of `/` and `/api/`, which in other gateways match all paths below them.
fn not_a_prefix(
    path: &Text,
    route: &RouteSettings,
    file: &ConfigFile,
    warnings: &mut Warnings<'_>,
) {
    // A fixed response of the gateway may be intended for a single page.
    let forwards = matches!(route.target, Some(RouteTargetSettings::Upstream(_)));
    if !forwards || !path.value.ends_with('/') {
        return;
    }
    let below = format!("{}x", path.value);
    let others = file.routes.iter().filter(|other| other.span != route.span);
    let mut others = others.filter_map(pattern);
    let all = |pattern: &PathPattern| pattern.matches("/\0/\0");
    let root = path.value == "/";
    if others.any(|other| other.matches(&below) && (root || !all(&other))) {
        return;
    }
    let message = format!(
        "this route matches only `{}`, not the paths below it",
        path.value
    );
    let warning = warnings.at(LintCode::ForeignRoute, &path.span, message);
    warning.help(if root {
        "remove `path`: a route without it matches every path".to_owned()
    } else {
        format!("write `{}*` to match the paths below it too", path.value)
    });
}

/// Warns of servers that are listeners of this file.
fn loops(file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let servers = file.upstreams.iter().flat_map(|up| &up.servers);
    for server in servers.map(|member| &member.address) {
        let mut listeners = file.listeners.iter().map(|listener| &listener.address);
        let Some(own) = listeners.find(|own| is_at(&server.value, own.value)) else {
            continue;
        };
        let message = "this server is a listener of this gateway: requests would loop";
        warnings
            .at(LintCode::ProxyLoop, &server.span, message)
            .related(own.span.clone(), "the listener")
            .help("use the address of the origin server");
    }
}

/// Returns whether a connection to `server` certainly reaches `listener`.
fn is_at(server: &ServerLocation, listener: SocketAddr) -> bool {
    let (ip, port) = match server {
        ServerLocation::Endpoint(ServerEndpoint::Tcp(address)) => {
            (Some(address.ip()), address.port())
        }
        ServerLocation::Name(name) if name.host.eq_ignore_ascii_case("localhost") => {
            (None, name.port)
        }
        _ => return false,
    };
    if port == 0 || port != listener.port() {
        return false;
    }
    let own = listener.ip();
    let is_local = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
    match ip {
        None => is_local(own),
        Some(ip) if own.is_unspecified() => is_local(ip) && (own.is_ipv6() || ip.is_ipv4()),
        Some(ip) => ip == own,
    }
}
