//! Answers that end before their client has a window for them: they are waited for all the same,
//! stream by stream.

use super::{SHORT, timeouts};
use crate::harness::{Frames, Origin, Running, Wire, block, next_frame};

/// RST_STREAM.
const RESET: u8 = 3;
const PING: u8 = 6;

/// An origin whose answers are as long as their path says, known beforehand or not.
fn origin() -> Origin {
    Origin::answering(|seen| {
        let path = seen.line.split(' ').nth(1).unwrap();
        let (kind, length) = path[1..].split_once('/').unwrap();
        let length: usize = length.parse().unwrap();
        let body = "x".repeat(length);
        let chunks = format!("transfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n");
        let rest = match kind {
            "known" => format!("content-length: {length}\r\n\r\n{body}"),
            "chunked" => format!("{chunks}\r\n"),
            "trailers" => format!("trailer: x-last\r\n{chunks}x-last: 1\r\n\r\n"),
            other => panic!("{other}"),
        };
        format!("HTTP/1.1 200 OK\r\n{rest}").into_bytes()
    })
}

fn get(stream: u32, path: &str) -> Frames {
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "example.com"),
        ("te", "trailers"),
    ];
    Frames::default().frame(1, 0x5, stream, &block(&fields))
}

/// The bytes of DATA that come on a stream until its end, and whether it was reset.
fn taken(wire: &mut Wire, stream: u32) -> (usize, bool) {
    let mut bytes = 0;
    loop {
        let (kind, flags, on, payload) = next_frame(wire).expect("it is still open");
        if on != stream {
            continue;
        }
        bytes += if kind == 0 { payload.len() } else { 0 };
        if kind == RESET || (kind <= 1 && flags & 1 != 0) {
            return (bytes, kind == RESET);
        }
    }
}

/// The connection lives.
fn alive(wire: &mut Wire) {
    wire.send(&Frames::default().frame(PING, 0, 0, b"no error").0);
    let mut frames = std::iter::from_fn(|| next_frame(wire));
    assert!(frames.any(|(kind, ..)| kind == PING));
}

#[test]
fn a_response_with_a_window_of_one_byte_is_reset() {
    let gateway = Running::with_origin(origin(), SHORT);
    for (number, path) in ["/known/3000", "/chunked/3000", "/trailers/3000", "/known/2"]
        .iter()
        .enumerate()
    {
        let mut wire = gateway.client().connect();
        let narrow = Frames::default().frame(4, 0, 0, &[0, 4, 0, 0, 0, 1]);
        Frames([narrow.0, get(1, path).0].concat()).open(&mut wire);
        assert_eq!(taken(&mut wire, 1), (1, true), "{path}");
        assert_eq!(timeouts(&gateway), (number + 1).to_string(), "{path}");
        alive(&mut wire);
    }
}

/// The last byte of the connection's window is for the second of two.
#[test]
fn a_response_without_a_connection_window_is_reset() {
    let gateway = Running::with_origin(origin(), SHORT);
    let wide = Frames::default().frame(4, 0, 0, &[0, 4, 0, 1, 0, 0]);
    let mut wire = gateway.client().connect();
    Frames([wide.0, get(1, "/known/65534").0].concat()).open(&mut wire);
    assert_eq!(taken(&mut wire, 1), (65534, false));
    wire.send(&get(3, "/known/3000").0);
    assert_eq!(taken(&mut wire, 3), (1, true));
    alive(&mut wire);
}

/// Together they are longer than the connection's window, and each of them is shorter.
#[test]
fn small_responses_beyond_the_connection_window_are_reset() {
    let gateway = Running::with_origin(origin(), SHORT);
    let all = (0..100).flat_map(|n| get(2 * n + 1, "/known/1000").0);
    let mut wire = gateway.client().connect();
    Frames(all.collect()).open(&mut wire);
    let (mut bytes, mut ended, mut reset) = (0, 0, 0);
    while ended + reset < 100 {
        let (kind, flags, stream, payload) = next_frame(&mut wire).expect("it is still open");
        bytes += if kind == 0 { payload.len() } else { 0 };
        ended += usize::from(kind == 0 && flags & 1 != 0);
        reset += usize::from(kind == RESET && stream != 0);
    }
    assert_eq!(bytes, 65535);
    assert!(ended <= 65 && reset >= 35, "{ended} and {reset}");
    alive(&mut wire);
}

/// Settings beyond those that anybody sends.
#[test]
fn a_small_window_is_detected_behind_unknown_settings() {
    let gateway = Running::with_origin(origin(), SHORT);
    let settings = [[0xbe, 0xef, 0, 0, 0, 0]; 20].concat();
    let settings = [&settings[..], &[0, 4, 0, 0, 0, 1]].concat();
    let mut wire = gateway.client().connect();
    let narrow = Frames::default().frame(4, 0, 0, &settings);
    Frames([narrow.0, get(1, "/known/3000").0].concat()).open(&mut wire);
    assert_eq!(taken(&mut wire, 1), (1, true));
}

#[test]
fn a_response_that_exactly_fills_its_window_is_complete() {
    let gateway = Running::with_origin(origin(), SHORT);
    for path in ["/known/65535", "/chunked/65535", "/trailers/65535"] {
        let mut wire = gateway.client().connect();
        get(1, path).open(&mut wire);
        assert_eq!(taken(&mut wire, 1), (65535, false), "{path}");
    }
}

/// A window that grows in time, however late.
#[test]
fn a_response_that_is_read_late_is_complete() {
    let gateway = Running::with_origin(origin(), "");
    for path in ["/known/3000", "/chunked/3000", "/trailers/3000"] {
        let mut wire = gateway.client().connect();
        let narrow = Frames::default().frame(4, 0, 0, &[0, 4, 0, 0, 0, 1]);
        Frames([narrow.0, get(1, path).0].concat()).open(&mut wire);
        for more in [1, 1000, 1997, 1] {
            std::thread::sleep(std::time::Duration::from_millis(100));
            let more = u32::to_be_bytes(more);
            wire.send(&Frames::default().frame(8, 0, 1, &more).0);
        }
        assert_eq!(taken(&mut wire, 1), (3000, false), "{path}");
    }
}

/// All of it takes longer than the time between two writes may be, and each write less.
#[test]
fn a_response_that_is_read_piecewise_is_complete() {
    let limits = "[limits]\nresponse_write_timeout = \"3s\"\n";
    let gateway = Running::with_origin(origin(), limits);
    for (window, length) in [(0u32, 12_000), (65_535, 77_000)] {
        let mut wire = gateway.client().connect();
        let first = [[0, 4].as_slice(), &window.to_be_bytes()].concat();
        let settings = Frames::default().frame(4, 0, 0, &first);
        let wide = Frames::default().frame(8, 0, 0, &u32::to_be_bytes(1 << 20));
        let path = format!("/known/{length}");
        Frames([settings.0, wide.0, get(1, &path).0].concat()).open(&mut wire);
        for _ in 0..28 {
            std::thread::sleep(std::time::Duration::from_millis(150));
            let more = Frames::default().frame(8, 0, 1, &u32::to_be_bytes(450));
            wire.send(&more.0);
        }
        assert_eq!(taken(&mut wire, 1), (length, false), "{window}");
    }
}
