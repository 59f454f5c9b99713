//! The errors, warnings and notes of a file, each with a span and help.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use super::located_error::LocatedError;
use super::source::SourceFile;
use super::{ConfigSource, FilledReference, LintCode, render};

/// The maximum number of diagnostics shown at once.
const MOST_SHOWN: usize = 100;

/// The errors, warnings and notes of one file. Nothing is printed here.
///
/// A syntax error is reported once: later errors about these lines, or about settings that may be
/// missing only because of them, are not shown.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    echoes: Vec<Diagnostic>,
    torn: Vec<UnreadableLines>,
    /// Whether names of upstreams, responses and lists may be missing because of another error.
    names_hidden: bool,
    /// Silenced warnings, and the byte ranges in which they are silenced.
    allowed: Vec<(LintCode, Range<usize>)>,
    /// The values of environment variables, which may be secret: no message shows them.
    filled: Vec<FilledReference>,
}

/// Lines that the parser could not read.
#[derive(Clone, Debug)]
pub(super) struct UnreadableLines {
    lines: Range<usize>,
    /// The section that contains the lines. Its settings may be missing because of them.
    section: Range<usize>,
    /// The offset of the file with the lines. An unreadable file may hide whole sections.
    file: usize,
    /// Whether the lines may define an upstream, a response or a list.
    hides_names: bool,
}

/// One error, warning or note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the file is still usable.
    pub severity: Severity,
    /// The code of a warning. `None` for an error or a note.
    pub code: Option<LintCode>,
    /// The span, in bytes of the source.
    pub span: Range<usize>,
    /// The message, without a final full stop.
    pub message: String,
    /// Suggested fixes, one line each.
    pub help: Vec<String>,
    /// Related spans, such as an earlier definition.
    pub related: Vec<RelatedSpan>,
}

/// Another span that is related to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedSpan {
    /// The span, in bytes of the source.
    pub span: Range<usize>,
    /// Why the span is related.
    pub label: String,
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file is valid, and a setting has a consequence that the user may not expect.
    Note,
    /// The file is valid but suspicious.
    Warning,
    /// The file is unusable.
    Error,
}

// === impl Diagnostics ===

impl Diagnostics {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an error and returns it, so that help can be added.
    pub fn error(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let echo = self.is_torn(&span);
        self.add(Severity::Error, span, message.into(), echo)
    }

    /// Adds an error that something is missing in the table at `span`.
    pub fn lacks(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let echo = self.may_lack(&span);
        self.add(Severity::Error, span, message.into(), echo)
    }

    /// Adds an error that no file defines the name at `span`.
    pub fn unknown(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let echo = self.names_hidden || self.torn.iter().any(|torn| torn.hides_names);
        self.add(Severity::Error, span, message.into(), echo)
    }

    /// Adds a warning, unless [`Diagnostics::allow`] silences it, and returns it, so that help can
    /// be added.
    pub fn warning(
        &mut self,
        code: LintCode,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let allows = |(allowed, lines): &(LintCode, Range<usize>)| {
            *allowed == code && lines.contains(&span.start)
        };
        let silent = self.is_torn(&span) || self.allowed.iter().any(allows);
        let warning = self.add(Severity::Warning, span, message.into(), silent);
        warning.code = Some(code);
        warning
    }

    /// Adds a note and returns it, so that help can be added. `check` prints notes, the gateway does not log them.
    pub fn note(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let echo = self.is_torn(&span);
        self.add(Severity::Note, span, message.into(), echo)
    }

    /// Silences the warnings with this code that start within `lines`, including warnings added earlier.
    pub fn allow(&mut self, code: LintCode, lines: Range<usize>) {
        let allows = |one: &Diagnostic| one.code == Some(code) && lines.contains(&one.span.start);
        self.list.retain(|one| !allows(one));
        self.allowed.push((code, lines));
    }

    /// Marks lines that the parser could not read. Call it after adding the error about them.
    pub(super) fn tear(&mut self, torn: UnreadableLines) {
        self.torn.push(torn);
    }

    /// Marks a value that could not be read. Call it after adding the error about it.
    pub(super) fn tear_value(&mut self, value: Range<usize>) {
        self.torn.push(UnreadableLines {
            section: value.clone(),
            file: value.start,
            lines: value,
            hides_names: true,
        });
    }

    /// Adds a reference to an environment variable, whose value no message shows.
    pub(super) fn note_filled(&mut self, filled: FilledReference) {
        if !self.filled.contains(&filled) {
            self.filled.push(filled);
        }
    }

    /// Returns the references to environment variables in the file, with their values.
    pub fn filled(&self) -> &[FilledReference] {
        &self.filled
    }

    /// Marks that names may be missing because a file or a section that defines names was refused.
    pub(super) fn hide_names(&mut self) {
        self.names_hidden = true;
    }

    /// Returns whether settings of the table at `span` may be in lines that the parser could not read.
    pub(super) fn may_lack(&self, span: &Range<usize>) -> bool {
        self.torn.iter().any(|torn| {
            let whole_file = span.is_empty() && span.start == torn.file;
            whole_file || torn.section.contains(&span.start)
        })
    }

    /// Returns whether the value at `span` is in lines that the parser could not read.
    pub(super) fn is_torn(&self, span: &Range<usize>) -> bool {
        let mut lines = self.torn.iter().map(|torn| &torn.lines);
        lines.any(|lines| span.start <= lines.end && lines.start <= span.end)
    }

    /// Returns whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of diagnostics.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns whether there are errors, so that the file is unusable.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Removes each warning that equals an earlier one except for its related spans.
    pub(super) fn remove_repeated_warnings(&mut self) {
        let mut seen = BTreeSet::new();
        self.list.retain(|one| {
            let key = (one.span.start, one.span.end, one.message.clone());
            one.severity != Severity::Warning || seen.insert(key)
        });
    }

    /// Returns whether there is an error at `span` with this message.
    pub(super) fn has_error(&self, span: &Range<usize>, message: &str) -> bool {
        let errors = self.list.iter().chain(&self.echoes);
        let mut errors = errors.filter(|one| one.severity == Severity::Error);
        errors.any(|one| one.span == *span && one.message == message)
    }

    /// Returns whether there is an error within `span`.
    pub(super) fn has_error_within(&self, span: &Range<usize>) -> bool {
        let errors = self.list.iter().chain(&self.echoes);
        let mut errors = errors.filter(|one| one.severity == Severity::Error);
        errors.any(|one| span.start <= one.span.start && one.span.end <= span.end)
    }

    /// Returns all diagnostics in file order.
    pub fn sorted(&self) -> Vec<Diagnostic> {
        let mut list: Vec<_> = self
            .list
            .iter()
            .map(|one| self.without_values(one))
            .collect();
        list.sort_by_key(|d| (d.span.start, d.span.end));
        list
    }

    /// Returns a diagnostic without the values of environment variables.
    fn without_values(&self, diagnostic: &Diagnostic) -> Diagnostic {
        let mut shown = diagnostic.clone();
        self.filled.iter().for_each(|one| one.hide(&mut shown));
        shown
    }

    /// Returns the `most` most severe diagnostics in file order.
    fn most_severe(&self, most: usize) -> Vec<Diagnostic> {
        let mut list = self.sorted();
        list.sort_by_key(|d| Reverse(d.severity));
        list.truncate(most);
        list.sort_by_key(|d| (d.span.start, d.span.end));
        list
    }

    /// Returns whether there are warnings.
    pub fn has_warnings(&self) -> bool {
        self.warning_count() > 0
    }

    /// Returns the number of warnings.
    pub fn warning_count(&self) -> usize {
        let warnings = self.list.iter();
        warnings.filter(|d| d.severity == Severity::Warning).count()
    }

    /// Renders up to 100 diagnostics as text, the severe ones first if there are more: each starts with `FILE:LINE:COLUMN: error:
    /// MESSAGE`, followed by the line with the span marked, and help.
    pub fn render(&self, source: &ConfigSource, color: bool) -> String {
        let shown = self.most_severe(MOST_SHOWN).into_iter();
        let mut parts: Vec<_> = shown.map(|d| render::one(&d, source, color)).collect();
        if let Some(more) = self
            .count()
            .checked_sub(MOST_SHOWN)
            .filter(|more| *more > 0)
        {
            parts.push(format!("… and {more} more\n"));
        }
        parts.join("\n")
    }

    /// Returns the errors with their positions, in file order, at most 100.
    pub fn located_errors(&self, source: &ConfigSource) -> Vec<LocatedError> {
        let all = self.sorted().into_iter();
        let errors = all.filter(|one| one.severity == Severity::Error);
        let located = errors.map(|one| LocatedError::new(&one, source));
        located.take(MOST_SHOWN).collect()
    }

    fn add(
        &mut self,
        severity: Severity,
        span: Range<usize>,
        message: String,
        echo: bool,
    ) -> &mut Diagnostic {
        let list = if echo {
            &mut self.echoes
        } else {
            &mut self.list
        };
        list.push(Diagnostic {
            severity,
            code: None,
            span,
            message,
            help: Vec::new(),
            related: Vec::new(),
        });
        list.last_mut().expect("one was just pushed")
    }
}

// === impl UnreadableLines ===

impl UnreadableLines {
    /// Creates the unreadable lines from a range of the file's text. A broken header includes the
    /// lines below it, because their section is unknown.
    pub(super) fn new(lines: Range<usize>, part: &SourceFile<'_>) -> Self {
        let text = |range: Range<usize>| part.text.get(range).unwrap_or_default();
        let written = text(lines.clone()).trim_start();
        let broken_header = written.starts_with('[');
        let next = text(lines.end..part.text.len()).find("\n[");
        let next = next.map_or(part.text.len(), |at| lines.end + at);
        let start = if broken_header {
            lines.start
        } else {
            text(0..lines.start).rfind("\n[").map_or(0, |at| at + 1)
        };
        let end = if broken_header { next } else { lines.end };
        let whole_lines = text(lines.clone()).contains('\n');
        Self {
            hides_names: broken_header || whole_lines || written.starts_with("name"),
            lines: part.start + lines.start..part.start + end,
            section: part.start + start..part.start + next,
            file: part.start,
        }
    }

    /// Marks a whole file as unreadable.
    pub(super) fn whole(part: &SourceFile<'_>) -> Self {
        let file = part.start..part.start + part.text.len();
        Self {
            lines: file.clone(),
            file: part.start,
            section: file,
            hides_names: true,
        }
    }

    /// Returns whether the byte at `at` is in these lines.
    pub(super) fn covers(&self, at: usize) -> bool {
        self.lines.start <= at && at <= self.lines.end
    }

    /// Returns the text of the file with these lines replaced by spaces. All other bytes keep their offsets.
    pub(super) fn blank(&self, text: String, part: &SourceFile<'_>) -> String {
        let lines = self.lines.start - part.start..self.lines.end - part.start;
        let mut bytes = text.into_bytes();
        let torn = bytes.get_mut(lines).unwrap_or_default().iter_mut();
        torn.filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b' ');
        String::from_utf8(bytes).unwrap_or_default()
    }
}

// === impl Diagnostic ===

impl Diagnostic {
    /// Adds a line of help.
    pub fn help(&mut self, line: impl Into<String>) -> &mut Self {
        self.help.push(line.into());
        self
    }

    /// Adds a related span.
    pub fn related(&mut self, span: Range<usize>, label: impl Into<String>) -> &mut Self {
        self.related.push(RelatedSpan {
            span,
            label: label.into(),
        });
        self
    }
}

// === impl Severity ===

impl Severity {
    /// The word before the message.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}
