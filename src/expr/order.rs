//! Puts cheap tests before expensive ones. `and` and `or` stop at the first part that decides, and
//! tests have no side effects, so the order of their parts is free.

use super::term::{BoolTerm, BytesTerm, BytesTest, IntTerm, IpTerm, StringSource};
use super::{FieldId, FieldScheme};

/// The cost of running a regex.
const REGEX: usize = 300;
/// The cost of searching a string.
const SEARCH: usize = 100;
/// The cost of building a string, or of reading a list.
const MAKE: usize = 200;

/// Sorts the parts of `and` and `or` by cost. Parts of equal cost keep their order.
pub(super) fn cheap_first(test: BoolTerm, scheme: &dyn FieldScheme) -> BoolTerm {
    let sorted = |parts: Vec<BoolTerm>| -> Vec<BoolTerm> {
        let mut parts: Vec<BoolTerm> = parts
            .into_iter()
            .map(|part| cheap_first(part, scheme))
            .collect();
        let prices = Prices(scheme);
        parts.sort_by_cached_key(|part| prices.of(part));
        parts
    };
    match test {
        BoolTerm::And(parts) => BoolTerm::And(sorted(parts)),
        BoolTerm::Or(parts) => BoolTerm::Or(sorted(parts)),
        BoolTerm::Not(inner) => BoolTerm::Not(Box::new(cheap_first(*inner, scheme))),
        other => other,
    }
}

/// The costs of tests, as a rough number of instructions above that of a plain comparison.
struct Prices<'s>(&'s dyn FieldScheme);

// === impl Prices ===

impl Prices<'_> {
    fn of(&self, test: &BoolTerm) -> usize {
        match test {
            BoolTerm::Const(_) | BoolTerm::Kept(_) => 0,
            BoolTerm::Field(field, _) => self.field(*field),
            BoolTerm::Not(inner) => self.of(inner),
            BoolTerm::And(parts) | BoolTerm::Xor(parts) | BoolTerm::Or(parts) => {
                parts.iter().map(|part| self.of(part)).sum()
            }
            BoolTerm::Bytes(term, test) => self.bytes(term) + comparison(test),
            BoolTerm::Int(term, _) => self.int(term),
            BoolTerm::Ip(IpTerm::Field(field) | IpTerm::Network(field, ..), _) => {
                self.field(*field)
            }
            BoolTerm::Any(source, _) | BoolTerm::All(source, _) => MAKE + self.source(source),
        }
    }

    fn field(&self, field: FieldId) -> usize {
        self.0.read_cost(field)
    }

    fn bytes(&self, term: &BytesTerm) -> usize {
        match term {
            BytesTerm::Field(field) => self.field(*field),
            BytesTerm::Element(source, _) => self.source(source),
            BytesTerm::Only { field, .. } => self.field(*field),
            BytesTerm::Item | BytesTerm::Literal(_) => 0,
            BytesTerm::Changed(_, inner) => SEARCH + self.bytes(inner),
            BytesTerm::Text(_) | BytesTerm::Concat(_) | BytesTerm::Join(..) => MAKE,
        }
    }

    fn int(&self, term: &IntTerm) -> usize {
        match term {
            IntTerm::Field(field) => self.field(*field),
            IntTerm::Literal(_) => 0,
            IntTerm::Len(text) => self.bytes(text),
            IntTerm::Count(source) => MAKE + self.source(source),
            IntTerm::Json(text, _) => REGEX + self.bytes(text),
        }
    }

    fn source(&self, source: &StringSource) -> usize {
        match source {
            StringSource::Field { field, .. } => self.field(*field),
            StringSource::Split { text, .. } => SEARCH + self.bytes(text),
            StringSource::Chain(_) => MAKE,
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
