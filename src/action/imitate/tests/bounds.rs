//! The number of kinds is bounded. `tests/alloc/imitate.rs` measures the memory of one.

use std::sync::Arc;

use super::super::{ImitationStore, KINDS, ResponseClass};
use super::*;

#[test]
fn removed_routes_free_capacity_for_new_classes() {
    let imitations = ImitationStore::default();
    let request = Request::get();
    let asked = request.asked(NOW);
    let kind = |n: usize| {
        let route: Arc<str> = format!("/{n}").into();
        ResponseClass::new(route, "app".into(), &asked, StatusCode::OK).unwrap()
    };
    for n in 0..KINDS {
        assert!(imitations.get_or_begin(kind(n)).is_some());
    }
    assert!(imitations.get_or_begin(kind(KINDS)).is_none());
    assert!(imitations.get_or_begin(kind(0)).is_some());
    imitations.retain(|kind| &*kind.route == "/0");
    assert!(imitations.get(&kind(0)).is_some() && imitations.get(&kind(1)).is_none());
    assert!(imitations.get_or_begin(kind(KINDS)).is_some());
}

#[test]
fn response_classes_differ_by_route_upstream_request_and_status() {
    let request = Request::get();
    let mut other = Request::get();
    other.method = Method::HEAD;
    let asked = request.asked(NOW);
    let kind = |route: &str, upstream: &str, asked: &RequestInfo<'_>, status| {
        ResponseClass::new(route.into(), upstream.into(), asked, status)
    };
    let base = kind("/a", "app", &asked, StatusCode::OK).unwrap();
    let h2 = RequestInfo {
        version: Version::HTTP_2,
        ..request.asked(NOW)
    };
    for different in [
        kind("/b", "app", &asked, StatusCode::OK),
        kind("/a", "other", &asked, StatusCode::OK),
        kind("/a", "app", &other.asked(NOW), StatusCode::OK),
        kind("/a", "app", &h2, StatusCode::OK),
        kind("/a", "app", &asked, StatusCode::CREATED),
        Some(base.clone().stopped_by(&"rule".into())),
    ] {
        assert_ne!(different.unwrap(), base);
    }
    for status in [301, 404, 206, 500, 101] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(kind("/a", "app", &asked, status), None);
    }
    other.method = Method::from_bytes(b"BREW").unwrap();
    assert_eq!(kind("/a", "app", &other.asked(NOW), StatusCode::OK), None);
    let mut grpc = Request::with(&[("content-type", "application/grpc")]);
    grpc.method = Method::POST;
    assert_eq!(kind("/a", "app", &grpc.asked(NOW), StatusCode::OK), None);
}
