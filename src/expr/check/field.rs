//! Names to fields.

use super::super::function::{function, functions};
use super::super::suggest::nearest;
use super::super::term::{Bytes, Int, Ip, Source, Term, Test};
use super::super::{FieldSpec, Phase};
use super::{Checker, Shape, Span, Type, bool};

// === impl Checker ===

impl Checker<'_> {
    pub(super) fn field(&mut self, name: &str, span: &Span) -> Option<Shape> {
        let Some(spec) = self.env.scheme.field(name) else {
            return match self.env.scheme.refusal(name) {
                Some(refusal) => self.fail(span, refusal),
                None => self.no_field(name, span),
            };
        };
        if spec.phase == Phase::Response && !self.env.allow_response {
            let message = format!("`{name}` is known only after the answer; use it in `count`");
            return self.fail(span, message);
        }
        self.reads.fields.push(spec.id);
        self.reads.response |= spec.phase == Phase::Response;
        Some(match spec.ty {
            Type::Bytes => Shape::One(Term::Bytes(Bytes::Field(spec.id))),
            Type::Int => Shape::One(Term::Int(Int::Field(spec.id))),
            Type::Ip => Shape::One(Term::Ip(Ip::Field(spec.id))),
            Type::Bool => bool(Test::Field(spec.id, true)),
            Type::Array => Shape::List(
                Source::Field {
                    field: spec.id,
                    name: None,
                },
                Term::Bytes(Bytes::Item),
            ),
            Type::Map => Shape::Map(spec),
        })
    }

    fn no_field(&mut self, name: &str, span: &Span) -> Option<Shape> {
        if name.starts_with('$') {
            return self.fail(span, "a set or a list stands after `in`");
        }
        if function(name).is_some() {
            return self.fail(span, format!("`{name}` is a function; write `{name}(…)`"));
        }
        let fields = self.env.scheme.names();
        let known = fields
            .into_iter()
            .chain(functions().iter().map(|spec| spec.name));
        match nearest(name, known) {
            Some(near) => self.fail(
                span,
                format!("unknown field `{name}`; did you mean `{near}`?"),
            ),
            None => self.fail_with(
                span,
                format!("unknown field `{name}`"),
                "`lockgate fields` lists them all; strings stand in double quotes",
            ),
        }
    }

    /// The list of values that a map has under `name`.
    pub(super) fn entry(&mut self, spec: &FieldSpec, name: &[u8], span: &Span) -> Option<Shape> {
        let Ok(text) = std::str::from_utf8(name) else {
            return self.fail(span, "the name of an entry must be UTF-8");
        };
        let text = match spec.names_ignore_case {
            true => text.to_ascii_lowercase(),
            false => text.to_owned(),
        };
        let name = Some(text.as_bytes().into());
        let entry = (spec.id, text.into_boxed_str());
        if !self.reads.entries.contains(&entry) {
            self.reads.entries.push(entry);
        }
        Some(Shape::List(
            Source::Field {
                field: spec.id,
                name,
            },
            Term::Bytes(Bytes::Item),
        ))
    }
}
