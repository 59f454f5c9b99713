//! The bounds, one by one.

use std::time::Duration;

use super::*;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let [s, t, r, e] = stream.to_be_bytes();
    [&[a, b, c, kind, flags, s, t, r, e], payload].concat()
}

/// A meter that has received the preface.
fn meter(max_resets: u32) -> (H2Meter, Instant) {
    let now = Instant::now();
    let mut meter = H2Meter::new(max_resets, now);
    let hello = [PREFACE, &frame(kind::SETTINGS, 0, 0, b"")].concat();
    assert_eq!(meter.receive(&hello, now), hello.len());
    (meter, now)
}

/// How many frames like this one are taken before the connection is broken.
fn taken(frame: &[u8]) -> (u32, H2Violation) {
    let (mut meter, now) = meter(100);
    let mut taken = 0;
    while meter.receive(frame, now) == frame.len() {
        taken += 1;
        assert!(taken < 100_000, "no bound");
    }
    (taken, meter.violation().unwrap())
}

#[test]
fn each_frame_kind_has_its_limit() {
    let cases: [(&str, u32, Vec<u8>); 12] = [
        ("resets", 100, frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8])),
        // One came with the preface.
        (
            "settings",
            SETTINGS.base - 1,
            frame(kind::SETTINGS, 0, 0, b""),
        ),
        (
            "acks",
            SETTINGS.base - 1,
            frame(kind::SETTINGS, flag::ACK, 0, b""),
        ),
        ("pings", PINGS.base, frame(kind::PING, 0, 0, &[0; 8])),
        (
            "priorities",
            PRIORITIES.base,
            frame(kind::PRIORITY, 0, 1, &[0; 5]),
        ),
        ("unknown", UNKNOWN.base, frame(0xbe, 0, 0, b"grease")),
        (
            "updates",
            UPDATES.base,
            frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 64, 0]),
        ),
        ("blanks", BLANKS.base, frame(kind::DATA, 0, 1, b"")),
        (
            "padding",
            BLANKS.base,
            frame(kind::DATA, flag::PADDED, 1, &[3, 0, 0, 0]),
        ),
        (
            "hollow heads",
            HOLLOWS.base,
            frame(kind::HEADERS, 0, 1, b""),
        ),
        (
            "hollow parts",
            HOLLOWS.base,
            frame(kind::CONTINUATION, 0, 1, b""),
        ),
        ("goaways", GOAWAYS.base, frame(kind::GOAWAY, 0, 0, &[0; 8])),
    ];
    for (name, bound, frame) in cases {
        let (count, broken) = taken(&frame);
        assert_eq!(
            (count, broken.code),
            (bound, H2Violation::ENHANCE_YOUR_CALM),
            "{name}"
        );
    }
}

#[test]
fn sent_data_raises_the_limit_of_related_frames() {
    let (mut meter, now) = meter(100);
    let update = frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 64, 0]);
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    for _ in 0..10_000 {
        meter.send(&frame(kind::DATA, 0, 1, &[0; 100]));
        for bytes in [&update, &update, &ping] {
            assert_eq!(meter.receive(bytes, now), bytes.len());
        }
    }
    assert_eq!(meter.violation(), None);
}

#[test]
fn tiny_window_updates_are_limited_regardless_of_sent_data() {
    let (mut meter, now) = meter(100);
    let crumb = frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
    let mut crumbs = 0;
    while meter.receive(&crumb, now) == crumb.len() {
        meter.send(&frame(kind::DATA, 0, 1, b"x"));
        crumbs += 1;
    }
    assert_eq!(crumbs, CRUMBS.base);
}

#[test]
fn counts_restart_with_each_window() {
    let (mut meter, mut now) = meter(100);
    let reset = frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]);
    for _ in 0..5 {
        for _ in 0..100 {
            assert_eq!(meter.receive(&reset, now), reset.len());
        }
        now += WINDOW + Duration::from_millis(1);
    }
    assert_eq!(meter.violation(), None);
}

#[test]
fn resets_caused_by_the_client_count_with_its_own() {
    let (mut meter, now) = meter(10);
    let reset = frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]);
    for _ in 0..5 {
        assert_eq!(meter.receive(&reset, now), reset.len());
        meter.send(&frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 1]));
        // Ours, not theirs: NO_ERROR, INTERNAL_ERROR and CANCEL.
        for code in [0, 2, 8] {
            meter.send(&frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, code]));
        }
    }
    assert!(!meter.is_violated());
    meter.send(&frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 5]));
    assert!(meter.is_violated());
    assert_eq!((meter.take_errors(), meter.take_errors()), (6, 0));
}

#[test]
fn a_reset_limit_of_zero_is_unlimited() {
    let (mut meter, now) = meter(0);
    let reset = frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]);
    for _ in 0..10_000 {
        assert_eq!(meter.receive(&reset, now), reset.len());
    }
}

#[test]
fn only_bytes_before_the_violating_frame_are_accepted() {
    let (mut meter, now) = meter(100);
    let good = frame(kind::DATA, 0, 1, &[0; 50]);
    let bad = frame(kind::PING, 0, 0, &[0; 7]);
    let all = [good.clone(), good.clone(), bad, good.clone()].concat();
    assert_eq!(meter.receive(&all[..30], now), 30);
    assert_eq!(meter.receive(&all[30..], now), 2 * good.len() - 30);
    assert_eq!(meter.violation(), Some(H2Violation::SIZE));
}

#[test]
fn a_wrong_preface_is_a_violation_at_its_first_wrong_byte() {
    for end in 0..PREFACE.len() {
        let mut meter = H2Meter::new(100, Instant::now());
        let mut hello = PREFACE.to_vec();
        hello[end] ^= 1;
        for byte in &hello[..end] {
            assert_eq!(meter.receive(&[*byte], Instant::now()), 1);
        }
        assert_eq!(meter.receive(&hello[end..=end], Instant::now()), 0);
        assert_eq!(meter.violation(), Some(H2Violation::PREFACE));
    }
}

#[test]
fn the_first_frame_must_be_settings() {
    for first in [
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::SETTINGS, flag::ACK, 0, b""),
    ] {
        let mut meter = H2Meter::new(100, Instant::now());
        let hello = [PREFACE, &first].concat();
        assert_eq!(meter.receive(&hello, Instant::now()), PREFACE.len());
        assert_eq!(meter.violation(), Some(H2Violation::PREFACE));
    }
}

#[test]
fn goaway_is_sent_only_between_two_frames() {
    let (mut meter, now) = meter(100);
    meter.receive(&frame(kind::HEADERS, flag::END_HEADERS, 7, b"head"), now);
    meter.receive(&frame(kind::PING, 0, 0, b""), now);
    let answer = frame(kind::DATA, 0, 7, b"answer");
    meter.send(&answer[..12]);
    assert_eq!(meter.goaway(), None);
    meter.send(&answer[12..]);
    let what = b"a frame of an invalid size";
    let payload = [&[0, 0, 0, 7, 0, 0, 0, 6], &what[..]].concat();
    assert_eq!(meter.goaway(), Some(frame(kind::GOAWAY, 0, 0, &payload)));
}

#[test]
fn a_violation_found_by_h2_is_recognized_by_its_goaway() {
    for (code, flood) in [(0, None), (1, Some(false)), (11, Some(true))] {
        let (mut meter, _) = meter(100);
        let payload = [0, 0, 0, 1, 0, 0, 0, code];
        meter.send(&frame(kind::GOAWAY, 0, 0, &payload));
        let found = meter
            .violation()
            .map(|broken| broken.code == H2Violation::ENHANCE_YOUR_CALM);
        assert_eq!(found, flood);
        assert!(!meter.is_violated() && meter.goaway().is_none());
    }
}

#[test]
fn an_incomplete_preface_or_head_is_open() {
    let now = Instant::now();
    let mut meter = H2Meter::new(100, now);
    let hello = [PREFACE, &frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 1])].concat();
    for byte in &hello {
        assert!(meter.open_head().is_some());
        meter.receive(&[*byte], now);
    }
    assert_eq!(meter.open_head(), None);
    let part = frame(kind::HEADERS, 0, 1, b"a part of a head");
    let last = frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"and its end");
    let next = frame(kind::HEADERS, flag::END_HEADERS, 3, b"the head behind it");
    let both = [&part[..], &last, &next].concat();
    let behind = part.len() + last.len();
    let owed: Vec<_> = both
        .iter()
        .map(|byte| {
            meter.receive(&[*byte], now);
            meter.open_head()
        })
        .collect();
    let all_are = |owed: &[Option<u32>], head| owed.iter().all(|owed| *owed == head);
    assert!(owed[0].is_some() && owed[behind].is_some() && owed[0] != owed[behind]);
    assert!(all_are(&owed[..behind - 1], owed[0]), "{owed:?}");
    assert_eq!(owed[behind - 1], None);
    assert!(
        all_are(&owed[behind..both.len() - 1], owed[behind]),
        "{owed:?}"
    );
    assert_eq!(meter.open_head(), None);
    // A body is not.
    let body = frame(kind::DATA, 0, 3, b"a long body, of which some is sent");
    meter.receive(&body[..20], now);
    assert_eq!(meter.open_head(), None);
}
