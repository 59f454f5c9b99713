//! Renders a diagnostic like rustc: position and message, the line with the span marked, and help.

use std::ops::Range;

use annotate_snippets::renderer::{DEFAULT_ERROR_STYLE, DEFAULT_NOTE_STYLE, DEFAULT_WARNING_STYLE};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::source::SourceFile;
use super::{ConfigSource, Diagnostic, RelatedSpan, Severity};

/// Renders one diagnostic, ending in a newline.
pub(super) fn one(diagnostic: &Diagnostic, source: &ConfigSource, color: bool) -> String {
    let mut text = headline(diagnostic, source, color);
    text.push('\n');
    let body = body(diagnostic, source, color);
    if !body.is_empty() {
        text.push_str(&body);
        text.push('\n');
    }
    text
}

/// Renders `FILE:LINE:COLUMN: error: MESSAGE`, `FILE:LINE:COLUMN: warning[CODE]: MESSAGE` or
/// `FILE:LINE:COLUMN: note: MESSAGE`.
/// Editors and scripts parse this line.
fn headline(diagnostic: &Diagnostic, source: &ConfigSource, color: bool) -> String {
    let at = source.position(diagnostic.span.start);
    let severity = match diagnostic.code {
        Some(code) => format!("{}[{}]", diagnostic.severity.name(), code.name()),
        None => diagnostic.severity.name().to_owned(),
    };
    let severity = match (color, diagnostic.severity) {
        (false, _) => severity,
        (true, Severity::Error) => {
            format!("{DEFAULT_ERROR_STYLE}{severity}{DEFAULT_ERROR_STYLE:#}")
        }
        (true, Severity::Warning) => {
            format!("{DEFAULT_WARNING_STYLE}{severity}{DEFAULT_WARNING_STYLE:#}")
        }
        (true, Severity::Note) => {
            format!("{DEFAULT_NOTE_STYLE}{severity}{DEFAULT_NOTE_STYLE:#}")
        }
    };
    let message = one_line(&diagnostic.message);
    format!(
        "{}:{}:{}: {severity}: {message}",
        source.part(diagnostic.span.start).path,
        at.line,
        at.column
    )
}

/// Renders the marked line and the help below it.
fn body(diagnostic: &Diagnostic, source: &ConfigSource, color: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = Group::with_level(level);
    let own = source.part(diagnostic.span.start);
    if !own.text.is_empty() {
        group = group.element(snippet(diagnostic, source, &own));
    }
    for related in elsewhere(diagnostic, source, &own) {
        let other = source.part(related.span.start);
        let annotation = AnnotationKind::Primary.span(within(source, &related.span));
        let snippet = Snippet::source(other.text).path(other.path);
        group = group.element(snippet.annotation(annotation.label(one_line(&related.label))));
    }
    for line in &diagnostic.help {
        group = group.element(Level::HELP.message(one_line(line)));
    }
    if group.is_empty() {
        return String::new();
    }
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}

fn snippet<'a>(
    diagnostic: &'a Diagnostic,
    source: &'a ConfigSource,
    own: &SourceFile<'a>,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let primary = AnnotationKind::Primary.span(within(source, &diagnostic.span));
    let here = diagnostic.related.iter();
    let here = here.filter(|related| source.part(related.span.start) == *own);
    let related = here.map(|related| {
        AnnotationKind::Context
            .span(within(source, &related.span))
            .label(one_line(&related.label))
    });
    Snippet::source(own.text)
        .annotation(primary)
        .annotations(related)
}

/// Returns the related spans in other files.
fn elsewhere<'a>(
    diagnostic: &'a Diagnostic,
    source: &'a ConfigSource,
    own: &SourceFile<'a>,
) -> impl Iterator<Item = &'a RelatedSpan> {
    let own = own.start;
    let related = diagnostic.related.iter();
    related.filter(move |related| source.part(related.span.start).start != own)
}

/// Converts a span of the source to a span of its own file.
fn within(source: &ConfigSource, span: &Range<usize>) -> Range<usize> {
    let span = source.clamp(span.clone());
    let start = source.part(span.start).start;
    span.start.saturating_sub(start)..span.end.saturating_sub(start)
}

/// Escapes a message: it may quote newlines and escape sequences from the file.
fn one_line(text: &str) -> String {
    let clean = |c: char| match c {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(clean).collect()
}
