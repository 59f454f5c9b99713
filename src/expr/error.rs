//! Error messages that need only the grammar, with suggestions.

use strsim::osa_distance;

use super::ExprError;
use super::ast::CompareOp;
use super::function::function;
use super::lex::Span;

/// Builds an error.
pub(super) fn error(span: Span, message: impl Into<String>, help: Option<&str>) -> ExprError {
    ExprError {
        span,
        message: message.into(),
        help: help.map(str::to_owned),
    }
}

/// Builds an error as the result of a parser.
pub(super) fn fail<T>(
    span: Span,
    message: impl Into<String>,
    help: Option<&str>,
) -> Result<T, ExprError> {
    Err(error(span, message, help))
}

/// The error for `not` after a field.
pub(super) fn turned_round(span: Span, field: &str, operator: &str) -> ExprError {
    let help = format!("write `not {field} {operator} …`");
    error(span, "`not` goes before the whole test", Some(&help))
}

/// The error for anything but a set or a list after `in`.
pub(super) fn no_set(span: Span, found: &str) -> ExprError {
    let help = match found {
        "(" | "[" => "a set has braces and no commas: `in {\"a\" \"b\"}`".to_owned(),
        one if one.starts_with(|c: char| c.is_ascii_digit() || c == '"') => {
            format!("write `in {{{one}}}`")
        }
        name if name != "in" && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
            format!("write `in ${name}` for the list, or `in {{\"{name}\"}}`")
        }
        _ => "write `in {1 2 5..9}` or `in $office`".to_owned(),
    };
    error(span, "`in` needs a set or a list", Some(&help))
}

/// The error for an item of a set that is not a value.
pub(super) fn no_item(span: Span, found: &str) -> ExprError {
    let word = found.starts_with(|c: char| c.is_ascii_alphabetic());
    let help = word.then(|| format!("strings need double quotes: `\"{found}\"`"));
    error(span, "a set can contain only values", help.as_deref())
}

/// Operators of other languages, and their equivalents here.
const FOREIGN: &[(&str, &str)] = &[
    ("is equals equal eql", "eq"),
    ("isnt neq", "ne"),
    ("like ilike glob", "wildcard"),
    ("has includes include", "contains"),
    ("regex regexp rlike match", "matches"),
];

/// The error for an unknown word in the position of an operator.
pub(super) fn unknown_operator(span: Span, word: &str) -> ExprError {
    if let Some(spec) = function(word) {
        let message = format!("`{word}` is a function, not an operator");
        return error(span, message, Some(&spec.usage()));
    }
    if word.contains('.') {
        let message = format!("an operator is missing before `{word}`");
        let help = "compare with `eq`, `in` and others, or join tests with `and`, `xor` or `or`";
        return error(span, message, Some(help));
    }
    let lower = word.to_ascii_lowercase();
    let foreign = FOREIGN
        .iter()
        .find(|(theirs, _)| theirs.split(' ').any(|one| one == lower));
    if let Some((_, ours)) = foreign {
        let message = format!("unknown operator `{word}`; did you mean `{ours}`?");
        let stars = "`*` matches anything: `wildcard \"/login*\"`";
        return error(span, message, (*ours == "wildcard").then_some(stars));
    }
    let words = CompareOp::SPELLINGS
        .iter()
        .map(|(word, _)| *word)
        .chain(["and", "or", "xor"]);
    let message = format!("unknown operator `{word}`{}", did_you_mean(&lower, words));
    error(span, message, None)
}

/// The known name nearest to `name`. `None` if none is near enough.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let suffix = format!(".{name}");
    let limit = name.chars().count() / 3 + 1;
    let distance = |candidate: &str| {
        if candidate.ends_with(&suffix) {
            1
        } else {
            osa_distance(name, candidate)
        }
    };
    let best = known
        .into_iter()
        .map(|candidate| (distance(candidate), candidate));
    let (distance, candidate) = best.min_by_key(|(distance, _)| *distance)?;
    (distance <= limit && distance < candidate.chars().count()).then_some(candidate)
}

/// The end of a message about an unknown name: the nearest known one, or an empty string.
pub(super) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(name, known).map(|near| format!("; did you mean `{near}`?"));
    near.unwrap_or_default()
}
