//! What is wrong with a file: a list of mistakes, each with its place and what would be right.

use std::ops::Range;

use super::{Source, render};

/// Nobody reads more at once.
const MOST_SHOWN: usize = 100;

/// The mistakes of one file. Nothing is printed here.
///
/// What cannot be read is told once: what is said later about the same lines, and what may be
/// missing only because of them, is an echo that nobody sees.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    echoes: Vec<Diagnostic>,
    torn: Vec<Torn>,
    /// A whole file is not there.
    without_a_file: bool,
}

/// Lines that cannot be read, and the file that they stand in.
#[derive(Clone, Debug)]
struct Torn {
    lines: Range<usize>,
    file: Range<usize>,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the file can be used all the same.
    pub severity: Severity,
    /// Where, in bytes of the file.
    pub span: Range<usize>,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What would be right, a line each.
    pub help: Vec<String>,
    /// Other places that matter.
    pub related: Vec<Related>,
}

/// Another place that a mistake has to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
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
        let echo = self.without_a_file || !self.torn.is_empty();
        self.add(Severity::Error, span, message.into(), echo)
    }

    /// Adds a warning; help can be added to what comes back.
    pub fn warning(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let echo = self.is_torn(&span);
        self.add(Severity::Warning, span, message.into(), echo)
    }

    /// Notes that these lines of a file cannot be read; why was told.
    pub(super) fn tear(&mut self, lines: Range<usize>, file: Range<usize>) {
        self.torn.push(Torn { lines, file });
    }

    /// Notes that a whole file cannot be read; why was told.
    pub(super) fn lose_a_file(&mut self) {
        self.without_a_file = true;
    }

    /// Whether something of the table at `span` may stand in lines of its file that cannot be read.
    pub(super) fn may_lack(&self, span: &Range<usize>) -> bool {
        let mut files = self.torn.iter().map(|torn| &torn.file);
        files.any(|file| file.start <= span.start && span.start <= file.end)
    }

    /// Whether what stands at `span` was not read as it was meant.
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

    /// The text for people: each begins with `FILE:LINE:COLUMN: error: MESSAGE`, then comes the
    /// line with the place marked, then help. Of very many, the first hundred.
    pub fn render(&self, source: &Source, color: bool) -> String {
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
            span,
            message,
            help: Vec::new(),
            related: Vec::new(),
        });
        list.last_mut().expect("one was just pushed")
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
        self.related.push(Related {
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
