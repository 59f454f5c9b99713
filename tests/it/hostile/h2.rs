//! The same for HTTP/2, frame by frame.

use super::{check_alive, gateway};
use crate::harness::{END, Frames, Heard, PADDED, WHOLE, block};

/// What must come of a stream.
enum Expect {
    /// A refusal of whatever kind; the origin sees nothing.
    Refused,
    /// The origin sees this line and this body, once.
    One(&'static str, &'static str),
}

use Expect::{One, Refused};

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "a.example"),
    (":path", "/p"),
];
const SEEN: Expect = One("GET /p HTTP/1.1", "");
const POSTED: Expect = One("POST /p HTTP/1.1", "hello");

#[test]
fn streams_have_one_meaning() {
    let gateway = gateway("");
    let cases: Vec<_> = [heads(), bodies(), frames()]
        .into_iter()
        .flatten()
        .collect();
    assert!(cases.len() >= 25, "{}", cases.len());
    for (name, frames, expect) in &cases {
        let before = gateway.origin.count();
        let heard = frames.heard(gateway.client().connect());
        let seen = gateway.origin.seen().split_off(before);
        match expect {
            Refused => {
                let refused = !matches!(heard, Heard::Status(..400 | 500..));
                assert!(refused, "{name}: {heard:?}");
                assert!(seen.is_empty(), "{name}: the origin saw {seen:?}");
            }
            One(line, body) => {
                assert_eq!(heard, Heard::Status(200), "{name}");
                assert_eq!(seen.len(), 1, "{name}: {seen:?}");
                assert_eq!(seen[0].line, *line, "{name}");
                assert_eq!(seen[0].body, body.as_bytes(), "{name}");
                let hosts = seen[0].headers.iter().filter(|(n, _)| n == "host");
                assert_eq!(hosts.count(), 1, "{name}");
                assert_eq!(seen[0].header("host"), Some("a.example"), "{name}");
            }
        }
    }
    let expected = cases.iter().filter(|(_, _, e)| matches!(e, One(..)));
    assert_eq!(gateway.origin.count(), expected.count());
    check_alive(&gateway);
}

type Case = (String, Frames, Expect);

/// A GET with one pseudo field changed.
fn with(name: &str, value: &str, expect: Expect) -> Case {
    let fields = GET.map(|(n, v)| if n == name { (n, value) } else { (n, v) });
    let frames = Frames::default().headers(&fields, END);
    (format!("{name} {value:?}"), frames, expect)
}

/// A GET without one field, and with others.
fn without(name: &str, more: &[(&str, &str)], expect: Expect) -> Case {
    let kept = GET.into_iter().filter(|(n, _)| *n != name);
    let fields: Vec<_> = kept.chain(more.iter().copied()).collect();
    let frames = Frames::default().headers(&fields, END);
    (format!("without {name:?}, with {more:?}"), frames, expect)
}

/// A GET with one more field.
fn plus(name: &str, value: &str, expect: Expect) -> Case {
    without("", &[(name, value)], expect)
}

fn heads() -> Vec<Case> {
    vec![
        plus("x-a", "1", SEEN),
        without(":method", &[], Refused),
        without(":path", &[], Refused),
        without(":scheme", &[], Refused),
        without(":authority", &[], Refused),
        without(":authority", &[("host", "a.example")], SEEN),
        without(
            ":authority",
            &[("host", "a.example"), ("host", "b")],
            Refused,
        ),
        plus("host", "a.example", SEEN),
        plus("host", "A.example:80", SEEN),
        plus("host", "b.example", Refused),
        plus(":path", "/q", Refused),
        plus(":method", "GET", Refused),
        plus(":authority", "a.example", Refused),
        plus(":status", "200", Refused),
        plus(":foo", "1", Refused),
        plus(":protocol", "websocket", Refused),
        without(":path", &[("x-a", "1"), (":path", "/p")], Refused),
        plus("X-Upper", "1", Refused),
        plus("x a", "1", Refused),
        plus("x:a", "1", Refused),
        plus("", "1", Refused),
        plus("x-a", "1\r\nhost: b", Refused),
        plus("x-a", "1\nx-b: 2", Refused),
        plus("x-a", "\0", Refused),
        plus("x-a", "\u{7f}", Refused),
        plus("connection", "close", Refused),
        plus("connection", "x-a", Refused),
        plus("keep-alive", "timeout=5", Refused),
        plus("proxy-connection", "close", Refused),
        plus("transfer-encoding", "chunked", Refused),
        plus("upgrade", "websocket", Refused),
        plus("te", "gzip", Refused),
        plus("te", "trailers, chunked", Refused),
        plus("te", "trailers", SEEN),
        plus("x_forwarded_for", "203.0.113.7", Refused),
        with(":method", "CONNECT", Refused),
        without(":method", &[], Refused),
        with(":method", "GET ", Refused),
        with(":method", "GET /x HTTP/1.1\r\na: b\r\n\r\n", Refused),
        with(":method", "", Refused),
        with(":scheme", "ftp", Refused),
        with(":scheme", "", Refused),
        with(":authority", "", Refused),
        with(":authority", "user@a.example", Refused),
        with(":authority", "a b", Refused),
        with(":authority", "a.example/x", Refused),
        with(":authority", "a.example\r\nx: y", Refused),
        with(":authority", "A.EXAMPLE.:80", SEEN),
        with(":path", "", Refused),
        with(":path", "p", Refused),
        with(":path", "*", Refused),
        with(":path", "?p", Refused),
        with(":path", "/a b", Refused),
        with(":path", "/a\0", Refused),
        with(":path", "/a HTTP/1.1\r\nx: y", Refused),
        with(":path", "http://b.example/p", Refused),
        with(":path", "/..%2fp", Refused),
        with(":path", "/%zz", Refused),
        with(":path", "/%2e%2e//%70", SEEN),
    ]
}

/// A POST whose fields and data may disagree.
fn post(more: &[(&str, &str)], data: &[&str], expect: Expect) -> Case {
    let mut fields = GET.to_vec();
    fields[0].1 = "POST";
    fields.extend_from_slice(more);
    let mut frames = Frames::default().headers(&fields, 0);
    for (number, bytes) in data.iter().enumerate() {
        let last = number + 1 == data.len();
        frames = frames.data(bytes.as_bytes(), if last { END } else { 0 });
    }
    (format!("{more:?} {data:?}"), frames, expect)
}

/// A POST that ends in trailers.
fn trailers(fields: &[(&str, &str)], flags: u8, expect: Expect) -> Case {
    let mut head = GET.to_vec();
    head[0].1 = "POST";
    let frames = Frames::default().headers(&head, 0).data(b"hello", 0);
    let frames = frames.headers(fields, flags);
    (format!("trailers {fields:?}"), frames, expect)
}

fn bodies() -> Vec<Case> {
    let get_with_length = [GET.as_slice(), &[("content-length", "5")]].concat();
    let ended = Frames::default().headers(&get_with_length, END);
    vec![
        post(&[], &["hel", "lo"], POSTED),
        post(&[("content-length", "5")], &["hel", "lo"], POSTED),
        post(&[("content-length", "5")], &["hel"], Refused),
        post(&[("content-length", "3")], &["hello"], Refused),
        post(&[("content-length", "0")], &["hello"], Refused),
        post(&[("content-length", "x")], &["hello"], Refused),
        post(&[("content-length", "+5")], &["hello"], Refused),
        post(&[("content-length", "5, 5")], &["hello"], Refused),
        post(
            &[("content-length", "5"), ("content-length", "6")],
            &["hello"],
            Refused,
        ),
        post(
            &[("content-length", "5"), ("content-length", "5")],
            &["hello"],
            Refused,
        ),
        ("content-length and no body".into(), ended, Refused),
        trailers(&[("x-sum", "1")], END, POSTED),
        trailers(&[(":path", "/q")], END, POSTED),
        trailers(&[("X-Upper", "1")], END, Refused),
        trailers(&[("x-sum", "1")], 0, Refused),
        trailers(&[("content-length", "99")], END, POSTED),
        trailers(&[("host", "b.example")], END, POSTED),
    ]
}

fn frames() -> Vec<Case> {
    let get = block(&GET);
    let new = Frames::default;
    let padded = [&[200][..], &get].concat();
    let open = || {
        let mut head = GET;
        head[0].1 = "POST";
        new().headers(&head, 0)
    };
    vec![
        (
            "padding longer than HEADERS".into(),
            new().frame(1, END | WHOLE | PADDED, 1, &padded),
            Refused,
        ),
        (
            "padding longer than DATA".into(),
            open().data(&[9, b'x'], END | PADDED),
            Refused,
        ),
        (
            "padded DATA".into(),
            open().data(b"\x03hello\0\0\0", END | PADDED),
            POSTED,
        ),
        (
            "an even stream".into(),
            new().frame(1, END | WHOLE, 2, &get),
            Refused,
        ),
        (
            "HEADERS on stream 0".into(),
            new().frame(1, END | WHOLE, 0, &get),
            Refused,
        ),
        ("DATA before HEADERS".into(), new().data(b"x", END), Refused),
        (
            "no table entry".into(),
            new().frame(1, END | WHOLE, 1, &[0xff, 0xff, 0xff, 0x7f]),
            Refused,
        ),
        (
            "half a literal".into(),
            new().frame(1, END | WHOLE, 1, &[0, 10, b'x']),
            Refused,
        ),
        (
            "another frame among CONTINUATION".into(),
            new().frame(1, END, 1, &get).frame(6, 0, 0, &[0; 8]),
            Refused,
        ),
        (
            "CONTINUATION alone".into(),
            new().frame(9, WHOLE, 1, &get),
            Refused,
        ),
        (
            "PUSH_PROMISE".into(),
            new().frame(5, WHOLE, 1, &[&[0, 0, 0, 2][..], &get].concat()),
            Refused,
        ),
        (
            "WINDOW_UPDATE of nothing".into(),
            new().frame(8, 0, 0, &[0; 4]),
            Refused,
        ),
        (
            "SETTINGS of five bytes".into(),
            new().frame(4, 0, 0, &[0; 5]),
            Refused,
        ),
        (
            "PING of seven bytes".into(),
            new().frame(6, 0, 0, &[0; 7]),
            Refused,
        ),
        (
            "a frame too large".into(),
            new().frame(1, END | WHOLE, 1, &vec![0; 20_000]),
            Refused,
        ),
        (
            "an unknown frame first".into(),
            new()
                .frame(0xee, 0xff, 1, b"?")
                .frame(1, END | WHOLE, 1, &get),
            SEEN,
        ),
    ]
}

#[test]
fn a_refusal_of_a_long_body_arrives_whole() {
    let gateway = gateway("");
    for _ in 0..20 {
        let mut fields = GET.to_vec();
        fields[0] = (":method", "POST");
        fields.push(("content-length", "1048577"));
        let frames = Frames::default().headers(&fields, 0);
        let frames = (0..3).fold(frames, |frames, _| frames.data(&[b'x'; 16_384], 0));
        let (status, body) = frames.answer(gateway.client().connect());
        assert_eq!(status, 413);
        assert!(body.ends_with(b"\"status\":413}\n"), "{body:?}");
    }
}

#[test]
fn fields_are_bounded_as_in_http_1() {
    let gateway = gateway("");
    let many: Vec<(&str, &str)> = GET.into_iter().chain([("x-a", "b"); 120]).collect();
    let frames = Frames::default().headers(&many, END);
    assert_eq!(frames.heard(gateway.client().connect()), Heard::Status(431));
    assert_eq!(gateway.origin.count(), 0);
}
