//! Cheap tests before dear ones. `and` and `or` stop at the first part that decides, and no test
//! changes anything, so the order of their parts is free.

use super::term::{Bytes, BytesTest, Int, Ip, Source, Test};
use super::{FieldId, Scheme};

/// Runs a regex.
const REGEX: usize = 300;
/// Looks at a string in every place.
const SEARCH: usize = 100;
/// Makes a string of its own, or reads a list.
const MAKE: usize = 200;

/// The same test, with the parts of `and` and `or` by what they cost. Those that cost the same
/// stay as they were written.
pub(super) fn cheap_first(test: Test, scheme: &dyn Scheme) -> Test {
    let sorted = |parts: Vec<Test>| -> Vec<Test> {
        let mut parts: Vec<Test> = parts
            .into_iter()
            .map(|part| cheap_first(part, scheme))
            .collect();
        let prices = Prices(scheme);
        parts.sort_by_cached_key(|part| prices.of(part));
        parts
    };
    match test {
        Test::And(parts) => Test::And(sorted(parts)),
        Test::Or(parts) => Test::Or(sorted(parts)),
        Test::Not(inner) => Test::Not(Box::new(cheap_first(*inner, scheme))),
        other => other,
    }
}

/// What things cost, in instructions, roughly and beside a plain comparison.
struct Prices<'s>(&'s dyn Scheme);

// === impl Prices ===

impl Prices<'_> {
    fn of(&self, test: &Test) -> usize {
        match test {
            Test::Const(_) | Test::Kept(_) => 0,
            Test::Field(field, _) => self.field(*field),
            Test::Not(inner) => self.of(inner),
            Test::And(parts) | Test::Xor(parts) | Test::Or(parts) => {
                parts.iter().map(|part| self.of(part)).sum()
            }
            Test::Bytes(term, test) => self.bytes(term) + comparison(test),
            Test::Int(term, _) => self.int(term),
            Test::Ip(Ip::Field(field) | Ip::Network(field, ..), _) => self.field(*field),
            Test::Any(source, _) | Test::All(source, _) => MAKE + self.source(source),
        }
    }

    fn field(&self, field: FieldId) -> usize {
        self.0.read_cost(field)
    }

    fn bytes(&self, term: &Bytes) -> usize {
        match term {
            Bytes::Field(field) => self.field(*field),
            Bytes::Element(source, _) => self.source(source),
            Bytes::Item | Bytes::Literal(_) => 0,
            Bytes::Changed(_, inner) => SEARCH + self.bytes(inner),
            Bytes::Text(_) | Bytes::Concat(_) | Bytes::Join(..) => MAKE,
        }
    }

    fn int(&self, term: &Int) -> usize {
        match term {
            Int::Field(field) => self.field(*field),
            Int::Literal(_) => 0,
            Int::Len(text) => self.bytes(text),
            Int::Count(source) => MAKE + self.source(source),
            Int::Json(text, _) => REGEX + self.bytes(text),
        }
    }

    fn source(&self, source: &Source) -> usize {
        match source {
            Source::Field { field, .. } => self.field(*field),
            Source::Split { text, .. } => SEARCH + self.bytes(text),
            Source::Chain(_) => MAKE,
        }
    }
}

fn comparison(test: &BytesTest) -> usize {
    match test {
        BytesTest::Matches(_) => REGEX,
        BytesTest::Wildcard(_) | BytesTest::Contains(_) => SEARCH,
        _ => 0,
    }
}
