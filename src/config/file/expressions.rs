//! `[expressions]`: named parts of expressions.

use crate::config::expr_text::ExprText;
use crate::config::scalar::filled;
use crate::config::section::SectionReader;
use crate::config::{Text, schema};

use super::checked_name;

/// One of `[expressions]`.
#[derive(Clone, Debug)]
pub struct NamedExpression {
    /// The name that other expressions use after the `@`.
    pub name: Text,
    /// The expression.
    pub text: ExprText,
}

pub(super) fn expressions(s: &mut SectionReader<'_, '_>) -> Vec<NamedExpression> {
    let mut expressions = Vec::new();
    for (name, raw) in s.entries(schema::NAME) {
        let name = checked_name(s, name);
        let text = match s.entry(raw, &filled()) {
            Some(text) => ExprText::written(text),
            // A name with an error is still defined, so rules that use it get no further errors.
            None => {
                let mut text = ExprText::generated(name.span.clone());
                text.mark_broken();
                text
            }
        };
        expressions.push(NamedExpression { name, text });
    }
    expressions
}
