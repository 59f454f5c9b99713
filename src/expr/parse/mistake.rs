//! What is wrong, in words, where the grammar alone can tell.

use super::super::Error;
use super::super::ast::Op;
use super::super::function::function;
use super::super::suggest::nearest;
use super::super::token::Span;

/// A mistake.
pub(super) fn error(span: Span, message: impl Into<String>, help: Option<&str>) -> Error {
    Error {
        span,
        message: message.into(),
        help: help.map(str::to_owned),
    }
}

/// A word that stands where an operator should.
pub(super) fn unknown_operator(span: Span, word: &str) -> Error {
    if let Some(spec) = function(word) {
        let message = format!("`{word}` is a function, not an operator");
        return error(span, message, Some(&format!("write `{}`", spec.signature)));
    }
    if word.contains('.') {
        let message = format!("an operator is missing before `{word}`");
        let help = "compare with `eq`, `in` and others, or join tests with `and`, `xor` or `or`";
        return error(span, message, Some(help));
    }
    let words = Op::SPELLINGS
        .iter()
        .map(|(word, _)| *word)
        .chain(["and", "or", "xor"]);
    let message = match nearest(&word.to_ascii_lowercase(), words) {
        Some(near) => format!("unknown operator `{word}`; did you mean `{near}`?"),
        None => format!("unknown operator `{word}`"),
    };
    error(span, message, None)
}
