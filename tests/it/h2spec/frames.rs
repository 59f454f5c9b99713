//! Sections 4 to 6: the frames.

use super::Want::{Alive, Goaway, Reset, Status};
use super::*;

const OK: Want = Status(1, 200);

pub fn cases() -> Vec<Case> {
    [
        format(),
        sizes(),
        streams(),
        data(),
        headers(),
        priority_and_reset(),
        settings(),
        ping_and_goaway(),
        windows(),
        continuation(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn format() -> Vec<Case> {
    let mut cases = vec![
        case("4.1 the reserved bit is ignored", reserved(), OK),
        case(
            "4.1 flags of PING that are not defined are ignored",
            none().frame(6, 0x16, 0, b"01234567"),
            Alive,
        ),
        case(
            "4.1 flags of SETTINGS that are not defined are ignored",
            none().frame(4, 0xfe, 0, b""),
            Alive,
        ),
        case(
            "4.1 flags of HEADERS that are not defined are ignored",
            none().frame(1, 0x5 | 0xc2 | 0x10, 1, &head("GET")),
            OK,
        ),
        case(
            "4.1 flags of DATA that are not defined are ignored",
            post(1).frame(0, 0xf7, 1, b"x"),
            OK,
        ),
        case(
            "4.1 flags of WINDOW_UPDATE that are not defined are ignored",
            none().frame(8, 0xff, 0, &[0, 0, 0, 1]),
            Alive,
        ),
    ];
    for kind in [0xa, 0x10, 0x2a, 0xff] {
        for stream in [0, 1, 2] {
            cases.push(case(
                format!("4.1, 5.5 type {kind:#x} on stream {stream} is ignored"),
                none().frame(kind, 0xff, stream, &[7; 100]),
                Alive,
            ));
        }
        cases.push(case(
            format!("5.5 type {kind:#x} within a request is ignored"),
            post(1).frame(kind, 0, 1, b"").frame(0, 1, 1, b"x"),
            OK,
        ));
    }
    cases
}

/// A request whose stream has the reserved bit, and a priority that the flags name.
fn reserved() -> Frames {
    none().frame(1, 0x5, 0x8000_0001, &head("GET"))
}

fn sizes() -> Vec<Case> {
    let long = vec![0; 16_385];
    let mut cases = vec![
        case(
            "4.2 DATA of 2^14 octets is taken",
            post(1).frame(0, 1, 1, &long[1..]),
            OK,
        ),
        case(
            "4.2 DATA over the largest size",
            post(1).frame(0, 1, 1, &long),
            Reset(1, &[SIZE]),
        ),
        case(
            "4.2 HEADERS over the largest size",
            none().frame(1, 5, 1, &long),
            Goaway(&[SIZE]),
        ),
        case(
            "4.2 an unknown type over the largest size",
            none().frame(0xfa, 0, 0, &long),
            Goaway(&[SIZE]),
        ),
        case(
            "4.2 CONTINUATION over the largest size",
            none().frame(1, 1, 1, &head("GET")).frame(9, 4, 1, &long),
            Goaway(&[SIZE]),
        ),
    ];
    let wrong: [(&str, u8, u32, &[usize]); 5] = [
        ("6.3 PRIORITY", 2, 1, &[0, 4, 6]),
        ("6.4 RST_STREAM", 3, 1, &[0, 3, 5]),
        ("6.7 PING", 6, 0, &[0, 7, 9]),
        ("6.8 GOAWAY", 7, 0, &[0, 7]),
        ("6.9 WINDOW_UPDATE", 8, 0, &[0, 3, 5]),
    ];
    for (name, kind, stream, lengths) in wrong {
        for length in lengths {
            cases.push(case(
                format!("{name} of {length} octets"),
                post(1).frame(kind, 0, stream, &vec![0; *length]),
                match kind {
                    2 => Reset(1, &[SIZE]),
                    _ => Goaway(&[SIZE]),
                },
            ));
        }
    }
    for length in [1, 3, 5, 7, 16_383] {
        cases.push(case(
            format!("6.5 SETTINGS of {length} octets"),
            none().frame(4, 0, 0, &vec![0; length]),
            Goaway(&[SIZE]),
        ));
    }
    cases.push(case(
        "6.5 SETTINGS with ACK and a payload",
        none().frame(4, 1, 0, &[0, 3, 0, 0, 0, 1]),
        Goaway(&[SIZE]),
    ));
    cases
}

/// Frames on streams that their type does not allow.
fn streams() -> Vec<Case> {
    let on_zero: [(&str, u8, &[u8]); 5] = [
        ("6.1 DATA", 0, b"x"),
        ("6.2 HEADERS", 1, &[0x82]),
        ("6.3 PRIORITY", 2, &[0, 0, 0, 0, 0]),
        ("6.4 RST_STREAM", 3, &[0, 0, 0, 8]),
        ("6.10 CONTINUATION", 9, &[0x82]),
    ];
    let elsewhere: [(&str, u8, &[u8]); 3] = [
        ("6.5 SETTINGS", 4, b""),
        ("6.7 PING", 6, b"01234567"),
        ("6.8 GOAWAY", 7, &[0; 8]),
    ];
    let zero = on_zero.map(|(name, kind, payload)| {
        let frames = none().frame(kind, 0x4, 0, payload);
        case(format!("{name} on stream 0"), frames, Goaway(&[PROTOCOL]))
    });
    let other = elsewhere.map(|(name, kind, payload)| {
        let frames = post(1).frame(kind, 0, 1, payload);
        case(format!("{name} on stream 1"), frames, Goaway(&[PROTOCOL]))
    });
    zero.into_iter().chain(other).collect()
}

fn data() -> Vec<Case> {
    let padded = |payload: &[u8]| post(1).frame(0, 0x8 | 0x1, 1, payload);
    vec![
        case("6.1 DATA with padding", padded(b"\x03abc\0\0\0"), OK),
        case("6.1 DATA of padding only", padded(b"\x03\0\0\0"), OK),
        case("6.1 DATA with a pad length of 0", padded(b"\0abc"), OK),
        case(
            "6.1 padding as long as the payload",
            padded(b"\x04abc"),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.1 padding longer than the payload",
            padded(b"\xffabc"),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.1 PADDED without a pad length",
            padded(b""),
            Goaway(&[PROTOCOL, SIZE]),
        ),
        case(
            "6.1 an empty DATA frame ends",
            post(1).frame(0, 1, 1, b""),
            OK,
        ),
        case(
            "6.1 empty DATA frames before the end",
            post(1)
                .frame(0, 0, 1, b"")
                .frame(0, 0, 1, b"")
                .frame(0, 1, 1, b"x"),
            OK,
        ),
    ]
}

fn headers() -> Vec<Case> {
    let with = |flags: u8, before: &[u8], after: &[u8]| {
        let payload = [before, &head("GET"), after].concat();
        none().frame(1, 0x5 | flags, 1, &payload)
    };
    vec![
        case("6.2 HEADERS with padding", with(0x8, &[2], &[0, 0]), OK),
        case(
            "6.2 HEADERS with a priority",
            with(0x20, &[0, 0, 0, 0, 15], b""),
            OK,
        ),
        case(
            "6.2 HEADERS with both",
            with(0x28, &[3, 0x80, 0, 0, 0, 15], &[0, 0, 0]),
            OK,
        ),
        case(
            "6.2 padding longer than the block",
            with(0x8, &[255], b""),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.2 a priority that is cut short",
            none().frame(1, 0x25, 1, &[0, 0, 0]),
            Goaway(&[PROTOCOL, SIZE]),
        ),
        case(
            "6.6, 8.4 PUSH_PROMISE of a client",
            post(1).frame(5, 0x4, 1, &[&[0, 0, 0, 2], &head("GET")[..]].concat()),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.6 PUSH_PROMISE on stream 0",
            none().frame(5, 0x4, 0, &[0, 0, 0, 2, 0x82]),
            Goaway(&[PROTOCOL]),
        ),
    ]
}

fn priority_and_reset() -> Vec<Case> {
    let priority = |stream: u32, depends: u8| none().frame(2, 0, stream, &[0, 0, 0, depends, 1]);
    let cancel = [0, 0, 0, 8];
    vec![
        case("5.3, 6.3 PRIORITY of an idle stream", priority(1, 0), Alive),
        case("6.3 PRIORITY of a server's stream", priority(2, 0), Alive),
        case(
            "6.3 PRIORITY does not open its stream",
            Frames([priority(99, 0).0, get(1).0].concat()),
            OK,
        ),
        case(
            "5.3 PRIORITY on an idle stream that is the highest",
            priority(0x7fff_ffff, 1),
            Alive,
        ),
        case("6.4 RST_STREAM", post(1).frame(3, 0, 1, &cancel), Alive),
        case(
            "6.4, 7 RST_STREAM with an unknown code",
            post(1).frame(3, 0, 1, &[0xff; 4]),
            Alive,
        ),
        case(
            "6.4 RST_STREAM leaves the other streams alone",
            Frames([post(1).frame(3, 0, 1, &cancel).0, get(3).0].concat()),
            Status(3, 200),
        ),
        case(
            "6.4 RST_STREAM of an idle stream",
            none().frame(3, 0, 1, &cancel),
            Goaway(&[PROTOCOL]),
        ),
    ]
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

fn settings() -> Vec<Case> {
    let sent = |id, value| none().frame(4, 0, 0, &setting(id, value));
    let good = [
        ("6.5.2 HEADER_TABLE_SIZE 0", 1, 0),
        ("6.5.2 HEADER_TABLE_SIZE 2^32 - 1", 1, u32::MAX),
        ("6.5.2 ENABLE_PUSH 0", 2, 0),
        ("6.5.2 ENABLE_PUSH 1", 2, 1),
        ("6.5.2 MAX_CONCURRENT_STREAMS 0", 3, 0),
        ("6.5.2 INITIAL_WINDOW_SIZE 2^31 - 1", 4, 0x7fff_ffff),
        ("6.5.2 MAX_FRAME_SIZE 2^14", 5, 16_384),
        ("6.5.2 MAX_FRAME_SIZE 2^24 - 1", 5, 16_777_215),
        ("6.5.2 MAX_HEADER_LIST_SIZE 2^32 - 1", 6, u32::MAX),
        ("6.5.2 an unknown setting is ignored", 0xf000, 7),
        ("6.5.2 setting 0 is ignored", 0, 7),
    ];
    let bad = [
        ("6.5.2 ENABLE_PUSH 2", 2, 2, PROTOCOL),
        (
            "6.5.2 INITIAL_WINDOW_SIZE 2^31",
            4,
            0x8000_0000,
            FLOW_CONTROL,
        ),
        (
            "6.5.2 INITIAL_WINDOW_SIZE 2^32 - 1",
            4,
            u32::MAX,
            FLOW_CONTROL,
        ),
        ("6.5.2 MAX_FRAME_SIZE 2^14 - 1", 5, 16_383, PROTOCOL),
        ("6.5.2 MAX_FRAME_SIZE 0", 5, 0, PROTOCOL),
        ("6.5.2 MAX_FRAME_SIZE 2^24", 5, 16_777_216, PROTOCOL),
    ];
    let good = good.map(|(name, id, value)| {
        let frames = Frames([sent(id, value).0, get(1).0].concat());
        case(name, frames, OK)
    });
    let bad = bad.map(|(name, id, value, code)| {
        let codes: &'static [u32] = if code == PROTOCOL {
            &[PROTOCOL]
        } else {
            &[FLOW_CONTROL]
        };
        case(name, sent(id, value), Goaway(codes))
    });
    let last = [setting(4, 0), setting(4, 100)].concat();
    let second = [setting(3, 5), setting(4, u32::MAX)].concat();
    let more = [
        case(
            "6.5 SETTINGS without a setting",
            none().frame(4, 0, 0, b""),
            Alive,
        ),
        case(
            "6.5.3 the last value of a setting counts",
            Frames([none().frame(4, 0, 0, &last).0, get(1).0].concat()),
            OK,
        ),
        case(
            "6.5.2 a bad value behind a good one",
            none().frame(4, 0, 0, &second),
            Goaway(&[FLOW_CONTROL]),
        ),
    ];
    good.into_iter().chain(bad).chain(more).collect()
}

fn ping_and_goaway() -> Vec<Case> {
    let goaway = |code: u8| none().frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, code]);
    vec![
        case("6.7 PING is answered", none(), Alive),
        case(
            "6.7 an answer to no PING is ignored",
            none().frame(6, 1, 0, b"whatever"),
            Alive,
        ),
        case(
            "6.7 PING within a request",
            post(1).frame(6, 0, 0, b"01234567").frame(0, 1, 1, b"x"),
            OK,
        ),
        case(
            "6.8 the streams before GOAWAY are answered",
            Frames([get(1).0, goaway(0).0].concat()),
            OK,
        ),
        case(
            "6.8 GOAWAY and no stream: the connection ends",
            goaway(0),
            Goaway(&[NO_ERROR]),
        ),
        case(
            "6.8 GOAWAY with an unknown code",
            goaway(0xfe),
            Goaway(&[NO_ERROR]),
        ),
    ]
}

fn windows() -> Vec<Case> {
    let update = |stream: u32, by: u32| none().frame(8, 0, stream, &by.to_be_bytes());
    let join = |all: &[Frames]| Frames(all.iter().flat_map(|f| f.0.clone()).collect());
    let window = |size: u32| none().frame(4, 0, 0, &setting(4, size));
    vec![
        case(
            "6.9 WINDOW_UPDATE by 0 on stream 0",
            update(0, 0),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.9 WINDOW_UPDATE by 0 on a stream",
            join(&[post(1), update(1, 0)]),
            Reset(1, &[PROTOCOL]),
        ),
        case("6.9 WINDOW_UPDATE on stream 0", update(0, 1), Alive),
        case(
            "6.9 WINDOW_UPDATE on a stream",
            join(&[post(1), update(1, 1)]),
            Alive,
        ),
        case(
            "6.9 the reserved bit of WINDOW_UPDATE is ignored",
            update(0, 0x8000_0001),
            Alive,
        ),
        case(
            "6.9.1 the connection's window over 2^31 - 1",
            join(&[update(0, 0x7fff_ffff), update(0, 0x7fff_ffff)]),
            Goaway(&[FLOW_CONTROL]),
        ),
        case(
            "6.9.1 a stream's window over 2^31 - 1",
            join(&[post(1), update(1, 0x7fff_ffff), update(1, 0x7fff_ffff)]),
            Reset(1, &[FLOW_CONTROL]),
        ),
        case(
            "6.9.2 a setting moves a stream's window over 2^31 - 1",
            join(&[
                window(100),
                post(1),
                update(1, 0x7fff_ff00),
                window(0x7fff_ffff),
            ]),
            Goaway(&[FLOW_CONTROL]),
        ),
        case(
            "6.9.2 a window that a setting made negative",
            join(&[window(10), post(1), window(0), update(1, 1)]),
            Alive,
        ),
        case(
            "6.9 an answer waits for its window",
            join(&[window(0), get(1), update(1, 1), update(1, 1000)]),
            OK,
        ),
        case(
            "6.9.1 more DATA than a stream's window",
            flooded(20),
            Reset(1, &[FLOW_CONTROL]),
        ),
        case(
            "6.9.1 more DATA than the connection's window",
            flooded(70),
            Goaway(&[FLOW_CONTROL]),
        ),
    ]
}

/// A body of so many frames of 16 KiB, to a request that nobody reads the body of before it ends.
fn flooded(count: usize) -> Frames {
    let mut frames = none();
    for stream in (1..=count.div_ceil(20)).map(|n| n as u32 * 2 - 1) {
        let length = ("content-length", "9999999");
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "a"),
            (":path", "/"),
            length,
        ];
        frames = frames.frame(1, 4, stream, &block(&fields));
    }
    for n in 0..count {
        let stream = u32::try_from(n % count.div_ceil(20)).unwrap() * 2 + 1;
        frames = frames.frame(0, 0, stream, &[b'x'; 16_384]);
    }
    frames
}

fn continuation() -> Vec<Case> {
    let (first, rest) = (head("GET")[..9].to_vec(), head("GET")[9..].to_vec());
    let opened = none().frame(1, 0x1, 1, &first);
    let whole = head("GET");
    let parts = whole
        .chunks(whole.len().div_ceil(5))
        .skip(1)
        .collect::<Vec<_>>();
    let mut many = none().frame(1, 0x1, 1, &whole[..whole.len().div_ceil(5)]);
    for (n, part) in parts.iter().enumerate() {
        let flags = if n + 1 == parts.len() { 0x4 } else { 0 };
        many = many.frame(9, flags, 1, part);
    }
    let between = |kind: u8, stream: u32, payload: &[u8]| {
        opened
            .clone()
            .frame(kind, 0x4, stream, payload)
            .frame(9, 0x4, 1, &rest)
    };
    vec![
        case(
            "6.10 CONTINUATION",
            opened.clone().frame(9, 0x4, 1, &rest),
            OK,
        ),
        case("6.10 several CONTINUATION frames", many, OK),
        case(
            "6.10 an empty CONTINUATION frame",
            opened.clone().frame(9, 0, 1, b"").frame(9, 0x4, 1, &rest),
            OK,
        ),
        case(
            "6.10 HEADERS without a byte before CONTINUATION",
            none().frame(1, 0x1, 1, b"").frame(9, 0x4, 1, &head("GET")),
            OK,
        ),
        case(
            "6.10 DATA within a head",
            between(0, 1, b"x"),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 HEADERS within a head",
            between(1, 1, &rest),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.2 HEADERS of another stream",
            between(1, 3, &whole),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 PRIORITY within a head",
            between(2, 1, &[0; 5]),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 RST_STREAM within a head",
            between(3, 1, &[0; 4]),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 SETTINGS within a head",
            between(4, 0, b""),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 PING within a head",
            between(6, 0, &[0; 8]),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 WINDOW_UPDATE within a head",
            between(8, 0, &[0, 0, 0, 1]),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "5.5 an unknown type within a head",
            between(0xfa, 0, b"x"),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 CONTINUATION of another stream",
            opened.clone().frame(9, 0x4, 3, &rest),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 CONTINUATION behind a whole head",
            post(1).frame(9, 0x4, 1, &head("GET")),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 CONTINUATION behind DATA",
            post(1).frame(0, 0, 1, b"x").frame(9, 0x4, 1, &head("GET")),
            Goaway(&[PROTOCOL]),
        ),
        case(
            "6.10 CONTINUATION behind the last CONTINUATION",
            opened.frame(9, 0x4, 1, &rest).frame(9, 0x4, 1, b""),
            Goaway(&[PROTOCOL]),
        ),
    ]
}
