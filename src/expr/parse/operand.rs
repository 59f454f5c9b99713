//! Operands: fields, calls and the indexes after them.

use super::super::ast::{
    CompareOp, ExprNode, IndexKind, LiteralKind, Operand, OperandBase, ValueIndex,
};
use super::super::lex::{Span, TokenKind};
use super::super::literal::LiteralUse;
use super::super::literal::UnquotedLiteral;
use super::{Parsed, Parser, error, fail, is_reserved};
use crate::expr::ExprError;

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

    fn base(&mut self) -> Parsed<OperandBase> {
        if let Some(literal) = self.literal(LiteralUse::Plain)? {
            return Ok(OperandBase::Literal(literal));
        }
        let name_span = self.here();
        match self.peek() {
            Some(TokenKind::Name(name)) if !is_reserved(name) => {
                self.at += 1;
                let name = name.clone();
                let open = self.here();
                if !self.take("(") {
                    return Ok(OperandBase::Field(name));
                }
                let args = self.args(open)?;
                Ok(OperandBase::Call {
                    name,
                    name_span,
                    args,
                })
            }
            // Other languages write variables like this; the checker suggests the field's name.
            Some(TokenKind::List(name)) => {
                self.at += 1;
                Ok(OperandBase::Field(format!("${name}").into()))
            }
            _ => Err(self.no_operand()),
        }
    }

    fn no_operand(&self) -> ExprError {
        let (span, message) = match self.peek() {
            None if self.tokens.is_empty() => (self.found(), "the expression is empty".into()),
            None => (
                self.found(),
                "a field or a function is missing after this".into(),
            ),
            Some(TokenKind::Sign("{")) => (
                self.here(),
                "a set or a list is allowed only after `in`".into(),
            ),
            Some(TokenKind::Name(word)) => (
                self.here(),
                format!("a field or a function is missing before `{word}`"),
            ),
            Some(TokenKind::Sign(sign)) => (
                self.here(),
                format!("a field or a function is missing before `{sign}`"),
            ),
            Some(_) => (self.here(), "a field or a function is missing here".into()),
        };
        let help = match self.peek() {
            Some(TokenKind::Sign("*")) => Some("every request is `true`"),
            Some(TokenKind::Name(word)) if CompareOp::spelt(word).is_some() => {
                Some("each test has its own field: `http.host eq \"a\" or http.host eq \"b\"`")
            }
            _ => None,
        };
        error(span, message, help)
    }

    /// Refuses a value directly after another.
    fn comma(&mut self) -> Parsed<()> {
        match self.peek() {
            Some(TokenKind::Text { .. } | TokenKind::Atom(_)) => fail(
                self.here(),
                "a comma is missing before this",
                Some("arguments are separated by `,`"),
            ),
            _ => Ok(()),
        }
    }

    fn args(&mut self, open: Span) -> Parsed<Vec<ExprNode>> {
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

    fn index(&mut self) -> Parsed<Option<ValueIndex>> {
        let open = self.here();
        if !self.take("[") {
            return Ok(None);
        }
        let kind = self.index_kind()?;
        self.close("]", open.clone())?;
        Ok(Some(ValueIndex {
            span: open.start..self.last_end(),
            kind,
        }))
    }

    fn index_kind(&mut self) -> Parsed<IndexKind> {
        if self.take("*") {
            return Ok(IndexKind::Every);
        }
        let span = self.found();
        let literal = self.literal(LiteralUse::Plain)?.map(|literal| literal.kind);
        let at = match literal {
            Some(LiteralKind::Text { bytes, .. }) => return Ok(IndexKind::Name(bytes)),
            Some(LiteralKind::Atom(UnquotedLiteral::Int(at))) => i32::try_from(at).ok(),
            _ => None,
        };
        let help = Some("write `[\"name\"]`, `[0]` or `[*]`");
        at.map(IndexKind::At)
            .ok_or_else(|| error(span, "this cannot be an index", help))
    }
}
