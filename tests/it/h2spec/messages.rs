//! Section 8: requests in frames.

use super::Want::{Reset, Status};
use super::*;
use crate::harness::END;

const OK: Want = Status(1, 200);
const MALFORMED: Want = Reset(1, &[PROTOCOL]);

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "a.example"),
    (":path", "/"),
];

pub fn cases() -> Vec<Case> {
    [framing(), fields(), pseudo(), lengths(), methods()]
        .into_iter()
        .flatten()
        .collect()
}

/// A GET without one field and with others, in front or behind.
fn request(without: &str, front: &[(&str, &str)], behind: &[(&str, &str)]) -> Frames {
    let kept = GET.iter().filter(|(name, _)| *name != without);
    let all: Vec<_> = front.iter().chain(kept).chain(behind).copied().collect();
    none().headers(&all, END)
}

fn framing() -> Vec<Case> {
    let trailers =
        |fields: &[(&str, &str)], flags| post(1).frame(0, 0, 1, b"body").headers(fields, flags);
    vec![
        case("8.1 a request without a body", get(1), OK),
        case(
            "8.1 a request with a body",
            post(1).frame(0, END, 1, b"body"),
            OK,
        ),
        case(
            "8.1 a request with trailers",
            trailers(&[("x-a", "1")], END),
            OK,
        ),
        case(
            "8.1 trailers without a body",
            post(1).headers(&[("x-a", "1")], END),
            OK,
        ),
        case(
            "8.1 trailers that do not end",
            trailers(&[("x-a", "1")], 0),
            MALFORMED,
        ),
        case(
            "8.1 a second head that does not end",
            post(1).frame(1, 0x4, 1, &head("POST")),
            MALFORMED,
        ),
        case(
            "8.1 a pseudo-field in trailers",
            trailers(&[(":path", "/")], END),
            MALFORMED,
        ),
        case(
            "8.1 a second head that ends",
            post(1).frame(1, 0x5, 1, &head("POST")),
            MALFORMED,
        ),
        case(
            "8.1 a pseudo-field of the static table in trailers",
            post(1).frame(0, 0, 1, b"body").frame(1, 0x5, 1, &[0x84]),
            MALFORMED,
        ),
        case(
            "8.1 a pseudo-field in padded trailers with a priority",
            post(1)
                .frame(0, 0, 1, b"body")
                .frame(1, 0x2d, 1, &[1, 0, 0, 0, 0, 9, 0x88, 0]),
            MALFORMED,
        ),
        case(
            "8.2.1 an upper-case name in trailers",
            trailers(&[("X-A", "1")], END),
            MALFORMED,
        ),
        case(
            "8.1 requests side by side",
            Frames([get(1).0, get(3).0, get(5).0].concat()),
            Status(5, 200),
        ),
    ]
}

fn fields() -> Vec<Case> {
    let bad = [
        ("8.2.1 an upper-case name", "X-Upper", "1"),
        ("8.2.1 a space in a name", "x y", "1"),
        ("8.2.1 a colon in a name", "x:y", "1"),
        ("8.2.1 a control character in a name", "x\u{1}", "1"),
        ("8.2.1 DEL in a name", "x\u{7f}", "1"),
        ("8.2.1 an octet over 0x7f in a name", "x\u{e9}", "1"),
        ("8.2.1 a name of nothing", "", "1"),
        ("8.2.1 NUL in a value", "x-a", "a\0b"),
        ("8.2.1 CR in a value", "x-a", "a\rb"),
        ("8.2.1 LF in a value", "x-a", "a\nb"),
        ("8.2.2 connection", "connection", "keep-alive"),
        ("8.2.2 connection that names a field", "connection", "x-a"),
        ("8.2.2 keep-alive", "keep-alive", "timeout=5"),
        ("8.2.2 proxy-connection", "proxy-connection", "keep-alive"),
        ("8.2.2 transfer-encoding", "transfer-encoding", "chunked"),
        ("8.2.2 upgrade", "upgrade", "h2c"),
        (
            "8.2.2 te with more than trailers",
            "te",
            "trailers, deflate",
        ),
        ("8.2.2 te with something else", "te", "gzip"),
    ];
    let good = [
        ("8.2.2 te: trailers", "te", "trailers"),
        ("8.2.1 a value with octets over 0x7f", "x-a", "\u{e9}"),
        ("8.2.1 a value of nothing", "x-a", ""),
        ("8.2.1 a tab within a value", "x-a", "a\tb"),
        ("8.2.3 a cookie", "cookie", "a=1"),
        ("8.3.1 host as the authority", "host", "a.example"),
    ];
    let bad =
        bad.map(|(name, field, value)| case(name, request("", &[], &[(field, value)]), MALFORMED));
    let good = good.map(|(name, field, value)| case(name, request("", &[], &[(field, value)]), OK));
    let crumbs = [("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")];
    let cookies = case("8.2.3 cookie crumbs", request("", &[], &crumbs), OK);
    bad.into_iter().chain(good).chain([cookies]).collect()
}

fn pseudo() -> Vec<Case> {
    let mut cases = vec![
        case(
            "8.3 an unknown pseudo-field",
            request("", &[(":foo", "1")], &[]),
            MALFORMED,
        ),
        case(
            "8.3 a pseudo-field of answers",
            request("", &[(":status", "200")], &[]),
            MALFORMED,
        ),
        case(
            "8.3 a pseudo-field behind a field",
            request(":path", &[], &[("x-a", "1"), (":path", "/")]),
            MALFORMED,
        ),
        case(
            "8.3 all pseudo-fields behind a field",
            request("", &[("x-a", "1")], &[]),
            MALFORMED,
        ),
        case(
            "8.3 a pseudo-field in upper case",
            request(":path", &[(":Path", "/")], &[]),
            MALFORMED,
        ),
        // An answer may come before a reset (8.1.1).
        case(
            "8.3.1 :scheme of nothing",
            request(":scheme", &[(":scheme", "")], &[]),
            Status(1, 400),
        ),
        case(
            "8.3.1 no authority but host",
            request(":authority", &[], &[("host", "a.example")]),
            OK,
        ),
        case(
            "8.5 :protocol without CONNECT",
            request("", &[(":protocol", "x")], &[]),
            MALFORMED,
        ),
    ];
    for name in [":method", ":scheme", ":path"] {
        let text = format!("8.3.1 no {name}");
        cases.push(case(text, request(name, &[], &[]), MALFORMED));
    }
    for (name, value) in GET {
        let text = format!("8.3.1 {name} twice");
        cases.push(case(text, request("", &[(name, value)], &[]), MALFORMED));
    }
    for (name, value) in [(":path", ""), (":method", "")] {
        let text = format!("8.3.1 {name} of nothing");
        cases.push(case(text, request(name, &[(name, value)], &[]), MALFORMED));
    }
    cases
}

fn lengths() -> Vec<Case> {
    let post = |length: &str, flags| {
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "a.example"),
            (":path", "/"),
            ("content-length", length),
        ];
        none().headers(&fields, flags)
    };
    vec![
        case(
            "8.1.1 a length that is kept",
            post("4", 0).data(b"body", END),
            OK,
        ),
        case(
            "8.1.1 a length that two frames keep",
            post("8", 0).data(b"body", 0).data(b"body", END),
            OK,
        ),
        case("8.1.1 a length of 0 and no DATA", post("0", END), OK),
        case("8.1.1 a length and no DATA", post("4", END), MALFORMED),
        case(
            "8.1.1 less than the length",
            post("5", 0).data(b"body", END),
            MALFORMED,
        ),
        case(
            "8.1.1 more than the length",
            post("3", 0).data(b"body", END),
            MALFORMED,
        ),
        case(
            "8.1.1 more than the length in two frames",
            post("5", 0).data(b"body", 0).data(b"body", END),
            MALFORMED,
        ),
        case(
            "8.1.1 less than the length before trailers",
            post("5", 0).data(b"body", 0).headers(&[("x-a", "1")], END),
            MALFORMED,
        ),
        case(
            "8.1.1 a length that is no number",
            post("four", 0).data(b"body", END),
            MALFORMED,
        ),
        case(
            "8.1.1 padding is not counted",
            post("4", 0).frame(0, 0x9, 1, b"\x02body\0\0"),
            OK,
        ),
    ]
}

fn methods() -> Vec<Case> {
    let with = |method: &str, path: &str| {
        let fields = [
            (":method", method),
            (":scheme", "http"),
            (":authority", "a.example"),
            (":path", path),
        ];
        none().headers(&fields, END)
    };
    vec![
        case(
            "8.3.1 HEAD has no body in its answer",
            with("HEAD", "/"),
            OK,
        ),
        case("8.3.1 an unknown method", with("PURGE", "/"), OK),
        case("8.3.1 OPTIONS and *", with("OPTIONS", "*"), OK),
        case("8.3.1 a path without a slash", with("GET", "p"), MALFORMED),
        case(
            "8.5 CONNECT without a path is refused",
            none().headers(
                &[(":method", "CONNECT"), (":authority", "a.example:443")],
                0,
            ),
            Status(1, 400),
        ),
        case("8.5 CONNECT with a path", with("CONNECT", "/"), MALFORMED),
    ]
}

#[test]
fn an_invalid_header_name_or_value_closes_the_connection() {
    let gateway = Running::with("");
    let field = |name, value| request("", &[], &[(name, value)]);
    let path = [&block(&GET[..3]), &b"\0\x05:path\x02/\xff"[..]].concat();
    let cases = [
        ("upper case", field("X-Upper", "1")),
        ("a space", field("x y", "1")),
        ("a colon", field("x:y", "1")),
        ("a control character", field("x\r", "1")),
        ("NUL in a value", field("x-a", "a\0b")),
        ("CRLF in a value", field("x-a", "a\r\nb")),
        ("LF in a value", field("x-a", "a\nb")),
        ("no method", request(":method", &[(":method", "")], &[])),
        ("a path that is not UTF-8", none().frame(1, 0x5, 1, &path)),
    ];
    for (name, frames) in cases {
        let mut wire = gateway.client().connect();
        frames.open(&mut wire);
        let told = std::iter::from_fn(|| next_frame(&mut wire));
        let told = told.filter(|(kind, ..)| matches!(kind, 1 | 3 | 7));
        let told: Vec<_> = told.map(|(kind, .., payload)| (kind, payload)).collect();
        let [(7, goodbye)] = told.as_slice() else {
            panic!("{name}: {told:?}");
        };
        let code = word(&goodbye[4..]);
        assert!([COMPRESSION, PROTOCOL].contains(&code), "{name}: {code}");
    }
}
