//! Memory is bounded, whatever origins send.

use std::sync::Arc;

use super::super::dice::Dice;
use super::super::{Imitations, KINDS, Kind};
use super::*;

/// A head that is as hard to remember as one can be.
fn worst(dice: &mut Dice, names: usize) -> Vec<(String, String)> {
    let field = |n: usize| {
        let parts: Vec<String> = (0..20)
            .map(|_| format!("{:x}", dice.throw() >> 20))
            .collect();
        let pad = "y".repeat(dice.below(2000));
        let value = match dice.below(3) {
            0 => parts.join("-"),
            1 => pad,
            _ => format!("{}.{}", dice.below(1000), dice.below(1000)),
        };
        (format!("x-{}", (n + dice.below(3)) % 50), value)
    };
    (0..names).map(field).collect()
}

#[test]
fn a_flood_of_odd_answers_stays_within_bounds() {
    let imitations = Imitations::new();
    let request = Request::get();
    let asked = request.asked(NOW);
    let mut dice = Dice::new();
    let mut memories = Vec::new();
    for route in 0..4 * KINDS {
        let name: Arc<str> = format!("/{route}").into();
        let kind = Kind::new(name, "app".into(), &asked, StatusCode::OK).unwrap();
        memories.extend(imitations.get_or_begin(kind));
    }
    assert_eq!(memories.len(), KINDS);
    let memory = &memories[0];
    for answer in 0..400 {
        let names = if answer % 100 == 0 { 200 } else { 32 };
        let head = worst(&mut dice, names);
        let head: Vec<(&str, &str)> = head.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        teach(memory, answer, &head);
    }
    // Constants that are long, beside what varies.
    let long = "z".repeat(2048);
    let many: Vec<(String, String)> = (0..32).map(|n| (format!("x-{n}"), long.clone())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    teach_all(memory, 400, &many);
    for answer in 0..5000 {
        let mut pace = Pace::default();
        for piece in 0..100 {
            pace.add(piece + answer, Duration::from_secs(piece as u64));
        }
        memory.learn_pace(pace.whole());
    }
    let (one, all) = (memory.bytes(), imitations.bytes());
    assert!(one < 128 << 10, "{one} bytes for a kind of answer");
    assert!(one * KINDS < 8 << 20 && all < 8 << 20, "{all} bytes");
}

#[test]
fn what_is_gone_makes_room() {
    let imitations = Imitations::new();
    let request = Request::get();
    let asked = request.asked(NOW);
    let kind = |n: usize| {
        let route: Arc<str> = format!("/{n}").into();
        Kind::new(route, "app".into(), &asked, StatusCode::OK).unwrap()
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
fn kinds_are_told_apart() {
    let request = Request::get();
    let mut other = Request::get();
    other.method = Method::HEAD;
    let asked = request.asked(NOW);
    let kind = |route: &str, upstream: &str, asked: &Asked<'_>, status| {
        Kind::new(route.into(), upstream.into(), asked, status)
    };
    let base = kind("/a", "app", &asked, StatusCode::OK).unwrap();
    let h2 = Asked {
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
