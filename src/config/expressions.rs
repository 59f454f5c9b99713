//! Inlines named expressions (`@login`) into the expressions of a file.
//!
//! A named expression can use those before it, so none can use itself. Types are checked later:
//! once for each definition, and again wherever it is used.

use std::ops::Range;

use super::expr_text::{ExprText, ExprUse};
use super::file::{ConfigFile, NamedExpression};
use super::suggest::nearest;
use super::{ConfigSource, Diagnostics, Text};
use crate::expr::{self, ExprError, ExprForm, NamedUse};

/// The named expressions of a file.
struct Inliner<'a> {
    source: &'a ConfigSource,
    defined: Vec<NamedExpression>,
    /// The form of each of `defined` that is already inlined and can be used. `None` if it cannot
    /// be parsed, which the compiler reports.
    forms: Vec<Option<ExprForm>>,
    out: &'a mut Diagnostics,
}

/// Inlines the named expressions of `file` into each other and into all other expressions.
pub(super) fn inline(file: &mut ConfigFile, source: &ConfigSource, out: &mut Diagnostics) {
    let mut inliner = Inliner {
        source,
        defined: std::mem::take(&mut file.expressions),
        forms: Vec::new(),
        out,
    };
    inliner.inline_definitions();
    file.each_expression(&mut |text| inliner.inline(text));
    file.expressions = inliner.defined;
}

// === impl Inliner ===

impl Inliner<'_> {
    fn inline_definitions(&mut self) {
        while let Some(next) = self.defined.get(self.forms.len()) {
            let mut text = next.text.clone();
            self.inline(&mut text);
            let form = expr::expr_form(&text.value);
            if let Some(next) = self.defined.get_mut(self.forms.len()) {
                next.text = text;
            }
            self.forms.push(form.ok());
        }
    }

    /// Replaces the names in a text that was read as it was written.
    fn inline(&mut self, text: &mut ExprText) {
        let uses = expr::named_uses(&text.value);
        if uses.is_empty() {
            return;
        }
        let written = Text::new(text.value.clone(), text.span.clone());
        let mut inlined = ExprText::generated(text.span.clone());
        let mut done = 0;
        for used in uses {
            inlined.push_written(&written, done..used.span.start);
            done = used.span.end;
            match self.definition(&used, &written) {
                Some(at) => self.push(&mut inlined, at, &used, &written),
                None => inlined.mark_broken(),
            }
        }
        inlined.push_written(&written, done..written.value.len());
        *text = inlined;
    }

    fn push(&self, inlined: &mut ExprText, at: usize, used: &NamedUse, written: &Text) {
        let is_whole = written.value.trim().len() == used.span.len();
        let used = ExprUse {
            name: used.name.clone(),
            span: written.inner(self.source, used.span.clone()),
        };
        let form = self.forms.get(at).copied().flatten();
        let is_grouped = form == Some(ExprForm::Compound) && !is_whole;
        if let Some(definition) = self.defined.get(at) {
            inlined.push_named(&used, &definition.text, is_grouped);
        }
        if form.is_none() {
            inlined.mark_broken();
        }
    }

    /// Returns the number of the definition of a name. Reports a name that cannot be used here.
    fn definition(&mut self, used: &NamedUse, written: &Text) -> Option<usize> {
        let span = written.inner(self.source, used.span.clone());
        let name = &*used.name;
        let mut names = self.defined.iter().map(|one| &one.name);
        let Some(at) = names.position(|defined| defined.value == name) else {
            self.report_unknown(name, span);
            return None;
        };
        if at >= self.forms.len() {
            self.report_too_early(name, at, span);
            return None;
        }
        if used.is_compared_with {
            let message = format!("the right side of a comparison must be a value, not `@{name}`");
            self.out
                .error(span, message)
                .help("a named expression is a test, or a value on the left side");
            return None;
        }
        Some(at)
    }

    fn report_unknown(&mut self, name: &str, span: Range<usize>) {
        let names: Vec<&str> = self.defined.iter().map(|one| &*one.name.value).collect();
        let unknown = format!("unknown expression `@{name}`");
        if let Some(near) = nearest(name, names.iter().copied()) {
            let message = format!("{unknown}; did you mean `@{near}`?");
            self.out.unknown(span, message);
            return;
        }
        let help = match names.as_slice() {
            [] => format!("define it in `[expressions]`: `{name} = '…'`"),
            names => format!("defined expressions: {}", names.join(", ")),
        };
        self.out.unknown(span, unknown).help(help);
    }

    /// Reports the use of a name in its own definition or before it.
    fn report_too_early(&mut self, name: &str, at: usize, span: Range<usize>) {
        let defined = self.defined.get(at).map(|one| one.name.span.clone());
        if at == self.forms.len() {
            self.out
                .error(span, format!("`{name}` cannot use itself"))
                .help("write the whole expression");
            return;
        }
        self.out
            .error(span, format!("`@{name}` is defined only later"))
            .help("an expression can use those before it: move the definition up")
            .related(defined.unwrap_or_default(), "defined here");
    }
}

/// Reports the errors in an expression where they were written. An error in a named expression is
/// reported once, with its first use.
pub(super) fn report(
    text: &ExprText,
    errors: Vec<ExprError>,
    source: &ConfigSource,
    out: &mut Diagnostics,
) {
    for error in errors {
        let origin = text.origin(source, error.span);
        if out.has_error(&origin.span, &error.message) {
            continue;
        }
        let diagnostic = if error.message.starts_with("unknown list") {
            // The name may be defined in a file that could not be read.
            out.unknown(origin.span, error.message)
        } else {
            out.error(origin.span, error.message)
        };
        diagnostic.help.extend(error.help);
        for used in origin.uses {
            diagnostic.related(used.span, format!("`@{}` is used here", used.name));
        }
    }
}
