//! The left sides: fields, calls and what follows them in brackets.

use super::super::ast::{Base, Index, IndexKind, LiteralKind, Node, Op, Operand};
use super::super::lex::{Kind, Span};
use super::super::literal::Atom;
use super::super::literal::Reader;
use super::{Parsed, Parser, error, fail, is_reserved};
use crate::expr::Error;

// === impl Parser ===

impl Parser<'_> {
    pub(super) fn operand(&mut self) -> Parsed<Operand> {
        let span = self.here();
        let base = self.base()?;
        let base_span = span.start..self.last_end();
        let mut path = Vec::new();
        while let Some(index) = self.index()? {
            path.push(index);
        }
        Ok(Operand {
            span: span.start..self.last_end(),
            base,
            base_span,
            path,
        })
    }

    fn base(&mut self) -> Parsed<Base> {
        if let Some(literal) = self.literal(Reader::Plain)? {
            return Ok(Base::Literal(literal));
        }
        let name_span = self.here();
        match self.peek() {
            Some(Kind::Name(name)) if !is_reserved(name) => {
                self.at += 1;
                let name = name.clone();
                let open = self.here();
                if !self.take("(") {
                    return Ok(Base::Field(name));
                }
                let args = self.args(open)?;
                Ok(Base::Call {
                    name,
                    name_span,
                    args,
                })
            }
            // Elsewhere a variable is written so; the checker says what it is called here.
            Some(Kind::List(name)) => {
                self.at += 1;
                Ok(Base::Field(format!("${name}").into()))
            }
            _ => Err(self.no_operand()),
        }
    }

    fn no_operand(&self) -> Error {
        let (span, message) = match self.peek() {
            None if self.tokens.is_empty() => (self.found(), "the expression is empty".into()),
            None => (
                self.found(),
                "a field or a function is missing after this".into(),
            ),
            Some(Kind::Sign("{")) => (self.here(), "a set or a list stands after `in`".into()),
            Some(Kind::Name(word)) => (
                self.here(),
                format!("a field or a function is missing before `{word}`"),
            ),
            Some(Kind::Sign(sign)) => (
                self.here(),
                format!("a field or a function is missing before `{sign}`"),
            ),
            Some(_) => (self.here(), "a field or a function is missing here".into()),
        };
        let help = match self.peek() {
            Some(Kind::Sign("*")) => Some("every request is `true`"),
            Some(Kind::Name(word)) if Op::spelt(word).is_some() => {
                Some("each test has its own field: `http.host eq \"a\" or http.host eq \"b\"`")
            }
            _ => None,
        };
        error(span, message, help)
    }

    /// Refuses a value right behind another.
    fn comma(&mut self) -> Parsed<()> {
        match self.peek() {
            Some(Kind::Text { .. } | Kind::Atom(_)) => fail(
                self.here(),
                "a comma is missing before this",
                Some("arguments have `,` between them"),
            ),
            _ => Ok(()),
        }
    }

    fn args(&mut self, open: Span) -> Parsed<Vec<Node>> {
        let mut args = Vec::new();
        if self.take(")") {
            return Ok(args);
        }
        loop {
            args.push(self.deeper(open.clone(), Self::or)?);
            if !self.take(",") {
                self.comma()?;
                self.close(")", open)?;
                return Ok(args);
            }
        }
    }

    fn index(&mut self) -> Parsed<Option<Index>> {
        let open = self.here();
        if !self.take("[") {
            return Ok(None);
        }
        let kind = self.index_kind()?;
        self.close("]", open.clone())?;
        Ok(Some(Index {
            span: open.start..self.last_end(),
            kind,
        }))
    }

    fn index_kind(&mut self) -> Parsed<IndexKind> {
        if self.take("*") {
            return Ok(IndexKind::Every);
        }
        let span = self.found();
        let literal = self.literal(Reader::Plain)?.map(|literal| literal.kind);
        let at = match literal {
            Some(LiteralKind::Text { bytes, .. }) => return Ok(IndexKind::Name(bytes)),
            Some(LiteralKind::Atom(Atom::Int(at))) => i32::try_from(at).ok(),
            _ => None,
        };
        let help = Some("write `[\"name\"]`, `[0]` or `[*]`");
        at.map(IndexKind::At)
            .ok_or_else(|| error(span, "this cannot be an index", help))
    }
}
