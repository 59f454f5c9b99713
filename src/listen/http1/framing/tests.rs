//! Heads and bodies in pieces of every size.

use super::{FramingScanner, FramingStop};

/// What becomes of `text`, read in pieces of `piece` bytes.
fn followed(text: &str, piece: usize) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut framing = FramingScanner::new();
    for mut piece in bytes.chunks_mut(piece) {
        while let Some(cut) = framing.follow(piece) {
            match cut {
                FramingStop::Behind(at) => piece = &mut piece[at..],
                FramingStop::Broken(_) => return "\0".to_owned(),
                _ => panic!("{cut:?} in {text:?}"),
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn check(text: &str, spoilt: bool) {
    for piece in 1..=text.len() {
        let after = followed(text, piece);
        assert_eq!(
            after.contains('\0'),
            spoilt,
            "{text:?} by {piece}: {after:?}"
        );
    }
}

/// Whether a head with these fields is spoilt, whatever came before.
fn head(fields: &str, spoilt: bool) {
    for before in [
        "",
        "\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\nhost: a\n\n",
        "POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\nc\r\nt",
        "POST / HTTP/1.1\r\nContent-Length:\t 04 \r\nhost: a\r\n\r\n\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\
         A;x=y\r\n0123456789\r\n1\r\n\n\r\n00;z\r\nx: y\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        check(
            &format!("{before}POST / HTTP/1.1\r\nhost: a\r\n{fields}\r\n\r\n"),
            spoilt,
        );
    }
}

#[test]
fn a_second_framing_header_is_invalidated() {
    head("content-length: 5\r\ntransfer-encoding: chunked", true);
    head("transfer-encoding: chunked\r\ncontent-length: 5", true);
    head("content-length: 5\r\ncontent-length: 5", true);
    head(
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        true,
    );
    head(
        "Content-LENGTH:5\r\nx: y\r\nTransfer-Encoding:chunked",
        true,
    );
    head("content-length: 5\ntransfer-encoding: chunked", true);
}

#[test]
fn only_the_second_header_is_invalidated() {
    let text = "POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello";
    let spoilt = "POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length\0 5\r\n\r\nhello";
    assert_eq!(followed(text, text.len()), spoilt);
}

#[test]
fn valid_heads_are_unchanged() {
    head("x: y", false);
    head("content-length: 5", false);
    head("transfer-encoding: chunked", false);
    head(
        "content-lengths: 5\r\ncontent-length-x: 5\r\nx-content-length: 5",
        false,
    );
    head(
        "te: trailers\r\ncontent-type: a\r\ncontent-length: 5\r\ntrailer: x",
        false,
    );
    head(
        "x: content-length: 5\r\ny: transfer-encoding: chunked",
        false,
    );
}

const TWICE: &str = "GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n";

#[test]
fn bodies_are_unchanged() {
    let length = TWICE.len();
    check(
        &format!("PUT / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{TWICE}"),
        false,
    );
    check(
        &format!(
            "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{TWICE}\r\n\
             {length:X};{TWICE}",
        )
        .replace(";GET / HTTP/1.1", ";x"),
        false,
    );
    check(
        &format!("PUT / HTTP/1.1\r\ncontent-length: 0\r\n\r\n{TWICE}"),
        true,
    );
}

#[test]
fn lengths_that_overflow_do_not_wrap() {
    let length = "9".repeat(40);
    check(
        &format!("PUT / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{TWICE}"),
        true,
    );
    let size = "f".repeat(40);
    check(
        &format!("PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{size}\r\n{TWICE}"),
        false,
    );
}

#[test]
fn a_length_that_hyper_cannot_represent_is_invalidated() {
    head("content-length: 18446744073709551613", false);
    head("content-length: 018446744073709551613", false);
    head("content-length: 18446744073709551614", true);
    head("content-length: 18446744073709551615", true);
    head("content-length: 18446744073709551616", true);
}

const CHUNKED: &str = "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";

#[test]
fn trailer_lines_must_end_in_crlf() {
    for trailers in ["\r\n", "x: y\r\n\r\n", "x: y\r\nz: \r\n\r\n"] {
        check(
            &format!("{CHUNKED}0\r\n{trailers}GET / HTTP/1.1\r\n\r\n"),
            false,
        );
    }
    for trailers in ["\n", "x: y\n\r\n", "x: y\r\n\n", "x: y\r\nz: \n\r\n"] {
        check(
            &format!("{CHUNKED}0\r\n{trailers}GET / HTTP/1.1\r\n\r\n"),
            true,
        );
    }
}

/// Where `text` is cut off, read in pieces of `piece` bytes.
fn cut(text: &str, piece: usize) -> Option<FramingStop> {
    let mut bytes = text.as_bytes().to_vec();
    let mut framing = FramingScanner::new();
    let mut pieces = bytes.chunks_mut(piece).enumerate();
    pieces.find_map(|(number, bytes)| {
        let before = number * piece;
        Some(match framing.follow(bytes)? {
            FramingStop::Ending(at) => FramingStop::Ending(before + at),
            FramingStop::Behind(at) => FramingStop::Behind(before + at),
            FramingStop::Broken(at) => FramingStop::Broken(before + at),
            FramingStop::Query(at) => FramingStop::Query(before + at),
        })
    })
}

#[test]
fn the_scanner_stops_behind_a_request() {
    for (fields, body) in [
        ("upgrade: websocket", ""),
        ("x: y", ""),
        ("content-length: 0", ""),
        ("content-length: 5", "hello"),
        ("transfer-encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
        ("transfer-encoding: chunked", "0\r\na: b\r\n\r\n"),
    ] {
        let whole = format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\nx: y\r\n\r\n{body}");
        let text = format!("{whole}{TWICE}");
        for piece in (1..=text.len()).filter(|piece| whole.len() % piece != 0) {
            let behind = FramingStop::Behind(whole.len());
            assert_eq!(cut(&text, piece), Some(behind), "{text:?} by {piece}");
        }
    }
}

/// hyper looks for the end of the trailers in all that follows.
#[test]
fn nothing_follows_an_invalid_trailer() {
    for (trailers, valid) in [
        ("\n", 0),
        ("x: y\n\r\n", 4),
        ("x: y\r\n\n", 6),
        ("x: y\n\n", 4),
    ] {
        let head = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        let text = format!("{head}5\r\nhello\r\n0\r\n{trailers}{TWICE}");
        for piece in 1..=text.len() {
            let broken = FramingStop::Broken(format!("{head}5\r\nhello\r\n0\r\n").len() + valid);
            assert_eq!(cut(&text, piece), Some(broken), "{text:?} by {piece}");
        }
    }
}

#[test]
fn the_scanner_stops_at_a_query_that_must_be_escaped() {
    for (target, at) in [
        ("/?a=\"b", Some(8)),
        ("/?<", Some(6)),
        ("http://a/?a?>", Some(16)),
        ("/?a=é\"", Some(8)),
        ("/?a\"é", Some(7)),
        ("/é", None),
        ("/\"a<>", None),
        ("/?a=%22", None),
    ] {
        let text = format!("GET {target} HTTP/1.1\r\nx: ?\"<>\r\n\r\n");
        for piece in 1..=text.len() {
            let query = at.map(FramingStop::Query);
            assert_eq!(cut(&text, piece), query, "{text:?} by {piece}");
        }
    }
}

#[test]
fn a_read_that_ends_with_a_request_is_not_split() {
    for text in [
        "\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello",
    ] {
        let mut framing = FramingScanner::new();
        for _ in 0..2 {
            let (first, last) = text.split_at(text.len() - 1);
            assert_eq!(framing.follow(&mut first.as_bytes().to_vec()), None);
            assert!(!framing.is_between());
            assert_eq!(framing.follow(&mut last.as_bytes().to_vec()), None);
            assert!(framing.is_between());
        }
    }
}

#[test]
fn scanning_resumes_when_another_request_follows() {
    let mut framing = FramingScanner::new();
    let mut head = *b"GET / HTTP/1.1\r\nupgrade: a\r\n\r\nPOST ";
    let length = head.len() - "POST ".len();
    assert_eq!(framing.follow(&mut head), Some(FramingStop::Behind(length)));
    let mut rest = TWICE.as_bytes().to_vec();
    assert_eq!(framing.follow(&mut rest), None);
    assert!(rest.contains(&0));
}

#[test]
fn a_transfer_coding_other_than_chunked_ends_its_request() {
    let start = "POST / HTTP/1.1\r\nTransfer-Encoding:";
    for codings in [
        "",
        " gzip",
        " chunkedx",
        " x chunked",
        " chunked, ",
        " chunked;q=1",
        " chu",
    ] {
        for end in ["\r\n", "\n"] {
            let text = format!("{start}{codings}{end}host: a\r\n\r\n");
            for piece in 1..=text.len() {
                let end = start.len() + codings.len();
                assert_eq!(
                    cut(&text, piece),
                    Some(FramingStop::Ending(end)),
                    "{text:?} by {piece}"
                );
            }
        }
    }
    for codings in [
        "chunked",
        " chunked",
        "\t Chunked \t",
        " gzip, chunked",
        ",CHUNKED",
    ] {
        let text = format!("{start}{codings}\r\nhost: a\r\n\r\n0\r\n\r\n");
        for piece in 1..=text.len() {
            assert_eq!(cut(&text, piece), None, "{text:?} by {piece}");
        }
    }
}
