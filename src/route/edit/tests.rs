//! Paths without a prefix, and changed headers.

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request};

use super::*;

fn parts(target: &str) -> Parts {
    let request = Request::get(target).header("host", "a.test");
    request.body(()).unwrap().into_parts().0
}

/// The target that the upstream gets.
fn target(path: &ForwardPath, sent: &str) -> String {
    let parts = parts(sent);
    let head = RequestHead::read(&parts, false).unwrap();
    path.target(&head).into_owned()
}

fn fields(set: &[(&'static str, &'static str)], remove: &[&'static str]) -> HeaderChanges {
    let name = |text: &'static str| HeaderName::from_static(text);
    let set = set.iter();
    HeaderChanges {
        set: set
            .map(|(n, v)| (name(n), HeaderValue::from_static(v)))
            .collect(),
        computed: Vec::new(),
        remove: remove.iter().map(|n| name(n)).collect(),
    }
}

/// The fields of a head after a change, in order.
fn changed(fields: &HeaderChanges, head: &[(&'static str, &'static str)]) -> Vec<(String, String)> {
    let mut headers = HeaderMap::new();
    for (name, value) in head {
        headers.append(*name, HeaderValue::from_static(value));
    }
    fields.apply(&mut headers);
    let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
    let fields = headers.iter();
    fields
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let fields = fields.iter();
    fields
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect()
}

#[test]
fn a_prefix_is_stripped_from_the_normal_form() {
    let strip = ForwardPath::without("/api").unwrap();
    for (sent, gets) in [
        ("/api", "/"),
        ("/api/", "/"),
        ("/api?x=1", "/?x=1"),
        ("/api/?x=1", "/?x=1"),
        ("/api/users?x=/api", "/users?x=/api"),
        ("/api/api", "/api"),
        ("//api/./users//1", "/users/1"),
        ("/%61pi/users", "/users"),
        ("/x/../api/users", "/users"),
        ("/api/%2Fusers", "/%2Fusers"),
        // A longer segment, the prefix elsewhere, another spelling.
        ("/apifoo", "/apifoo"),
        ("/v1/api", "/v1/api"),
        ("/API/users", "/API/users"),
        ("/api%2Fusers", "/api%2Fusers"),
        ("/?x=/api", "/?x=/api"),
        ("http://a.test/api/users", "/users"),
    ] {
        assert_eq!(target(&strip, sent), gets, "{sent}");
    }
    let long = ForwardPath::without("/api/v1").unwrap();
    assert_eq!(target(&long, "/api/v1/users"), "/users");
    assert_eq!(target(&long, "/api/v10/users"), "/api/v10/users");
}

#[test]
fn the_stripped_path_is_in_normal_form() {
    let strip = ForwardPath::without("/api").unwrap();
    for sent in ["/api//x", "/api/./../api//", "/api/%2e/x", "/api/a/b/../c"] {
        let left = target(&strip, sent);
        assert_eq!(
            path::normalise(&left).as_deref(),
            Ok(left.as_str()),
            "{sent}"
        );
    }
}

#[test]
fn the_bytes_of_the_client_are_kept() {
    for sent in ["//login", "/a/../b?c=%7e", "/%6cogin", "/x/./y//z/"] {
        assert_eq!(target(&ForwardPath::Raw, sent), sent);
    }
    let normal = target(&ForwardPath::Normal, "/a/../%6cogin?c=%7e");
    assert_eq!(normal, "/login?c=%7e");
}

#[test]
fn a_prefix_consists_of_whole_segments_in_normal_form() {
    for (prefix, mistake) in [
        ("api", "`api` is not a path; it starts with `/`"),
        ("/", "every path starts with `/`"),
        ("/api/", "`/api/` ends with `/`; write `/api`"),
        ("/api/*", "`/api/*` contains a placeholder"),
        ("/{id}", "`/{id}` contains a placeholder"),
        ("//api", "its normal form is `/api`"),
        ("/a/../b", "its normal form is `/b`"),
        ("/ä", "its normal form is `/%C3%A4`"),
        ("/a b", "the gateway refuses such a path"),
        ("/a?b", "the gateway refuses such a path"),
    ] {
        let error = ForwardPath::without(prefix).unwrap_err();
        assert!(error.contains(mistake), "{prefix}: {error}");
    }
}

#[test]
fn the_order_of_remaining_headers_is_kept() {
    let head = [("a", "1"), ("b", "2"), ("c", "3"), ("b", "4"), ("d", "5")];
    let edits = fields(&[("x", "set"), ("c", "new")], &["a", "none"]);
    let expected = [
        ("b", "2"),
        ("b", "4"),
        ("d", "5"),
        ("x", "set"),
        ("c", "new"),
    ];
    assert_eq!(changed(&edits, &head), pairs(&expected));
    // A shadow response may lack the changed headers and still ends up equal.
    let poorer = [("b", "2"), ("b", "4"), ("d", "5")];
    assert_eq!(changed(&edits, &poorer), pairs(&expected));
    assert_eq!(changed(&fields(&[], &[]), &head).len(), 5);
}

#[test]
fn framing_headers_cannot_be_edited() {
    let both = [
        "connection",
        "content-length",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-lockgate-rule",
    ];
    for message in [MessageKind::Request, MessageKind::Response] {
        for name in both {
            assert!(message.owns(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["server", "x-forwarded-for", "cookie", "content-type"] {
            assert!(!message.owns(&HeaderName::from_static(name)), "{name}");
        }
    }
    assert!(
        MessageKind::Request.owns(&header::EXPECT) && !MessageKind::Response.owns(&header::EXPECT)
    );
    assert!(MessageKind::Response.owns(&header::DATE) && !MessageKind::Request.owns(&header::DATE));
}

#[test]
fn a_host_can_be_set() {
    let edits = fields(&[("host", "app.internal:8080")], &[]);
    assert_eq!(edits.host(), Some("app.internal:8080"));
    assert_eq!(fields(&[("x", "y")], &[]).host(), None);
    let is = |text| is_host(&HeaderValue::from_static(text));
    assert!(is("app.internal") && is("[::1]:80") && is("10.0.0.1"));
    assert!(!is("") && !is("a b") && !is("a/b") && !is("http://a"));
}
