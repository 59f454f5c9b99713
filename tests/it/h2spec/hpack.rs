//! RFC 7541: the compression of heads. RFC 9113, 4.3 wants COMPRESSION_ERROR for what cannot be
//! read; h2 says PROTOCOL_ERROR for some of it, and ends the connection as well.

use super::Want::{Goaway, Reset, Status};
use super::*;

const OK: Want = Status(1, 200);
const BROKEN: Want = Goaway(&[COMPRESSION, PROTOCOL]);

/// GET, http and / out of the static table, and an authority that takes a place in the dynamic one.
const INDEXED: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'a'];

pub fn cases() -> Vec<Case> {
    let with = |more: &[u8]| none().frame(1, 0x5, 1, &[INDEXED, more].concat());
    let before = |first: &[u8]| none().frame(1, 0x5, 1, &[first, INDEXED].concat());
    let huffman = &[0x40, 0x01, b'x', 0x83, 0xff, 0xff, 0xff];
    let mut cases = vec![
        case("7541 6.1 fields out of the static table", with(b""), OK),
        case(
            "7541 6.1 a field out of the dynamic table",
            twice(&[0x82, 0x86, 0x84, 0xbe]),
            Status(3, 200),
        ),
        case("7541 6.1 index 0", with(&[0x80]), BROKEN),
        case(
            "7541 2.3.3 an index behind the tables",
            with(&[0xbf]),
            BROKEN,
        ),
        case(
            "7541 2.3.3 an index far behind the tables",
            with(&[0xff, 0xff, 0x7f]),
            BROKEN,
        ),
        case(
            "7541 2.3.3 a name behind the tables",
            with(&[0x7f, 0x20, 0x01, b'v']),
            BROKEN,
        ),
        case(
            "7541 5.1 an integer without an end",
            with(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            BROKEN,
        ),
        case(
            "7541 5.1 an integer that is cut short",
            with(&[0xff]),
            BROKEN,
        ),
        case(
            "7541 5.2 a name longer than the block",
            with(&[0x00, 0x05, b'x']),
            BROKEN,
        ),
        case(
            "7541 5.2 a value longer than the block",
            with(&[0x00, 0x01, b'x', 0x05, b'v']),
            BROKEN,
        ),
        case(
            "7541 5.2 a value that is missing",
            with(&[0x00, 0x01, b'x']),
            BROKEN,
        ),
        case(
            "7541 5.2 EOS in Huffman's code",
            with(&[0x40, 0x01, b'x', 0x84, 0xff, 0xff, 0xff, 0xff]),
            BROKEN,
        ),
        case(
            "7541 5.2 Huffman padding of more than 7 bits",
            with(huffman),
            BROKEN,
        ),
        case(
            "7541 5.2 Huffman padding of zeros",
            with(&[0x40, 0x01, b'x', 0x81, 0x00]),
            BROKEN,
        ),
        case(
            "7541 5.2 a value in Huffman's code",
            with(&[0x40, 0x01, b'x', 0x82, 0x1c, 0x64]),
            OK,
        ),
        case(
            "7541 6.2.1 a literal with a name in the table",
            with(&[0x7a, 0x01, b'v']),
            OK,
        ),
        case(
            "7541 6.2.2 a literal that is not kept",
            with(&[0x00, 0x01, b'x', 0x01, b'v']),
            OK,
        ),
        case(
            "7541 6.2.3 a literal that is never kept",
            with(&[0x10, 0x01, b'x', 0x01, b'v']),
            OK,
        ),
        case("7541 6.3 a size of 0 for the table", before(&[0x20]), OK),
        case(
            "7541 6.3 two sizes for the table",
            before(&[0x20, 0x3f, 0xe1, 0x1f]),
            OK,
        ),
        case(
            "7541 6.3 a size over the limit",
            before(&[0x3f, 0xe2, 0x1f]),
            BROKEN,
        ),
        case("7541 4.2 a size behind a field", with(&[0x20]), BROKEN),
        case(
            "7541 4.4 a field larger than the table empties it",
            emptied(),
            Goaway(&[COMPRESSION, PROTOCOL]),
        ),
        case(
            "4.3 a head without a block",
            none().frame(1, 0x5, 1, b""),
            Reset(1, &[PROTOCOL]),
        ),
        case("4.3 a block that CONTINUATION cuts anywhere", cut(), OK),
        case(
            "4.3 a broken block of trailers",
            post(1).frame(1, 0x5, 1, &[0x80]),
            BROKEN,
        ),
        case(
            "4.3 a broken block on a stream that is closed",
            get(1).frame(1, 0x5, 1, &[0x80]),
            Goaway(&[COMPRESSION, PROTOCOL, CLOSED]),
        ),
        case(
            "4.3 the table is kept over a stream that is refused",
            kept(),
            Status(3, 200),
        ),
        case("10.5.1 a head over the limit", large(), Status(1, 431)),
        case(
            "10.5.1 a head of very many references",
            bomb(100),
            Goaway(&[CALM]),
        ),
        case(
            "10.5.1 a head of many references over the limit",
            bomb(8),
            Status(3, 431),
        ),
    ];
    for octet in [0x80, 0xff] {
        cases.push(case(
            format!("7541 6.2 a literal whose block ends in {octet:#x}"),
            with(&[0x40, octet]),
            BROKEN,
        ));
    }
    cases
}

/// A request, and another with this block.
fn twice(second: &[u8]) -> Frames {
    none().frame(1, 0x5, 1, INDEXED).frame(1, 0x5, 3, second)
}

/// A request that fills the table, one with a field of more than the whole table, and one that
/// refers to what was thrown out.
fn emptied() -> Frames {
    let mut large = vec![0x40, 0x01, b'x', 0x7f, 0x81, 0x1f];
    large.extend_from_slice(&[b'v'; 4096]);
    twice(&[&INDEXED[..3], &[0xbe], &large[..]].concat()).frame(
        1,
        0x5,
        5,
        &[0x82, 0x86, 0x84, 0xbe],
    )
}

/// A head in two frames, cut within a literal.
fn cut() -> Frames {
    none()
        .frame(1, 0x1, 1, &INDEXED[..5])
        .frame(9, 0x4, 1, &INDEXED[5..])
}

/// A malformed request that puts a field into the table, and one that takes it out.
fn kept() -> Frames {
    let malformed = [&[0x41, 0x01, b'a'], &[0x82, 0x86][..]].concat();
    none()
        .frame(1, 0x5, 1, &malformed)
        .frame(1, 0x5, 3, &[0x82, 0x86, 0x84, 0xbe])
}

/// A head with a value of 20,000 octets, in two frames.
fn large() -> Frames {
    let value = block(&[("x-large", &"v".repeat(20_000))]);
    let (first, rest) = value.split_at(10_000);
    none()
        .frame(1, 0x1, 1, &[INDEXED, first].concat())
        .frame(9, 0x4, 1, rest)
}

/// A field of 3 KiB in the table, and a head that names it so many times.
fn bomb(times: usize) -> Frames {
    let mut first = [INDEXED, &[0x40, 0x01, b'x', 0x7f, 0x81, 0x16]].concat();
    first.extend_from_slice(&[b'v'; 2944]);
    let second = [&[0x82, 0x86, 0x84, 0xbf][..], &vec![0xbe; times]].concat();
    none().frame(1, 0x5, 1, &first).frame(1, 0x5, 3, &second)
}

/// Where it is sure what h2 complains of, it is called by its name.
#[test]
fn an_invalid_header_block_is_a_compression_error() {
    let gateway = Running::with("");
    let blocks: [&[u8]; 5] = [
        &[0x80],
        &[0xbf],
        &[0xff],
        &[0x00, 0x05, b'x'],
        &[0x40, 0x01, b'x', 0x84, 0xff, 0xff, 0xff, 0xff],
    ];
    for client in [gateway.client(), gateway.tls_client().alpn("h2")] {
        for broken in blocks {
            for first in [1, 3] {
                let head = none().frame(1, 0x5, first, &[INDEXED, broken].concat());
                assert_eq!(complaint(&client, first, &head), COMPRESSION, "{broken:x?}");
            }
        }
        // Others are what they were.
        let even = none().frame(1, 0x5, 2, INDEXED);
        assert_eq!(complaint(&client, 1, &even), PROTOCOL);
        let padded = none().frame(1, 0xd, 1, &[&[200], INDEXED].concat());
        assert_eq!(complaint(&client, 1, &padded), PROTOCOL);
        let push = none().frame(5, 0x4, 1, &[0, 0, 0, 2, 0x82]);
        assert_eq!(complaint(&client, 1, &push), PROTOCOL);
    }
}

/// The code of the GOAWAY that `frames` get which come alone, after requests on the streams before
/// `first`.
fn complaint(client: &Client, first: u32, frames: &Frames) -> u32 {
    let mut wire = client.connect();
    let before = match first {
        1 => none(),
        _ => get(1),
    };
    before.frame(6, 0, 0, LAST).open(&mut wire);
    let mut answers = u32::from(first != 1);
    let mut pinged = false;
    while answers > 0 || !pinged {
        let (kind, flags, _, payload) = next_frame(&mut wire).expect("it is still open");
        pinged |= kind == 6 && payload == LAST;
        answers -= u32::from(kind < 2 && flags & 1 == 1);
    }
    wire.send(&frames.0);
    let mut rest = std::iter::from_fn(|| next_frame(&mut wire));
    let goaway = rest.find(|(kind, ..)| *kind == 7).expect("a GOAWAY");
    word(&goaway.3[4..])
}
