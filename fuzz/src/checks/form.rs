//! Any urlencoded form: its fields are those of a decoder that goes byte by byte, however they are
//! spelled, and a name that occurs twice has no value of its own.

use http::Request;
use http::request::Parts;
use lockgate::expr::{self, ExprEnv, NamedLists, ScalarValue};
use lockgate::facts::body::MAX_FORM_FIELDS;
use lockgate::facts::{BodyKind, FieldTable, InspectedBody, RequestFacts};

use super::pairs::{Pairs, lookups_agree, respelled};
use super::sample;

/// Takes the input for the body of a request.
pub fn form(data: &[u8]) {
    let expected = decoded(data);
    with(data, true, &mut |facts| {
        assert_eq!(fields(facts), expected);
        lookups_agree(facts, "http.request.body.form", &expected);
        unique_names_are_strings(facts, &expected);
    });
    with(&respelled(&expected), true, &mut |facts| {
        assert_eq!(fields(facts), expected);
    });
    // The start of a longer body.
    with(data, false, &mut |facts| assert!(fields(facts).is_empty()));
}

fn with(body: &[u8], is_complete: bool, ask: &mut dyn FnMut(&RequestFacts<'_>)) {
    sample::plain(&parts(), &mut |facts| {
        let bytes = body.to_vec().into();
        facts.set_body(InspectedBody::new(bytes, is_complete, BodyKind::Form));
        ask(facts);
    });
}

fn parts() -> Parts {
    let request = Request::post("/login").header("host", "shop.example");
    request.body(()).expect("a request").into_parts().0
}

fn fields(facts: &RequestFacts<'_>) -> Pairs {
    let body = facts.body().expect("a body");
    let fields = body.form_fields().iter();
    fields
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect()
}

fn unique_names_are_strings(facts: &RequestFacts<'_>, pairs: &Pairs) {
    let lists = NamedLists::new();
    let env = ExprEnv {
        scheme: &FieldTable,
        lists: &lists,
        allow_response: false,
    };
    let scalar = expr::scalar("http.request.body.form[\"user\"]", &env).expect("a value");
    let mut named = pairs.iter().filter(|(name, _)| name == b"user");
    let (first, second) = (named.next(), named.next());
    let expected = first.filter(|_| second.is_none());
    let expected = expected.map(|(_, value)| ScalarValue::Bytes(value.clone().into()));
    assert_eq!(scalar.eval(facts), expected);
}

/// The fields as the WHATWG defines them, with the limit of lockgate.
fn decoded(form: &[u8]) -> Pairs {
    let pieces: Vec<&[u8]> = form.split(|byte| *byte == b'&').collect();
    if pieces.len() > MAX_FORM_FIELDS {
        return Vec::new();
    }
    let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
    pieces
        .map(|piece| {
            let mut halves = piece.splitn(2, |byte| *byte == b'=');
            let mut half = || decode(halves.next().unwrap_or_default());
            (half(), half())
        })
        .collect()
}

fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        let escaped = match (first, after) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match (escaped, first) {
            (Some((high, low)), _) => {
                out.push(high * 16 + low);
                rest = &after[2..];
            }
            (None, b'+') => out.push(b' '),
            (None, other) => out.push(*other),
        }
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}
