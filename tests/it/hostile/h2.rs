//! The table of HTTP/2 requests: plain, and with a rule that answers all of them.

use toml::{Table, Value};

use super::recorder::{Got, Recorder};
use super::table::{self, Wanted, byte};
use super::{Mode, check_alive, count_panics, each, gateway};
use crate::harness::{END, Frames, Heard, WHOLE, block};

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "a.example"),
    (":path", "/p"),
];

/// What a client sends on one stream.
struct Case {
    name: String,
    frames: Frames,
    /// What the origin must see; `None`: nothing whole.
    wanted: Option<Wanted>,
    /// Its head is in order, so that a rule may answer.
    late: bool,
}

type Fields = Vec<(String, String)>;

#[test]
fn forwarded_streams_are_unambiguous() {
    run(Mode::Forward);
}

#[test]
fn blocked_streams_leave_no_bytes_for_the_next() {
    run(Mode::Block);
}

#[test]
fn shadowed_streams_leave_no_bytes_for_the_next() {
    run(Mode::Shadow);
}

fn run(mode: Mode) {
    count_panics();
    let (gateway, recorder) = Recorder::behind(mode.rules());
    let cases = cases();
    assert!(cases.len() >= 160, "{}", cases.len());
    let mut wrong = each(&cases, |_, case| {
        let heard = case.frames.heard(gateway.client().connect());
        let right = case.is_right(heard, mode);
        (!right).then(|| format!("{}: {heard:?}", case.name))
    });
    check_alive(&gateway);
    let mut rest = recorder.got();
    for (number, case) in cases.iter().enumerate() {
        let (own, others) = rest.into_iter().partition(|got| got.is_of(number));
        rest = others;
        let own: Vec<Got> = own;
        if !case.is_seen(&own, mode) {
            wrong.push(format!("{}: the origin got {own:#?}", case.name));
        }
    }
    let after = |got: &Got| matches!(got, Got::Whole(m) if m.line == "GET /after HTTP/1.1");
    rest.retain(|got| !after(got));
    wrong.extend(rest.iter().map(|got| format!("nobody's: {got:?}")));
    assert!(wrong.is_empty(), "{mode:?}: {} {wrong:#?}", wrong.len());
}

impl Case {
    fn is_right(&self, heard: Heard, mode: Mode) -> bool {
        match (&self.wanted, mode) {
            (Some(_), Mode::Block) => heard == Heard::Status(429),
            (Some(_), _) => heard == Heard::Status(200),
            (None, Mode::Block) if self.late => !matches!(heard, Heard::Status(..400 | 500..)),
            (None, _) => !matches!(heard, Heard::Status(..400 | 429 | 500 | 502..)),
        }
    }

    fn is_seen(&self, got: &[Got], mode: Mode) -> bool {
        match (&self.wanted, got) {
            (Some(wanted), [Got::Whole(message)]) if mode == Mode::Forward => {
                message.wanted() == *wanted
            }
            (Some(_), got) => mode != Mode::Forward && got.is_empty(),
            // It was forwarded before it was known to be bad, and then cut short.
            (None, [Got::Part(_)]) => self.late && mode == Mode::Forward,
            (None, got) => got.is_empty(),
        }
    }
}

/// All of them; the number of each is its place.
fn cases() -> Vec<Case> {
    let file = table::read(include_str!("../../data/hostile/http2.toml"));
    let cases = table::tables(&file, "case");
    cases.into_iter().enumerate().map(case).collect()
}

fn case((number, table): (usize, &Table)) -> Case {
    let mut wanted = table.clone();
    let trailing = wanted.remove("trailing");
    wanted.remove("trailers");
    wanted.extend(trailing.map(|lines| ("trailers".to_owned(), lines)));
    let accepted = table.contains_key("line");
    Case {
        name: table::text(table, "name"),
        frames: match table.get("frames") {
            Some(frames) => raw(number, frames.as_array().unwrap()),
            None => message(number, table),
        },
        wanted: accepted.then(|| table::wanted(&wanted, "a.example")),
        late: table.contains_key("late"),
    }
}

fn message(number: usize, table: &Table) -> Frames {
    let (data, trailers) = (table::strings(table, "data"), pairs(table, "trailers"));
    let alone = data.is_empty() && trailers.is_empty();
    let last = if table.contains_key("open") { 0 } else { END };
    let end = |is_last: bool| if is_last { last } else { 0 };
    let head = head(number, if alone { "GET" } else { "POST" }, table);
    let mut frames = Frames::default().frame(1, WHOLE | end(alone), 1, &encoded(&head));
    let count = data.len();
    for (n, data) in data.iter().enumerate() {
        let is_last = n + 1 == count && trailers.is_empty();
        let bytes: Vec<u8> = data.chars().map(byte).collect();
        frames = frames.data(&bytes, end(is_last));
    }
    if !trailers.is_empty() {
        frames = frames.frame(1, WHOLE | last, 1, &encoded(&trailers));
    }
    frames
}

fn head(number: usize, method: &str, table: &Table) -> Fields {
    let drop = table::strings(table, "drop");
    let mut fields: Fields = GET.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
    fields[0].1 = method.to_owned();
    for (name, value) in pairs(table, "set") {
        match fields.iter_mut().find(|(n, _)| *n == name) {
            Some(field) => field.1 = value,
            None => fields.push((name, value)),
        }
    }
    fields.retain(|(name, _)| !drop.contains(name));
    fields.push(("x-case".into(), number.to_string()));
    fields.extend(pairs(table, "add"));
    fields
}

/// Whole frames, as they are.
fn raw(number: usize, frames: &[Value]) -> Frames {
    let latin = |bytes: Vec<u8>| bytes.into_iter().map(char::from).collect::<String>();
    let whole = |method| latin(encoded(&head(number, method, &Table::new())));
    let many = latin(block(&[("x-a", "b"); 120]));
    let mut out = Frames::default();
    for frame in frames {
        let frame = frame.as_array().unwrap();
        let number = |at: usize| u32::try_from(frame[at].as_integer().unwrap()).unwrap();
        let payload = frame[3].as_str().unwrap();
        let payload = payload.replace("{get}", &whole("GET"));
        let payload = payload.replace("{post}", &whole("POST"));
        let payload = table::expand(&payload.replace("{many}", &many));
        let payload: Vec<u8> = payload.chars().map(byte).collect();
        out = out.frame(number(0) as u8, number(1) as u8, number(2), &payload);
    }
    out
}

fn pairs(table: &Table, key: &str) -> Fields {
    let pairs = table.get(key).map(|pairs| pairs.as_array().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let pairs = pairs.into_iter().flatten();
    pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

/// A header block; one character of a table is one byte.
fn encoded(fields: &Fields) -> Vec<u8> {
    let bytes = |text: &str| text.chars().map(byte).collect::<Vec<u8>>();
    let fields = fields.iter().map(|(n, v)| (bytes(n), bytes(v)));
    block(&fields.collect::<Vec<_>>())
}

#[test]
fn a_refusal_of_a_long_body_arrives_complete() {
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
fn the_number_of_headers_is_limited_as_in_http_1() {
    let gateway = gateway("");
    let many: Vec<(&str, &str)> = GET.into_iter().chain([("x-a", "b"); 120]).collect();
    let frames = Frames::default().headers(&many, END);
    assert_eq!(frames.heard(gateway.client().connect()), Heard::Status(431));
    assert_eq!(gateway.origin.count(), 0);
}
