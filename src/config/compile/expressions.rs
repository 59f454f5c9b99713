//! `[expressions]`: checks each definition by itself, so that one without a use is checked too and
//! an error in one is reported once.

use super::CompileContext;
use super::keys::{KeyCompiler, report};
use crate::config::file::NamedExpression;
use crate::expr::{self, ExprEnv, ExprForm};
use crate::facts::fields::FieldTable;

/// Checks the named expressions. Each must be a complete test or a complete value.
pub fn check(expressions: &[NamedExpression], keys: &KeyCompiler<'_>, cx: &mut CompileContext<'_>) {
    let env = ExprEnv {
        scheme: &FieldTable,
        lists: keys.lists,
        allow_response: true,
    };
    for named in expressions.iter().filter(|named| !named.text.is_broken()) {
        let source = &named.text.value;
        let Err(errors) = expr::predicate(source, &env) else {
            continue;
        };
        let errors = match expr::expr_form(source) {
            Ok(ExprForm::Value) => expr::scalar(source, &env).err().unwrap_or_default(),
            _ => errors,
        };
        report(&named.text, errors, cx);
    }
}
