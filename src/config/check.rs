//! Checks between values of a file: references to names must resolve, and names and addresses must
//! be unique.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::file::{ConfigFile, RouteSettings, RouteTargetSettings, check_numbers};
use super::suggest::nearest;
use super::{Diagnostics, Spanned, Text, check_challenge};

/// Checks a whole file.
pub(super) fn file(file: &ConfigFile, out: &mut Diagnostics) {
    unique("rule", file.rules.iter().map(|rule| &rule.name), out);
    unique("upstream", file.upstreams.iter().map(|up| &up.name), out);
    let expressions = file.expressions.iter().map(|one| &one.name);
    unique("expression", expressions, out);
    unique("list", file.lists.iter().map(|list| &list.name), out);
    let routes = file.routes.iter().filter_map(|route| route.name.as_ref());
    unique("route", routes, out);
    let listeners = file.listeners.iter().filter_map(|one| one.name.as_ref());
    unique("listener", listeners, out);
    unique("response", file.responses.iter().map(|r| &r.name), out);
    upstreams_exist(file, out);
    responses_exist(file, out);
    listeners_exist(file, out);
    redirects_have_a_target(file, out);
    for rule in &file.rules {
        check_numbers(rule, out);
    }
    addresses_are_free(file, out);
    check_challenge::check(file, out);
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a Text>, out: &mut Diagnostics) {
    let mut seen = BTreeMap::new();
    for name in names.filter(|name| !name.value.is_empty()) {
        let first = seen.entry(&name.value).or_insert(&name.span);
        if *first != &name.span {
            let message = format!("{what} `{}` is defined twice", name.value);
            out.error(name.span.clone(), message)
                .related((*first).clone(), "first defined here");
        }
    }
}

fn upstreams_exist<'a>(file: &'a ConfigFile, out: &mut Diagnostics) {
    let names: Vec<_> = file.upstreams.iter().map(|up| &*up.name.value).collect();
    let of_route = |route: &'a RouteSettings| match &route.target {
        Some(RouteTargetSettings::Upstream(name)) => Some(name),
        _ => None,
    };
    let of_routes = file.routes.iter().filter_map(of_route);
    let of_rules = file.rules.iter().filter_map(|rule| rule.upstream.as_ref());
    for name in of_routes.chain(of_rules) {
        exists("upstream", name, &names, out);
    }
}

fn responses_exist(file: &ConfigFile, out: &mut Diagnostics) {
    let names: Vec<_> = file.responses.iter().map(|r| &*r.name.value).collect();
    let of_rules = file.rules.iter().filter_map(|rule| rule.response.as_ref());
    let of_errors = file.error_pages().map(|page| &page.response);
    for name in of_rules.chain(of_errors) {
        exists("response", name, &names, out);
    }
}

fn listeners_exist(file: &ConfigFile, out: &mut Diagnostics) {
    let labels: Vec<_> = file.listeners.iter().map(|one| one.label()).collect();
    let names: Vec<_> = labels.iter().map(String::as_str).collect();
    for name in file
        .routes
        .iter()
        .filter_map(|route| route.listener.as_ref())
    {
        exists("listener", name, &names, out);
    }
}

/// Reports `redirect_to_https` in a file without a TLS listener.
fn redirects_have_a_target(file: &ConfigFile, out: &mut Diagnostics) {
    if file.listeners.iter().any(|listener| listener.tls.is_some()) {
        return;
    }
    let redirects = file.listeners.iter().map(|one| &one.redirect_to_https);
    for redirect in redirects.filter(|redirect| redirect.value) {
        let message = "`redirect_to_https` needs a listener with TLS";
        out.lacks(redirect.span.clone(), message).help(
            "add a listener with `[listeners.tls]`; behind a proxy that terminates TLS, write a \
             route with `scheme = \"http\"` and `redirect = \"https://{host}{uri}\"`",
        );
    }
}

fn exists(what: &str, name: &Text, names: &[&str], out: &mut Diagnostics) {
    // A section without a name has its own error, and may be the one that is referenced.
    if names.contains(&&*name.value) || names.contains(&"") {
        return;
    }
    let unknown = format!("unknown {what} `{}`", name.value);
    if let Some(near) = nearest(&name.value, names.iter().copied()) {
        let message = format!("{unknown}; did you mean `{near}`?");
        out.unknown(name.span.clone(), message);
        return;
    }
    let is_address = what == "upstream" && name.value.contains([':', '/']);
    let help = match names {
        _ if is_address => {
            "write the name of an `[[upstreams]]` entry; the address belongs in its `servers`"
                .to_owned()
        }
        [] => format!("no {what} is defined"),
        names => format!("defined {what}s: {}", names.join(", ")),
    };
    out.unknown(name.span.clone(), unknown).help(help);
}

fn addresses_are_free(file: &ConfigFile, out: &mut Diagnostics) {
    let listeners = file.listeners.iter().map(|listener| &listener.address);
    let admin = file.admin.iter().map(|admin| &admin.address);
    let mut taken: Vec<&Spanned<SocketAddr>> = Vec::new();
    for address in listeners.chain(admin) {
        let clash = taken.iter().find(|t| overlap(t.value, address.value));
        if let Some(first) = clash {
            let message = format!("address {} is already in use", address.value);
            out.error(address.span.clone(), message)
                .related(first.span.clone(), "first used here");
        }
        taken.push(address);
    }
}

/// Returns whether two listeners conflict. Port 0 is a new port each time; `[::]` covers both families.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let all =
        |x: SocketAddr, y: SocketAddr| x.ip().is_unspecified() && (x.is_ipv6() || y.is_ipv4());
    a.port() == b.port() && a.port() != 0 && (a.ip() == b.ip() || all(a, b) || all(b, a))
}
