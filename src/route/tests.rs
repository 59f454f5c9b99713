//! Routes: hosts, paths, redirects.

use http::Request;
use proptest::prelude::*;

use super::{RedirectTemplate, RoutePattern, RouteTable};
use crate::facts::RequestHead;

fn pattern(hosts: &[&str], path: Option<&str>) -> RoutePattern {
    let hosts: Vec<String> = hosts.iter().map(|h| h.to_string()).collect();
    RoutePattern::parse(&hosts, path).unwrap_or_else(|message| panic!("{message}"))
}

fn host_fits(host_pattern: &str, host: &str) -> bool {
    pattern(&[host_pattern], None).matches(host, "/")
}

fn path_fits(template: &str, path: &str) -> bool {
    pattern(&[], Some(template)).matches("a", path)
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
    assert!(!host_fits("example.com:8443", "example.com:84430"));
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
    assert!(!host_fits("*.example.com", ".example.com"));
    assert!(!host_fits("*.example.com", "anexample.com"));
    assert!(!host_fits("*.example.com", "[::1]"));
    assert!(host_fits("*", "anything") && host_fits("*", ""));
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
    assert!(any.matches("", "*") && any.matches("a.b", "/x"));
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
        let (pattern, route) = table.find(host, path)?;
        Some((pattern.template(), route))
    };
    assert_eq!(found("a.com", "/orders/7"), Some(("/orders/{id}", &1)));
    assert_eq!(found("a.com", "/x"), Some(("/*", &2)));
    assert_eq!(found("b.com", "/orders/7"), Some(("/*", &2)));
    assert_eq!(found("c.com", "/orders"), Some(("/orders/*", &3)));
    assert_eq!(found("c.com", "/x"), None);
    assert!(RouteTable::<u8>::default().find("a", "/").is_none());
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
    location.to_str().unwrap().to_owned()
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
            pattern.matches("a.example:80", "/a/b");
        }
    }
}
