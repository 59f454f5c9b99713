//! Whether a test can still hold while some fields are unknown, in three-valued logic: a test is true, false
//! or unknown.
//!
//! A comparison that reads an unknown field is unknown, and so is `any` or `all` with such a comparison. `not`,
//! `and`, `or` and `xor` follow Kleene: `false and unknown` is false, `true or unknown` is true, everything
//! else with an unknown part is unknown. So a test that is false here is false for every value of the unknown
//! fields.

use super::FieldId;
use super::compile::{self, EvalContext};
use super::term::{BoolTerm, BytesTerm, CompiledTerm, EachTerm, IntTerm, IpTerm, StringSource};

/// A compiled test in three-valued logic. `None` means unknown.
pub(super) type Judgement = Box<dyn for<'a> Fn(&EvalContext<'a>) -> Option<bool> + Send + Sync>;

/// Compiles `test` for a context in which `is_unknown` fields have no value yet. `None` if it reads no such
/// field.
pub(super) fn judgement(
    test: &BoolTerm,
    is_unknown: &dyn Fn(FieldId) -> bool,
) -> Option<Judgement> {
    let reads = Reads(is_unknown);
    reads.test(test).then(|| judge(test.clone(), &reads))
}

fn judge(test: BoolTerm, unknown: &Reads<'_>) -> Judgement {
    if !unknown.test(&test) {
        let check = compile::test(test);
        return Box::new(move |context| Some(check(context)));
    }
    let all = |parts: Vec<BoolTerm>| -> Box<[Judgement]> {
        parts.into_iter().map(|part| judge(part, unknown)).collect()
    };
    match test {
        BoolTerm::Not(inner) => {
            let inner = judge(*inner, unknown);
            Box::new(move |context| inner(context).map(|holds| !holds))
        }
        BoolTerm::And(parts) => until(all(parts), false),
        BoolTerm::Or(parts) => until(all(parts), true),
        BoolTerm::Xor(parts) => {
            let parts = all(parts);
            Box::new(move |context| {
                let mut parts = parts.iter();
                parts.try_fold(false, |odd, part| Some(odd ^ part(context)?))
            })
        }
        _ => Box::new(|_| None),
    }
}

/// Joins parts of which one with the value `decisive` decides: `false` for `and`, `true` for `or`.
fn until(parts: Box<[Judgement]>, decisive: bool) -> Judgement {
    Box::new(move |context| {
        let mut joined = Some(!decisive);
        for part in &parts {
            match part(context) {
                Some(holds) if holds == decisive => return Some(decisive),
                Some(_) => {}
                None => joined = None,
            }
        }
        joined
    })
}

/// Finds the terms that read certain fields.
struct Reads<'f>(&'f dyn Fn(FieldId) -> bool);

// === impl Reads ===

impl Reads<'_> {
    fn field(&self, field: FieldId) -> bool {
        (self.0)(field)
    }

    fn test(&self, test: &BoolTerm) -> bool {
        match test {
            BoolTerm::Const(_) | BoolTerm::Kept(_) => false,
            BoolTerm::Field(field, _) => self.field(*field),
            BoolTerm::Not(inner) => self.test(inner),
            BoolTerm::And(parts) | BoolTerm::Xor(parts) | BoolTerm::Or(parts) => {
                parts.iter().any(|part| self.test(part))
            }
            BoolTerm::Bytes(term, _) => self.bytes(term),
            BoolTerm::Int(term, _) => self.int(term),
            BoolTerm::Ip(term, _) => self.ip(term),
            BoolTerm::Any(source, each) | BoolTerm::All(source, each) => {
                self.source(source) || self.each(each)
            }
        }
    }

    fn each(&self, each: &EachTerm) -> bool {
        self.test(&each.test) || each.kept.iter().any(|kept| self.test(kept))
    }

    fn bytes(&self, term: &BytesTerm) -> bool {
        match term {
            BytesTerm::Item | BytesTerm::Literal(_) => false,
            BytesTerm::Field(field) | BytesTerm::Only { field, .. } => self.field(*field),
            BytesTerm::Element(source, _) => self.source(source),
            BytesTerm::Changed(_, inner) => self.bytes(inner),
            BytesTerm::Text(term) => self.term(term),
            BytesTerm::Concat(terms) => terms.iter().any(|term| self.term(term)),
            BytesTerm::Join(source, each, _) => self.source(source) || self.term(each),
        }
    }

    fn int(&self, term: &IntTerm) -> bool {
        match term {
            IntTerm::Literal(_) => false,
            IntTerm::Field(field) => self.field(*field),
            IntTerm::Len(text) | IntTerm::Json(text, _) => self.bytes(text),
            IntTerm::Count(source) => self.source(source),
        }
    }

    fn ip(&self, term: &IpTerm) -> bool {
        let (IpTerm::Field(field) | IpTerm::Network(field, ..)) = term;
        self.field(*field)
    }

    fn source(&self, source: &StringSource) -> bool {
        match source {
            StringSource::Field { field, .. } => self.field(*field),
            StringSource::Split { text, .. } => self.bytes(text),
            StringSource::Chain(links) => {
                let mut links = links.iter();
                links.any(|(source, each)| self.source(source) || self.term(each))
            }
        }
    }

    fn term(&self, term: &CompiledTerm) -> bool {
        match term {
            CompiledTerm::Bytes(term) => self.bytes(term),
            CompiledTerm::Int(term) => self.int(term),
            CompiledTerm::Ip(term) => self.ip(term),
            CompiledTerm::Bool(test) => self.test(test),
            CompiledTerm::Many(source, each) => self.source(source) || self.each(each),
            CompiledTerm::List(source, each) => self.source(source) || self.term(each),
            CompiledTerm::Map(spec) => self.field(spec.id),
            CompiledTerm::Regex(_) => false,
        }
    }
}
