//! What is wrong with a file: a list of mistakes, each with its span and what would be right.

use std::ops::Range;

use super::source::SourceFile;
use super::{ConfigSource, LintCode, render};

/// The most mistakes that are shown at once.
const MOST_SHOWN: usize = 100;

/// The mistakes of one file. Nothing is printed here.
///
/// A syntax error is reported once: later errors about the same lines, and about what may be missing
/// only because of them, are echoes that are not shown.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    echoes: Vec<Diagnostic>,
    torn: Vec<UnreadableLines>,
    /// Names of upstreams, responses and lists may be missing because of another error.
    names_hidden: bool,
    /// Warnings that are not wanted, and the bytes for which they are not.
    allowed: Vec<(LintCode, Range<usize>)>,
}

/// Lines that the parser could not read.
#[derive(Clone, Debug)]
pub(super) struct UnreadableLines {
    lines: Range<usize>,
    /// The section that the lines belong to: it may lack what they say.
    section: Range<usize>,
    /// Where the file with the lines begins. A whole file may lack sections.
    file: usize,
    /// Whether the lines may have named an upstream, a response or a list.
    hides_names: bool,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the file can be used all the same.
    pub severity: Severity,
    /// The code of a warning. `None` for an error.
    pub code: Option<LintCode>,
    /// Where, in bytes of the file.
    pub span: Range<usize>,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What would be right, a line each.
    pub help: Vec<String>,
    /// Other places that matter.
    pub related: Vec<RelatedSpan>,
}

/// Another place that a mistake has to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedSpan {
    /// Where, in bytes of the file.
    pub span: Range<usize>,
    /// Why it matters.
    pub label: String,
}

/// How bad a mistake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Legal, but suspicious.
    Warning,
    /// The file cannot be used.
    Error,
}

// === impl Diagnostics ===

impl Diagnostics {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an error; help can be added to what comes back.
    pub fn error(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let echo = self.is_torn(&span);
        self.add(Severity::Error, span, message.into(), echo)
    }

    /// Adds the error that something is missing in a table at `span`.
    pub fn lacks(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let echo = self.may_lack(&span);
        self.add(Severity::Error, span, message.into(), echo)
    }

    /// Adds the error that nothing has the name at `span`, in no file.
    pub fn unknown(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let echo = self.names_hidden || self.torn.iter().any(|torn| torn.hides_names);
        self.add(Severity::Error, span, message.into(), echo)
    }

    /// Adds a warning, unless [`Diagnostics::allow`] silences it; help can be added to what comes
    /// back.
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

    /// Silences the warnings with this code that start within `lines`, earlier and later ones.
    pub fn allow(&mut self, code: LintCode, lines: Range<usize>) {
        let allows = |one: &Diagnostic| one.code == Some(code) && lines.contains(&one.span.start);
        self.list.retain(|one| !allows(one));
        self.allowed.push((code, lines));
    }

    /// Marks lines that the parser could not read, after the error about them was added.
    pub(super) fn tear(&mut self, torn: UnreadableLines) {
        self.torn.push(torn);
    }

    /// Marks that names may be missing: a file, or a section that defines some, was refused.
    pub(super) fn hide_names(&mut self) {
        self.names_hidden = true;
    }

    /// Whether something of the table at `span` may stand in lines that the parser could not read.
    pub(super) fn may_lack(&self, span: &Range<usize>) -> bool {
        self.torn.iter().any(|torn| {
            let whole_file = span.is_empty() && span.start == torn.file;
            whole_file || torn.section.contains(&span.start)
        })
    }

    /// Whether the value at `span` stands in lines that the parser could not read.
    pub(super) fn is_torn(&self, span: &Range<usize>) -> bool {
        let mut lines = self.torn.iter().map(|torn| &torn.lines);
        lines.any(|lines| span.start <= lines.end && lines.start <= span.end)
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Whether the file cannot be used.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// All of them in the order of the file.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut list: Vec<_> = self.list.iter().collect();
        list.sort_by_key(|d| (d.span.start, d.span.end));
        list
    }

    /// Whether there are warnings.
    pub fn has_warnings(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Warning)
    }

    /// The text for people: each begins with `FILE:LINE:COLUMN: error: MESSAGE`, then comes the
    /// line with the place marked, then help. Of very many, the first hundred.
    pub fn render(&self, source: &ConfigSource, color: bool) -> String {
        let shown = self.sorted().into_iter().take(MOST_SHOWN);
        let mut parts: Vec<_> = shown.map(|d| render::one(d, source, color)).collect();
        if let Some(more) = self
            .count()
            .checked_sub(MOST_SHOWN)
            .filter(|more| *more > 0)
        {
            parts.push(format!("… and {more} more\n"));
        }
        parts.join("\n")
    }

    fn add(
        &mut self,
        severity: Severity,
        span: Range<usize>,
        message: String,
        echo: bool,
    ) -> &mut Diagnostic {
        let list = match echo {
            true => &mut self.echoes,
            false => &mut self.list,
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
    /// Unreadable lines of a file, as a range of its text. The lines below a broken header belong to
    /// it: whose settings they are is not known.
    pub(super) fn new(lines: Range<usize>, part: &SourceFile<'_>) -> Self {
        let text = |range: Range<usize>| part.text.get(range).unwrap_or_default();
        let written = text(lines.clone()).trim_start();
        let broken_header = written.starts_with('[');
        let next = text(lines.end..part.text.len()).find("\n[");
        let next = next.map_or(part.text.len(), |at| lines.end + at);
        let start = match broken_header {
            true => lines.start,
            false => text(0..lines.start).rfind("\n[").map_or(0, |at| at + 1),
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

    /// A whole file that the parser could not read.
    pub(super) fn whole(part: &SourceFile<'_>) -> Self {
        let file = part.start..part.start + part.text.len();
        Self {
            lines: file.clone(),
            file: part.start,
            section: file,
            hides_names: true,
        }
    }

    /// Whether the byte at `at` is in these lines.
    pub(super) fn covers(&self, at: usize) -> bool {
        self.lines.start <= at && at <= self.lines.end
    }

    /// The text of the file with spaces in place of these lines. Every other byte keeps its place.
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
    /// Adds a line about what would be right.
    pub fn help(&mut self, line: impl Into<String>) -> &mut Self {
        self.help.push(line.into());
        self
    }

    /// Adds another place that matters.
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
    /// The word in front of the message.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}
