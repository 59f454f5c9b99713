//! An error with its position, for programs.

use super::{ConfigSource, Diagnostic};

/// An error with its position, as JSON shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedError {
    /// The path of the file.
    pub file: String,
    /// The line, starting at 1.
    pub line: usize,
    /// The column in characters, starting at 1.
    pub column: usize,
    /// The number of characters in the span, at least 1. A span ends at the end of its first line.
    pub length: usize,
    /// The message, without a final full stop, and the first suggested fix.
    pub message: String,
    /// The line that contains the span.
    pub source: String,
}

// === impl LocatedError ===

impl LocatedError {
    /// Locates an error in its source.
    pub(super) fn new(error: &Diagnostic, source: &ConfigSource) -> Self {
        let span = source.clamp(error.span.clone());
        let at = source.position(span.start);
        let file = source.part(span.start);
        let line = file.text.lines().nth(at.line - 1).unwrap_or_default();
        let marked = source.slice(span).lines().next().unwrap_or_default();
        let mut message = error.message.clone();
        if let Some(help) = error.help.first() {
            message = format!("{message}; {help}");
        }
        Self {
            file: file.path.to_owned(),
            line: at.line,
            column: at.column,
            length: marked.chars().count().max(1),
            message,
            source: line.to_owned(),
        }
    }
}
