//! Section 5.1: what a stream takes in each of its states.

use super::Want::{Alive, Goaway, Reset, Status};
use super::*;
use crate::harness::END;

const CANCEL: [u8; 4] = [0, 0, 0, 8];

pub fn cases() -> Vec<Case> {
    [idle(), half_closed(), closed(), reset(), identifiers()]
        .into_iter()
        .flatten()
        .collect()
}

/// Frames of each type on one stream, by name.
fn each(stream: u32) -> [(&'static str, Frames); 6] {
    [
        ("DATA", none().frame(0, END, stream, b"x")),
        ("HEADERS", none().frame(1, 0x5, stream, &head("GET"))),
        ("PRIORITY", none().frame(2, 0, stream, &[0; 5])),
        ("RST_STREAM", none().frame(3, 0, stream, &CANCEL)),
        ("WINDOW_UPDATE", none().frame(8, 0, stream, &[0, 0, 0, 1])),
        ("CONTINUATION", none().frame(9, 0x4, stream, &head("GET"))),
    ]
}

/// Cases that send a frame of each type behind others.
fn behind(state: &str, before: &Frames, want: impl Fn(&str) -> Want) -> Vec<Case> {
    let cases = each(1).map(|(name, frame)| {
        let frames = Frames([before.0.clone(), frame.0].concat());
        case(format!("5.1 {state}: {name}"), frames, want(name))
    });
    cases.into()
}

fn idle() -> Vec<Case> {
    behind("idle", &none(), |name| match name {
        "HEADERS" => Status(1, 200),
        "PRIORITY" => Alive,
        _ => Goaway(&[PROTOCOL]),
    })
}

fn half_closed() -> Vec<Case> {
    behind("half-closed (remote)", &get(1), |name| match name {
        "DATA" | "HEADERS" => Reset(1, &[CLOSED]),
        "CONTINUATION" => Goaway(&[PROTOCOL]),
        _ => Alive,
    })
}

fn closed() -> Vec<Case> {
    let cases = each(1).map(|(name, frame)| {
        let want = match name {
            "DATA" => Reset(1, &[CLOSED]),
            // A stream identifier that was used cannot be used again (5.1.1).
            "HEADERS" => Goaway(&[CLOSED, PROTOCOL]),
            "CONTINUATION" => Goaway(&[PROTOCOL]),
            _ => Alive,
        };
        after(format!("5.1 closed: {name}"), get(1), frame, want)
    });
    cases.into()
}

fn reset() -> Vec<Case> {
    let before = post(1).frame(3, 0, 1, &CANCEL);
    behind("closed by RST_STREAM", &before, |name| match name {
        "DATA" | "HEADERS" => Reset(1, &[CLOSED]),
        "CONTINUATION" => Goaway(&[PROTOCOL]),
        _ => Alive,
    })
}

fn identifiers() -> Vec<Case> {
    let join = |a: Frames, b: Frames| Frames([a.0, b.0].concat());
    vec![
        case(
            "5.1.1 a stream with an even number",
            get(2),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "5.1.1 a stream below one that was opened",
            join(get(5), get(3)),
            Goaway(&[PROTOCOL, CLOSED]),
        ),
        case(
            "5.1.1 DATA on a stream that was passed over",
            join(get(5), none().frame(0, END, 3, b"x")),
            Reset(3, &[CLOSED, PROTOCOL]),
        ),
        case(
            "5.1.1 streams may be passed over",
            get(101),
            Status(101, 200),
        ),
        case(
            "5.1.1 the highest stream",
            get(0x7fff_ffff),
            Status(0x7fff_ffff, 200),
        ),
        case(
            "5.1.1 an even stream between odd ones",
            join(join(get(1), get(4)), get(5)),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "5.1.2 more streams than are allowed",
            (0..200).fold(none(), |frames, n| join(frames, post(2 * n + 1))),
            Reset(2 * 128 + 1, &[REFUSED, PROTOCOL]),
        ),
        case(
            "5.1.2 a refused stream leaves the others alone",
            (0..129)
                .fold(none(), |frames, n| join(frames, post(2 * n + 1)))
                .frame(0, END, 1, b"x"),
            Status(1, 200),
        ),
        case(
            "5.1.2 streams that ended make room",
            (0..90).fold(none(), |frames, n| {
                let stream = 2 * n + 1;
                join(frames, post(stream).frame(3, 0, stream, &[0; 4]))
            }),
            Goaway(&[CALM]),
        ),
    ]
}
