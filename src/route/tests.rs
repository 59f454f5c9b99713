//! Routes: hosts, paths, redirects.

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Version};
use ipnet::IpNet;
use proptest::prelude::*;

use super::{
    RedirectTemplate, RoutableRequest, RouteConditions, RoutePattern, RouteTable, UrlScheme,
};
use crate::facts::client_ip::{ClientIpResolver, HeaderKind};
use crate::facts::{ClientConnection, RequestHead, TlsFacts};

fn pattern(hosts: &[&str], path: Option<&str>) -> RoutePattern {
    let hosts: Vec<String> = hosts.iter().map(|h| h.to_string()).collect();
    RoutePattern::parse(&hosts, path).unwrap_or_else(|message| panic!("{message}"))
}

/// A request to `host`; HTTP/1.0 without a host.
fn parts(host: &str, target: &str) -> Parts {
    let request = match host {
        "" => Request::get(target).version(Version::HTTP_10),
        host => Request::get(target).header("host", host),
    };
    request.body(()).unwrap().into_parts().0
}

/// Calls `see` with the request as routes match it. It arrives on the listener `public` from 127.0.0.1, a trusted proxy.
fn routed<T>(parts: &Parts, over_tls: bool, see: impl FnOnce(&RoutableRequest<'_>) -> T) -> T {
    let trusted: IpNet = "127.0.0.1/32".parse().unwrap();
    let connection = ClientConnection {
        peer: ([127, 0, 0, 1], 1).into(),
        listener: "public".into(),
        tls: over_tls.then(TlsFacts::default),
    };
    see(&RoutableRequest {
        head: &RequestHead::read(parts, over_tls).unwrap(),
        headers: &parts.headers,
        connection: &connection,
        client_ip: &ClientIpResolver::new(
            [trusted],
            HeaderKind::named(HeaderName::from_static("x-forwarded-for")),
        ),
    })
}

fn matches(pattern: &RoutePattern, host: &str, path: &str) -> bool {
    routed(&parts(host, path), false, |request| {
        pattern.matches(request)
    })
}

fn host_fits(host_pattern: &str, host: &str) -> bool {
    matches(&pattern(&[host_pattern], None), host, "/")
}

fn path_fits(template: &str, path: &str) -> bool {
    pattern(&[], Some(template)).path().matches(path)
}

fn mistake(hosts: &[&str], path: Option<&str>) -> String {
    let hosts: Vec<String> = hosts.iter().map(|h| h.to_string()).collect();
    RoutePattern::parse(&hosts, path).unwrap_err()
}

#[test]
fn exact_hosts_match() {
    assert!(host_fits("example.com", "example.com"));
    assert!(host_fits("EXAMPLE.com.", "example.com"));
    assert!(host_fits("example.com", "example.com:8443"));
    assert!(host_fits("example.com:8443", "example.com:8443"));
    assert!(host_fits("[::1]", "[::1]:80"));
    assert!(host_fits("[::1]", "[::1]"));
    assert!(!host_fits("example.com:8443", "example.com"));
    assert!(!host_fits("example.com:8443", "example.com:844"));
    assert!(!host_fits("example.com", "example.com.evil.net"));
    assert!(!host_fits("example.com", "an-example.com"));
    assert!(!host_fits("example.com", "www.example.com"));
    assert!(!host_fits("example.com", ""));
}

#[test]
fn wildcard_hosts_match_subdomains() {
    assert!(host_fits("*.example.com", "a.example.com"));
    assert!(host_fits("*.example.com", "a.b.example.com"));
    assert!(host_fits("*.Example.com", "a.example.com:8443"));
    assert!(host_fits("*.example.com:8443", "a.example.com:8443"));
    assert!(!host_fits("*.example.com:8443", "a.example.com"));
    assert!(!host_fits("*.example.com", "example.com"));
    assert!(!host_fits("*.example.com", "anexample.com"));
    assert!(!host_fits("*.example.com", "[::1]"));
    assert!(host_fits("*", "anything") && host_fits("*", ""));
}

#[test]
fn the_port_of_a_host_is_that_of_the_url() {
    assert!(host_fits("example.com:80", "example.com"));
    assert!(host_fits("example.com:80", "example.com:80"));
    assert!(host_fits("*.example.com:80", "a.example.com"));
    assert!(!host_fits("example.com:443", "example.com"));
    let secure = pattern(&["example.com:443"], None);
    let mut parts = parts("example.com", "/");
    assert!(routed(&parts, true, |request| secure.matches(request)));
    // A trusted proxy received the request over TLS.
    let https = HeaderValue::from_static("https");
    parts.headers.insert("x-forwarded-proto", https);
    assert!(routed(&parts, false, |request| secure.matches(request)));
}

#[test]
fn all_conditions_must_hold() {
    let any = RouteConditions::default;
    let named = |name: &str| RouteConditions {
        listener: Some(name.into()),
        ..any()
    };
    let scheme = |scheme| RouteConditions {
        scheme: Some(scheme),
        ..any()
    };
    let methods = |methods: &[Method]| RouteConditions {
        methods: methods.to_vec(),
        ..any()
    };
    let header = |value| RouteConditions {
        headers: vec![(
            HeaderName::from_static("x-beta"),
            HeaderValue::from_static(value),
        )],
        ..any()
    };
    let mut request = parts("example.com", "/a");
    for value in ["0", "1"] {
        request
            .headers
            .append("x-beta", HeaderValue::from_static(value));
    }
    for (conditions, plain, tls) in [
        (any(), true, true),
        (named("public"), true, true),
        (named("other"), false, false),
        (scheme(UrlScheme::Http), true, false),
        (scheme(UrlScheme::Https), false, true),
        (methods(&[Method::POST, Method::GET]), true, true),
        (methods(&[Method::HEAD]), false, false),
        (header("1"), true, true),
        (header("2"), false, false),
        (header("1, 0"), false, false),
    ] {
        let route = pattern(&[], None).when(conditions.clone());
        for (over_tls, expected) in [(false, plain), (true, tls)] {
            let fits = routed(&request, over_tls, |request| route.matches(request));
            assert_eq!(fits, expected, "{conditions:?} {over_tls}");
        }
    }
}

#[test]
fn conditions_distinguish_routes_with_equal_paths() {
    let listener = RouteConditions {
        listener: Some("public".into()),
        ..RouteConditions::default()
    };
    let (plain, other) = (pattern(&[], Some("/a")), pattern(&[], Some("/a")));
    assert_ne!(plain.label(), other.when(listener).label());
    assert_eq!(plain.name(), "/a");
    assert_eq!(plain.named(Some("orders")).name(), "orders");
}

#[test]
fn path_templates_match() {
    for (template, path, expected) in [
        ("/login", "/login", true),
        ("/login", "/login/", false),
        ("/login", "/LOGIN", false),
        ("/login", "/login2", false),
        ("/", "/", true),
        ("/", "/a", false),
        ("/api/*", "/api", true),
        ("/api/*", "/api/", true),
        ("/api/*", "/api/a/b", true),
        ("/api/*", "/apis", false),
        ("/api/*", "/", false),
        ("/*", "/", true),
        ("/*", "/a/b", true),
        ("/orders/{id}", "/orders/7", true),
        ("/orders/{id}", "/orders/a%2Fb", true),
        ("/orders/{id}", "/orders/", false),
        ("/orders/{id}", "/orders", false),
        ("/orders/{id}", "/orders/7/", false),
        ("/orders/{id}", "/orders/7/items", false),
        ("/orders/{id}/items", "/orders/7/items", true),
        ("/orders/{id}/items", "/orders/7/other", false),
        ("/{a}/{b}", "/x/y", true),
        ("/{a}/{b}", "/x", false),
        ("/orders/{id}/*", "/orders/7", true),
        ("/orders/{id}/*", "/orders/7/", true),
        ("/orders/{id}/*", "/orders/7/items/3", true),
        ("/orders/{id}/*", "/orders", false),
        ("/@scope%2Fname", "/@scope%2Fname", true),
    ] {
        assert_eq!(path_fits(template, path), expected, "{template} {path}");
    }
}

#[test]
fn a_route_without_path_and_host_matches_every_request() {
    let any = pattern(&[], None);
    assert!(any.path().matches("*") && matches(&any, "", "/") && matches(&any, "a.b", "/x"));
    assert_eq!(any.template(), "/*");
    assert!(!path_fits("/*", "*"));
}

#[test]
fn the_first_match_wins() {
    let table = RouteTable::new([
        (pattern(&["a.com"], Some("/orders/{id}")), 1),
        (pattern(&["a.com", "b.com"], None), 2),
        (pattern(&[], Some("/orders/*")), 3),
    ]);
    let found = |host, path| {
        let parts = parts(host, path);
        routed(&parts, false, |request| {
            let (pattern, route) = table.find(request)?;
            Some((pattern.template().to_owned(), *route))
        })
    };
    let expected = |template: &str, route| Some((template.to_owned(), route));
    assert_eq!(found("a.com", "/orders/7"), expected("/orders/{id}", 1));
    assert_eq!(found("a.com", "/x"), expected("/*", 2));
    assert_eq!(found("b.com", "/orders/7"), expected("/*", 2));
    assert_eq!(found("c.com", "/orders"), expected("/orders/*", 3));
    assert_eq!(found("c.com", "/x"), None);
    let none = RouteTable::<u8>::default();
    assert!(routed(&parts("a", "/"), false, |request| none
        .find(request)
        .is_none()));
    assert_eq!(table.iter().count(), 3);
}

#[test]
fn template_errors_are_explained() {
    for (host, says) in [
        ("https://a.com", "scheme"),
        ("a.com/x", "path"),
        ("a.*.com", "at the start"),
        ("*a.com", "at the start"),
        ("b\u{fc}cher.example", "ASCII"),
        ("", "is not a host"),
        ("*.", "is not a host"),
        ("*.[::1]", "is not a host"),
        ("127.1", "is not a host"),
    ] {
        let message = mistake(&["ok.com", host], None);
        assert!(message.contains(says), "{host}: {message}");
    }
    for (path, says) in [
        ("", "starts with `/`"),
        ("api", "starts with `/`"),
        ("*", "starts with `/`"),
        ("/a*", "only at the end"),
        ("/*/a", "only at the end"),
        ("//a", "its normal form is `/a`"),
        ("/%6cogin", "its normal form is `/login`"),
        ("/a/../b", "its normal form is `/b`"),
        ("/{id", "is not a placeholder"),
        ("/id}", "is not a placeholder"),
        ("/x{id}", "is not a placeholder"),
        ("/{}", "is not a placeholder"),
        ("/{a b}", "can never match"),
        ("/{a-b}", "is not a placeholder"),
        ("/{a}//b", "normal form"),
        ("/a?b", "can never match"),
        ("^/api", "regular expression"),
        ("~* \\.php$", "regular expression"),
        ("/x/(.*)$", "regular expression"),
        ("/v[0-9]+/x", "regular expression"),
        ("*.php", "ends_with(http.request.uri.path, \".php\")"),
    ] {
        let message = mistake(&[], Some(path));
        assert!(message.contains(says), "{path}: {message}");
    }
}

/// The location for a request to `host` and `target`.
fn location(template: &str, host: &str, target: &str) -> String {
    let method = if target == "*" { "OPTIONS" } else { "GET" };
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header("host", host);
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let head = RequestHead::read(&parts, false).unwrap();
    let location = RedirectTemplate::parse(template).unwrap().expand(&head);
    location.unwrap().to_str().unwrap().to_owned()
}

#[test]
fn redirect_templates_are_filled_in() {
    let full = "https://{host}{uri}";
    assert_eq!(
        location(full, "A.com:8080", "/x?y=1"),
        "https://a.com/x?y=1"
    );
    assert_eq!(
        location(full, "a.com", "//evil.net/%2e"),
        "https://a.com/evil.net/"
    );
    assert_eq!(location(full, "a.com", "*"), "https://a.com/");
    assert_eq!(location(full, "[::1]:80", "/"), "https://[::1]/");
    assert_eq!(
        location("/new{path}?from={query}", "a.com", "/x?y"),
        "/new/x?from=y"
    );
    assert_eq!(location("{uri}", "a.com", "//evil.net"), "/evil.net");
    assert_eq!(location("https://b.com/", "a.com", "/x"), "https://b.com/");
    assert_eq!(
        location(full, "a.com", "/?q=\u{e9}"),
        "https://a.com/?q=%C3%A9"
    );
}

#[test]
fn a_redirect_needs_the_host_that_it_names() {
    let parts = parts("", "/x");
    let head = RequestHead::read(&parts, false).unwrap();
    let expand = |template| RedirectTemplate::parse(template).unwrap().expand(&head);
    assert_eq!(expand("https://{host}{uri}"), None);
    assert_eq!(expand("https://a.com{uri}").unwrap(), "https://a.com/x");
}

#[test]
fn invalid_redirects_are_refused() {
    for (template, says) in [
        ("https://{hst}/", "unknown placeholder `{hst}`"),
        ("https://{host", "not closed"),
        ("https://$host$request_uri", "write `{host}`"),
        ("https://example.com$request_uri", "write `{uri}`"),
        ("https://a}/", "no opening"),
        ("", "starts with"),
        ("//evil.net", "starts with"),
        ("{host}/x", "starts with"),
        ("javascript:alert(1)", "starts with"),
        ("https://a b/", "visible ASCII"),
        ("https://a/\r\nx: y", "visible ASCII"),
    ] {
        let error = RedirectTemplate::parse(template).unwrap_err();
        assert!(error.contains(says), "{template}: {error}");
    }
}

proptest! {
    #[test]
    fn no_template_causes_a_panic(host in "\\PC{0,12}", path in "[/a*{}.%2]{0,12}", url in "\\PC{0,12}") {
        let _ = RedirectTemplate::parse(&url);
        if let Ok(pattern) = RoutePattern::parse(&[host], Some(&path)) {
            matches(&pattern, "a.example:80", "/a/b");
        }
    }
}
