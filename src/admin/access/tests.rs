//! Which request heads are accepted.

use http::Request;

use super::*;

fn head(method: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri("/api/status");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn status(head: &Parts, token: Option<&str>) -> u16 {
    let checked = check(head, PathAccess::Token, token);
    checked.map_or_else(|error| error.status.as_u16(), |()| 200)
}

#[test]
fn only_the_whole_token_is_accepted() {
    let with = |value| status(&head("GET", &[("authorization", value)]), Some("secret"));
    for right in ["Bearer secret", "bearer secret", "BEARER  secret "] {
        assert_eq!(with(right), 200, "{right}");
    }
    for wrong in [
        "Bearer secre",
        "Bearer secrets",
        "Bearer ",
        "Bearer",
        "Basic secret",
        "secret",
        "B",
    ] {
        assert_eq!(with(wrong), 401, "{wrong}");
    }
    assert_eq!(status(&head("GET", &[]), Some("secret")), 401);
    let twice = [("authorization", "Bearer secret"); 2];
    assert_eq!(status(&head("GET", &twice), Some("secret")), 403);
}

#[test]
fn an_empty_token_admits_no_request() {
    let empty = head("GET", &[("authorization", "Bearer ")]);
    assert_eq!(status(&empty, Some("")), 401);
}

#[test]
fn without_a_token_only_local_names_are_accepted() {
    let with = |host| status(&head("GET", &[("host", host)]), None);
    for local in [
        "localhost",
        "LOCALHOST:9901",
        "127.0.0.1:9901",
        "127.8.0.1",
        "[::1]:9901",
        "[::ffff:127.0.0.1]",
    ] {
        assert_eq!(with(local), 200, "{local}");
    }
    for foreign in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:9901",
        "192.0.2.1",
        "0.0.0.0:9901",
        "x@localhost",
        "localhost@evil.example",
        "localhost, evil.example",
        "",
    ] {
        assert_eq!(with(foreign), 403, "{foreign}");
    }
    assert_eq!(status(&head("GET", &[]), None), 403);
    let twice = [("host", "localhost"), ("host", "evil.example")];
    assert_eq!(status(&head("GET", &twice), None), 403);
}

#[test]
fn the_authority_of_an_absolute_target_is_checked_too() {
    let mut absolute = head("GET", &[("host", "localhost")]);
    absolute.uri = "http://evil.example/api/status".parse().unwrap();
    assert_eq!(status(&absolute, None), 403);
}

#[test]
fn probes_need_neither_a_token_nor_a_local_name() {
    let foreign = head("GET", &[("host", "evil.example")]);
    assert_eq!(check(&foreign, PathAccess::Open, None), Ok(()));
    assert_eq!(check(&foreign, PathAccess::Open, Some("secret")), Ok(()));
    assert_eq!(check(&foreign, PathAccess::NoToken, Some("secret")), Ok(()));
    assert!(check(&foreign, PathAccess::NoToken, None).is_err());
}

#[test]
fn a_change_from_another_site_is_refused() {
    let with = |headers: &[(&str, &str)]| {
        let local = [("host", "localhost:9901")];
        status(&head("POST", &[&local[..], headers].concat()), None)
    };
    assert_eq!(with(&[]), 200);
    assert_eq!(with(&[("sec-fetch-site", "same-origin")]), 200);
    assert_eq!(with(&[("sec-fetch-site", "none")]), 200);
    for site in ["cross-site", "same-site", "", "Same-Origin"] {
        assert_eq!(with(&[("sec-fetch-site", site)]), 403, "{site}");
    }
    assert_eq!(with(&[("origin", "http://localhost:9901")]), 200);
    assert_eq!(with(&[("origin", "HTTP://localhost:9901")]), 403);
    for origin in [
        "null",
        "http://evil.example",
        "http://localhost",
        "http://localhost:9902",
        "http://localhost:9901.evil.example",
        "localhost:9901",
    ] {
        assert_eq!(with(&[("origin", origin)]), 403, "{origin}");
    }
}

#[test]
fn a_default_port_may_be_absent() {
    let with = |host, origin| {
        let headers = [
            ("host", host),
            ("origin", origin),
            ("authorization", "Bearer t"),
        ];
        status(&head("POST", &headers), Some("t"))
    };
    assert_eq!(with("ops.example", "https://ops.example"), 200);
    assert_eq!(with("ops.example:443", "https://ops.example"), 200);
    assert_eq!(with("ops.example", "http://ops.example:80"), 200);
    assert_eq!(with("ops.example", "https://ops.example:80"), 403);
}

#[test]
fn a_body_must_be_json() {
    let with = |headers: &[(&str, &str)]| {
        let local = [("host", "localhost")];
        status(&head("POST", &[&local[..], headers].concat()), None)
    };
    let body = ("content-length", "2");
    assert_eq!(with(&[body, ("content-type", "application/json")]), 200);
    assert_eq!(
        with(&[body, ("content-type", "Application/JSON; charset=utf-8")]),
        200
    );
    assert_eq!(with(&[("content-length", "0")]), 200);
    assert_eq!(with(&[body]), 403);
    assert_eq!(with(&[("transfer-encoding", "chunked")]), 403);
    for simple in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        assert_eq!(with(&[("content-type", simple)]), 403, "{simple}");
        assert_eq!(with(&[body, ("content-type", simple)]), 403, "{simple}");
    }
}
