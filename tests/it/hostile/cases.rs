//! The HTTP/1 requests, each with what must come of it.

/// A request, or what claims to be one.
pub struct Case {
    /// What it tries.
    pub name: String,
    /// All that the client sends.
    pub bytes: Vec<u8>,
    /// What must come of it.
    pub expect: Expect,
}

/// What must come of a request, where no rule stops it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// One of these statuses; the origin sees nothing.
    Refused(&'static [u16]),
    /// It has a meaning that rules can look at, but none for an origin: 400; the origin sees no
    /// whole request.
    Broken,
    /// 413.
    TooLarge,
    /// The origin sees this line and this body, once.
    One(String, String),
    /// Two requests in a row, both in order.
    Two,
}

const BAD: Expect = Expect::Refused(&[400]);
const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nhost: a.example\r\n\r\n";

/// All of them. `CASE` in a request becomes its number.
pub fn all() -> Vec<Case> {
    let groups = [
        targets(),
        paths(),
        hosts(),
        lines(),
        fields(),
        codings(),
        lengths(),
        sizes(),
        chunks(),
        smuggling(),
    ];
    let mut cases: Vec<Case> = groups.into_iter().flatten().collect();
    for (number, case) in cases.iter_mut().enumerate() {
        case.bytes = replace(&case.bytes, b"CASE", number.to_string().as_bytes());
    }
    cases
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|w| w == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn case(name: impl Into<String>, bytes: impl AsRef<[u8]>, expect: Expect) -> Case {
    Case {
        name: name.into(),
        bytes: bytes.as_ref().to_vec(),
        expect,
    }
}

fn one(line: &str, body: &str) -> Expect {
    Expect::One(line.into(), body.into())
}

/// A request line on an otherwise honest request.
fn line(line: &str, expect: Expect) -> Case {
    let bytes = format!("{line}\r\nhost: a.example\r\nx-case: CASE\r\nconnection: close\r\n\r\n");
    case(line, bytes, expect)
}

/// A target, and the one that the origin must see.
fn target(target: &str, seen: &str) -> Case {
    let seen = one(&format!("GET {seen} HTTP/1.1"), "");
    line(&format!("GET {target} HTTP/1.1"), seen)
}

fn bad_target(target: &str) -> Case {
    line(&format!("GET {target} HTTP/1.1"), BAD)
}

/// Fields on an otherwise honest GET.
fn field(fields: impl AsRef<[u8]>, expect: Expect) -> Case {
    let fields = fields.as_ref();
    let mut bytes =
        b"GET /f HTTP/1.1\r\nhost: a.example\r\nx-case: CASE\r\nconnection: close\r\n".to_vec();
    bytes.extend_from_slice(fields);
    bytes.extend_from_slice(b"\r\n\r\n");
    case(String::from_utf8_lossy(fields), bytes, expect)
}

fn good_field(fields: impl AsRef<[u8]>) -> Case {
    field(fields, one("GET /f HTTP/1.1", ""))
}

fn bad_field(fields: impl AsRef<[u8]>) -> Case {
    field(fields, BAD)
}

/// Instead of the line with the host.
fn host(lines: &str, expect: Expect) -> Case {
    let lines = match lines {
        "" => String::new(),
        lines => format!("{lines}\r\n"),
    };
    let bytes = format!("GET /h HTTP/1.1\r\n{lines}x-case: CASE\r\nconnection: close\r\n\r\n");
    case(format!("host {lines:?}"), bytes, expect)
}

/// A POST on a connection that stays open for another.
fn post(fields: &str, body: &str, expect: Expect) -> Case {
    let bytes =
        format!("POST /p HTTP/1.1\r\nhost: a.example\r\nx-case: CASE\r\n{fields}\r\n\r\n{body}");
    let start: String = body.chars().take(40).collect();
    case(format!("{fields:?} {start:?}"), bytes, expect)
}

fn posted(body: &str) -> Expect {
    one("POST /p HTTP/1.1", body)
}

fn targets() -> Vec<Case> {
    vec![
        target("/", "/"),
        target("http://a.example/x", "/x"),
        target("http://A.EXAMPLE:80/x?y", "/x?y"),
        target("http://a.example", "/"),
        bad_target("http://b.example/x"),
        bad_target("http://a.example:81/x"),
        bad_target("http://user@a.example/x"),
        bad_target("http://a.example@b.example/x"),
        bad_target("ftp://a.example/x"),
        bad_target("http:///x"),
        bad_target("a.example:80"),
        bad_target("*"),
        bad_target("x"),
        bad_target("?x"),
        bad_target(""),
        bad_target("/a b"),
        bad_target("/a\tb"),
        bad_target("/a\u{1}b"),
        bad_target("/a\0b"),
        bad_target("/a?b\u{7f}"),
        line("CONNECT a.example:443 HTTP/1.1", BAD),
        line("CONNECT /x HTTP/1.1", BAD),
        line("OPTIONS * HTTP/1.1", one("OPTIONS * HTTP/1.1", "")),
        line("GET * HTTP/1.1", BAD),
        line("OPTIONS /x HTTP/1.1", one("OPTIONS /x HTTP/1.1", "")),
    ]
}

fn paths() -> Vec<Case> {
    vec![
        target("//login", "/login"),
        target("/./login", "/login"),
        target("/%6cogin", "/login"),
        target("/a/../login", "/login"),
        target("/a/%2e%2E/login", "/login"),
        target("/../../login", "/login"),
        target("/login/.", "/login/"),
        target("/a%2fb", "/a%2Fb"),
        target("/a;b=c/d", "/a;b=c/d"),
        target("/a?b=/../c&d=%00", "/a?b=/../c&d=%00"),
        bad_target("/%00"),
        bad_target("/a%"),
        bad_target("/a%2"),
        bad_target("/a%zz"),
        bad_target("/a\\b"),
        bad_target("/..%2fetc"),
        bad_target("/a/%2e%2e%5cetc"),
        bad_target("/a/..%5C..%5Cb"),
        bad_target("/..;/etc"),
        bad_target("/a/.%2f"),
    ]
}

fn hosts() -> Vec<Case> {
    let seen = || one("GET /h HTTP/1.1", "");
    let mut cases = vec![
        host("host: A.EXAMPLE.:80", seen()),
        host("host: [::1]:8080", seen()),
        host("host: 127.0.0.1", seen()),
        host("", BAD),
        host("host: a\r\nhost: a", BAD),
        host("host: a\r\nhost: b", BAD),
        host("host: a\r\nHOST: b", BAD),
        host("host : a", BAD),
        host(" host: a", BAD),
        host("host: a\r\n b", BAD),
    ];
    let bad = [
        "", "a b", "a,b", "a/b", "a@b", "a?b", "a#b", "a:99999", "a:x", "a:0", "a:80:80", "[::1",
        "::1", "127.1", "0x7f.1", "a..b", ".a", "a%41", "a\0", "a\u{e4}", "http://a",
    ];
    cases.extend(bad.iter().map(|bad| host(&format!("host: {bad}"), BAD)));
    let old = "GET /h HTTP/1.0\r\nx-case: CASE\r\n\r\n";
    cases.push(case("HTTP/1.0 without a host", old, seen()));
    cases
}

fn lines() -> Vec<Case> {
    let rest = "host: a.example\r\nx-case: CASE\r\nconnection: close\r\n\r\n";
    let seen = || one("GET /l HTTP/1.1", "");
    vec![
        line("GET /l HTTP/1.2", BAD),
        line("GET /l HTTP/2.0", BAD),
        line("GET /l HTTP/11", BAD),
        line("GET /l http/1.1", BAD),
        line("GET /l", BAD),
        line("GET  /l HTTP/1.1", BAD),
        line("GET /l  HTTP/1.1", BAD),
        line("GET /l HTTP/1.1 ", BAD),
        line("GET\t/l HTTP/1.1", BAD),
        line(" GET /l HTTP/1.1", BAD),
        line("G@T\0 /l HTTP/1.1", BAD),
        line("GET /l HTTP/1.1\r", BAD),
        line("GET /l HTTP/1.0", seen()),
        line("PURGE /l HTTP/1.1", one("PURGE /l HTTP/1.1", "")),
        line("\r\n\r\nGET /l HTTP/1.1", seen()),
        case(
            "lines that end in LF",
            format!("GET /l HTTP/1.1\n{}", rest.replace("\r\n", "\n")),
            seen(),
        ),
        case("not HTTP at all", "\x16\x03\x01\x02\r\n\r\n", BAD),
        case("another protocol", "SSH-2.0-OpenSSH\r\n\r\n", BAD),
    ]
}

fn fields() -> Vec<Case> {
    vec![
        good_field("x-a: tab\there"),
        good_field(b"x-a: \xff\xfe"),
        good_field("x-a:"),
        good_field("my_header: 1"),
        bad_field("x-a: 1\r\n 2"),
        bad_field("x-a: 1\r\n\t2"),
        bad_field("x-a: 1\r2"),
        bad_field("x-a: 1\0"),
        bad_field("x-a: \u{1}"),
        bad_field("x-a: \u{1b}[2J"),
        bad_field("x-a: \u{7f}"),
        bad_field("x a: 1"),
        bad_field("x(a): 1"),
        bad_field("x-a : 1"),
        bad_field("x-\u{e4}: 1"),
        bad_field(": 1"),
        bad_field("no colon"),
        bad_field("x_forwarded_for: 203.0.113.7"),
        bad_field("x-forwarded_for: 203.0.113.7"),
        bad_field("x_real_ip: 203.0.113.7"),
        bad_field("x_lockgate_rule: a"),
        bad_field("transfer_encoding: chunked"),
        bad_field("content_length: 5"),
    ]
}

fn codings() -> Vec<Case> {
    let unknown = || Expect::Refused(&[400, 501]);
    let te = |value: &str, expect| {
        let body = format!("0\r\n\r\n{HIDDEN}");
        post(&format!("transfer-encoding: {value}"), &body, expect)
    };
    let mut cases = vec![
        te("gzip, chunked", Expect::Refused(&[501])),
        te("x, chunked", Expect::Refused(&[501])),
        te("chunked, chunked", BAD),
        te("chunked\r\ntransfer-encoding: chunked", BAD),
        te("chunked\r\ntransfer-encoding: x", BAD),
        te(
            "x\r\ntransfer-encoding: chunked",
            Expect::Refused(&[501, 400]),
        ),
        te("", BAD),
        te("\u{b}chunked", BAD),
        te("\r\n chunked", BAD),
    ];
    let not_chunked = [
        "gzip",
        "identity",
        "xchunked",
        "chunkedx",
        "chunked, gzip",
        "chunked;q=1",
        "\"chunked\"",
        "chunked,",
        "cow",
    ];
    cases.extend(not_chunked.iter().map(|value| te(value, unknown())));
    cases.push(post("transfer-encoding : chunked", "0\r\n\r\n", BAD));
    cases.push(post("transfer-encoding\0: chunked", "0\r\n\r\n", BAD));
    let old = format!(
        "POST /p HTTP/1.0\r\nhost: a.example\r\nx-case: CASE\r\nconnection: keep-alive\r\n\
         transfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"
    );
    cases.push(case("a coding in HTTP/1.0", old, BAD));
    cases
}

fn lengths() -> Vec<Case> {
    let bad = [
        "+5",
        "-5",
        "5,5",
        "5, 5",
        "5,6",
        "0x5",
        "5 5",
        "",
        "5a",
        "5.0",
        "\"5\"",
        "99999999999999999999999999",
        "5\r\ncontent-length: 6",
        "6\r\ncontent-length: 5",
        "5\r\ncontent-length: x",
        "5\r\n 5",
    ];
    let mut cases: Vec<Case> = bad
        .iter()
        .map(|length| post(&format!("content-length: {length}"), "hello", BAD))
        .collect();
    cases.push(post("content-length : 5", "hello", BAD));
    cases.push(post("content-length: 005", "hello", posted("hello")));
    cases.push(post(
        "content-length: 18446744073709551615",
        "hello",
        Expect::Refused(&[400, 413, 431]),
    ));
    cases
}

fn sizes() -> Vec<Case> {
    let huge = "x".repeat(40_000);
    let lines = |count: usize| -> String {
        let lines: Vec<String> = (0..count).map(|n| format!("x-{n}: 1")).collect();
        lines.join("\r\n")
    };
    let large = || Expect::Refused(&[431]);
    let mut cases = vec![
        case(
            "huge field",
            field(format!("x-a: {huge}"), BAD).bytes,
            large(),
        ),
        case("huge name", field(format!("{huge}: 1"), BAD).bytes, large()),
        case(
            "huge target",
            bad_target(&format!("/{huge}")).bytes,
            large(),
        ),
        case(
            "huge host",
            host(&format!("host: {huge}"), BAD).bytes,
            large(),
        ),
        case(
            "endless line",
            "x".repeat(100_000),
            Expect::Refused(&[400, 431]),
        ),
        case(
            "98 fields",
            field(lines(97), BAD).bytes,
            one("GET /f HTTP/1.1", ""),
        ),
        case("101 fields", field(lines(98), BAD).bytes, large()),
        case("1000 fields", field(lines(1000), BAD).bytes, large()),
        post("content-length: 1048577", "", Expect::TooLarge),
    ];
    let body = "x".repeat(1 << 20);
    cases.push(post("content-length: 1048576", &body, posted(&body)));
    cases.push(post(
        "transfer-encoding: chunked",
        &format!("100001\r\n{body}x\r\n0\r\n\r\n{HIDDEN}"),
        Expect::TooLarge,
    ));
    cases
}

fn chunks() -> Vec<Case> {
    let chunked = |body: &str, expect| post("transfer-encoding: chunked", body, expect);
    let mut cases = vec![
        chunked("5\r\nhello\r\n0\r\n\r\n", posted("hello")),
        chunked("5;a=b\r\nhello\r\n0;c\r\n\r\n", posted("hello")),
        chunked("00005\r\nhello\r\n0\r\nx: y\r\n\r\n", posted("hello")),
    ];
    let long_extension = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(20_000));
    let broken = [
        "zz\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        "5\nhello\n0\n\n",
        "5\r\nhelloXX0\r\n\r\n",
        "5\r\nhello!\r\n0\r\n\r\n",
        "4\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "ffffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "5;\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n",
        "5\r\nhello\r\n0\r\nbad trailer\0\r\n\r\n",
        &long_extension,
    ];
    cases.extend(broken.iter().map(|body| chunked(body, Expect::Broken)));
    cases
}

fn smuggling() -> Vec<Case> {
    let length = format!("content-length: {}", HIDDEN.len());
    let chunk = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
    let large = HIDDEN.repeat(5000);
    let with_length = |fields: &str| format!("{fields}\r\n{length}");
    let get =
        format!("GET /g HTTP/1.1\r\nhost: a.example\r\nx-case: CASE\r\n{length}\r\n\r\n{HIDDEN}");
    let two = "GET /first HTTP/1.1\r\nhost: a.example\r\nx-case: CASE\r\n\r\n\
               GET /second HTTP/1.1\r\nhost: a.example\r\nx-case: CASE\r\n\r\n";
    vec![
        case("two in a row", two, Expect::Two),
        post(&length, HIDDEN, posted(HIDDEN)),
        post(
            &with_length("transfer-encoding: chunked"),
            &format!("0\r\n\r\n{HIDDEN}"),
            BAD,
        ),
        post(
            &format!("{length}\r\ntransfer-encoding: chunked"),
            &chunk,
            BAD,
        ),
        post(
            "content-length: 4\r\ntransfer-encoding: chunked",
            &chunk,
            BAD,
        ),
        post(
            "transfer-encoding: chunked\r\ncontent-length: 0",
            &chunk,
            BAD,
        ),
        post(&format!("{length}\r\n{length}"), HIDDEN, BAD),
        post("transfer-encoding: chunked", &chunk, posted(HIDDEN)),
        post(
            &format!("content-length: {}", large.len()),
            &large,
            posted(&large),
        ),
        post(&with_length("expect: 100-continue"), HIDDEN, posted(HIDDEN)),
        post(
            &with_length("connection: upgrade\r\nupgrade: websocket"),
            HIDDEN,
            posted(HIDDEN),
        ),
        post(
            &with_length(
                "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__",
            ),
            HIDDEN,
            posted(HIDDEN),
        ),
        case("a body on GET", get, one("GET /g HTTP/1.1", HIDDEN)),
        post(
            &format!("connection: content-length\r\n{length}"),
            HIDDEN,
            posted(HIDDEN),
        ),
    ]
}
