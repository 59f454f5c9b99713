//! One connection that sends more of something than anybody needs.

use super::*;
use crate::h2spec::{CALM, CLOSED, PROTOCOL, get, head, none, post};
use crate::harness::{END, Frames, block};

/// The stream of a turn.
fn stream(turn: u32) -> u32 {
    2 * turn + 1
}

fn floods() -> Vec<(Flood, &'static [u32])> {
    [resets(), made_resets(), heads(), controls(), bodies()]
        .into_iter()
        .flatten()
        .collect()
}

fn resets() -> Vec<(Flood, &'static [u32])> {
    let cancel = |turn| get(stream(turn)).frame(3, 0, stream(turn), &[0, 0, 0, 8]);
    let late = |turn: u32| {
        // The stream before has been looked at.
        let before = stream(turn.saturating_sub(1));
        get(stream(turn)).frame(3, 0, before, &[0, 0, 0, 8])
    };
    let bodied = |turn| post(stream(turn)).frame(3, 0, stream(turn), &[0, 0, 0, 0]);
    vec![
        (Flood::http2("rapid reset", cancel), &[CALM]),
        (
            Flood::http2("rapid reset of the stream before", late),
            &[CALM],
        ),
        (Flood::http2("rapid reset with NO_ERROR", bodied), &[CALM]),
        (
            Flood::http2("resets of a stream that is closed", |_| {
                none().frame(3, 0, 1, &[0; 4])
            })
            .opening(get(1)),
            &[CALM],
        ),
    ]
}

/// CVE-2025-8671: the client breaks its streams, and the server resets them.
fn made_resets() -> Vec<(Flood, &'static [u32])> {
    let window = |turn| post(stream(turn)).frame(8, 0, stream(turn), &[0x7f, 0xff, 0xff, 0xff]);
    let zero = |turn| post(stream(turn)).frame(8, 0, stream(turn), &[0; 4]);
    let ended = |turn| get(stream(turn)).frame(0, END, stream(turn), b"x");
    let heads = |turn| post(stream(turn)).frame(1, 0x4, stream(turn), &head("POST"));
    let itself = |turn| {
        let on = stream(turn);
        let depends = [&on.to_be_bytes()[..], &[1]].concat();
        post(on).frame(2, 0, on, &depends)
    };
    let longer = |turn| {
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "a"),
            (":path", "/"),
            ("content-length", "1"),
        ];
        none()
            .frame(1, 0x4, stream(turn), &block(&fields))
            .frame(0, END, stream(turn), b"more")
    };
    vec![
        (Flood::http2("made reset: window overflow", window), &[CALM]),
        (
            Flood::http2("made reset: window update by 0", zero),
            &[PROTOCOL],
        ),
        (
            Flood::http2("made reset: DATA after the end", ended),
            &[CLOSED],
        ),
        (
            Flood::http2("made reset: a second head", heads),
            &[CALM, PROTOCOL],
        ),
        (
            Flood::http2("made reset: depends on itself", itself),
            &[CALM],
        ),
        (
            Flood::http2("made reset: longer than its length", longer),
            &[CALM],
        ),
        (
            Flood::http2("made reset: more streams than allowed", |turn| {
                post(stream(turn))
            }),
            &[CALM],
        ),
    ]
}

fn heads() -> Vec<(Flood, &'static [u32])> {
    let opened = || none().frame(1, END, 1, &head("GET"));
    let field = || block(&[("x", "v")]);
    let bomb = || {
        let large = "v".repeat(3000);
        let mut block = block(&[("x-large", large.as_str())]);
        // The same, with a place in the table.
        block[0] = 0x40;
        block
    };
    vec![
        (
            Flood::http2("heads without a path", |turn| {
                none().frame(1, 0x5, stream(turn), &[0x82, 0x86])
            }),
            &[CALM],
        ),
        (
            Flood::http2("CONTINUATION of a field", move |_| {
                none().frame(9, 0, 1, &field())
            })
            .opening(opened()),
            &[CALM],
        ),
        (
            Flood::http2("CONTINUATION of 16 KiB", move |_| {
                none().frame(9, 0, 1, &field().repeat(3276))
            })
            .opening(opened()),
            &[CALM],
        ),
        (
            Flood::http2("empty CONTINUATION", |_| none().frame(9, 0, 1, b"")).opening(opened()),
            &[CALM],
        ),
        (
            Flood::http2("a field without an end", |_| {
                none().frame(9, 0, 1, &[b'v'; 8192])
            })
            .opening(none().frame(
                1,
                END,
                1,
                &[0x00, 0x01, b'x', 0x7f, 0xff, 0xff, 0xff, 0x03],
            )),
            &[CALM],
        ),
        (
            Flood::http2("empty heads", |turn| {
                none()
                    .frame(1, END, stream(turn), b"")
                    .frame(9, 0x4, stream(turn), &head("GET"))
            }),
            &[CALM],
        ),
        (
            Flood::http2("header bomb", move |turn| match turn {
                0 => none().frame(1, 0x5, 1, &[head("GET"), bomb()].concat()),
                turn => none().frame(
                    1,
                    0x5,
                    stream(turn),
                    &[head("GET"), vec![0xbe; 4000]].concat(),
                ),
            }),
            &[CALM],
        ),
    ]
}

fn controls() -> Vec<(Flood, &'static [u32])> {
    let always = |name, frames: Frames| Flood::http2(name, move |_| frames.clone());
    vec![
        (always("SETTINGS", none().frame(4, 0, 0, b"")), &[CALM]),
        (
            Flood::http2("SETTINGS that move windows", |turn| {
                let size = 1000 + turn % 2;
                let payload = [&[0, 4][..], &size.to_be_bytes()].concat();
                none().frame(4, 0, 0, &payload)
            })
            .opening((0..100).fold(none(), |all, n| Frames([all.0, post(2 * n + 1).0].concat()))),
            &[CALM],
        ),
        (
            always("SETTINGS with ACK", none().frame(4, 1, 0, b"")),
            &[CALM, PROTOCOL],
        ),
        (always("PING", none().frame(6, 0, 0, &[7; 8])), &[CALM]),
        (
            always("PING with ACK", none().frame(6, 1, 0, &[7; 8])),
            &[CALM],
        ),
        (
            always("PRIORITY", none().frame(2, 0, 1, &[0, 0, 0, 3, 1])),
            &[CALM],
        ),
        (
            always("WINDOW_UPDATE", none().frame(8, 0, 0, &[0, 0, 1, 0])),
            &[CALM],
        ),
        (
            always("unknown frames", none().frame(0xbe, 0, 0, b"x")),
            &[CALM],
        ),
        (
            always("empty unknown frames", none().frame(0xbe, 0, 1, b"")),
            &[CALM],
        ),
        (
            always("GOAWAY", none().frame(7, 0, 0, &[0; 8])).opening(post(1)),
            &[CALM],
        ),
        (
            always("PUSH_PROMISE", none().frame(5, 4, 1, &[0, 0, 0, 2, 0x82])).opening(post(1)),
            &[PROTOCOL],
        ),
    ]
}

fn bodies() -> Vec<(Flood, &'static [u32])> {
    let empty = |_| none().frame(0, 0, 1, b"");
    let padded = |_| none().frame(0, 0x8, 1, &[&[200][..], &[0; 200]].concat());
    vec![
        (Flood::http2("empty DATA", empty).opening(post(1)), &[CALM]),
        (
            Flood::http2("DATA of padding", padded).opening(post(1)),
            &[CALM],
        ),
        (
            Flood::http2("window by the octet", |_| {
                none().frame(8, 0, 1, &[0, 0, 0, 1])
            })
            .opening(Frames(
                [none().frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]).0, get(1).0].concat(),
            )),
            &[CALM],
        ),
    ]
}

#[test]
fn every_flood_of_frames_is_cut_off() {
    let site = Site::open();
    let floods = floods();
    assert!(floods.len() >= 30, "{} kinds", floods.len());
    let calm = floods.iter().filter(|(_, codes)| codes == &[CALM]).count() as u64;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((flood, codes)) = floods.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ended = site.flood(flood);
                    let cut = codes.iter().any(|code| ended == Ended::Goaway(*code));
                    assert!(cut, "{}: {ended:?}", flood.name);
                }
            });
        }
    });
    let counted = site.metric("lockgate_protocol_errors_total{kind=\"flood\"}");
    assert!(counted >= calm, "{counted} of {calm} are counted");
    site.honest().times(5).all_are(200);
}

/// Answers that a client never reads are not made without end.
#[test]
fn a_flood_that_does_not_read_its_responses_is_blocked_or_cut_off() {
    let site = Site::open();
    let always = |name, frames: Frames| Flood::http2(name, move |_| frames.clone()).deaf();
    for flood in [
        always("PING", none().frame(6, 0, 0, &[7; 8])),
        always("SETTINGS", none().frame(4, 0, 0, b"")),
        Flood::http2("requests", |turn| get(stream(turn))).deaf(),
        Flood::http2("broken requests", |turn| {
            none().frame(1, 0x5, stream(turn), &[0x82])
        })
        .deaf(),
        Flood::http2("refused requests", |turn| post(stream(turn))).deaf(),
    ] {
        let ended = site.flood(&flood);
        assert_ne!(ended, Ended::Endured, "{}", flood.name);
    }
}
