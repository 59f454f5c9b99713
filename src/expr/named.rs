//! Finds the named expressions that a source uses. The caller knows their definitions,
//! replaces each name by its text, and maps spans back.

use std::ops::Range;

use super::ExprError;
use super::ast::{CompareOp, NodeKind};
use super::error::error;
use super::lex::{TokenKind, lex};
use super::parse;

/// The use of a named expression, such as `@login`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedUse {
    /// The name, without the `@`.
    pub name: Box<str>,
    /// The span of the name in the source, with the `@`.
    pub span: Range<usize>,
    /// Whether it stands on the right side of a comparison, where only literals are allowed.
    pub is_compared_with: bool,
}

/// The form of a complete expression, which decides how it is checked and inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExprForm {
    /// A field or a function: a value, or a boolean.
    Value,
    /// One comparison.
    Comparison,
    /// Tests under a connective or a `not`. They need parentheses inside another expression.
    Compound,
}

/// The named expressions that `source` uses, in order. Empty if the source cannot be split into
/// tokens, which its parser reports.
pub fn named_uses(source: &str) -> Vec<NamedUse> {
    let tokens = lex(source).unwrap_or_default();
    let mut uses = Vec::new();
    let mut is_compared_with = false;
    for token in &tokens {
        if let TokenKind::Named(name) = &token.kind {
            uses.push(NamedUse {
                name: name.clone(),
                span: token.span.clone(),
                is_compared_with,
            });
        }
        is_compared_with = match &token.kind {
            TokenKind::Name(word) => CompareOp::spelt(word).is_some(),
            TokenKind::Sign(sign) => CompareOp::spelt(sign).is_some(),
            _ => false,
        };
    }
    uses
}

/// The form of `source`, in which all names are already inlined, or the parser's errors.
pub fn expr_form(source: &str) -> Result<ExprForm, Vec<ExprError>> {
    let node = parse::predicate(source)?;
    Ok(match node.kind {
        NodeKind::Not(_) | NodeKind::Join(..) => ExprForm::Compound,
        NodeKind::Compare { .. } => ExprForm::Comparison,
        NodeKind::Alone(_) => ExprForm::Value,
    })
}

/// The error for a named expression that its caller did not inline.
pub(super) fn not_inlined(name: &str, span: Range<usize>) -> ExprError {
    let help = "named expressions are defined in `[expressions]` of gateway.toml";
    error(span, format!("`@{name}` is not defined here"), Some(help))
}
