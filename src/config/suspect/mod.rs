//! What is legal in a file but surely not meant: the warnings of `lockgate check`.
//!
//! Each file here is a family of warnings. They look at rules that compiled and never change what
//! a rule does. A warning is given only where it is sure; a rule that is not enabled gets none.

mod actions;
mod answers;
mod keys;
mod limits;
mod logic;
mod order;
mod reads;
mod routes;
mod traffic;
mod unused;
mod values;

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::file::{self, File};
use super::{Diagnostic, Diagnostics, Source, Text};
use crate::expr::{self, Outline};
use crate::geo::Geo;
use crate::rules::{Rule, RuleSet};

/// A file that compiled.
pub(super) struct Compiled<'a> {
    /// As written.
    pub(super) file: &'a File,
    /// The text.
    pub(super) source: &'a Source,
    /// The rules that are enabled.
    pub(super) rules: &'a RuleSet,
    /// What addresses are looked up in.
    pub(super) geo: &'a Geo,
}

/// A rule as written, as meant, and what its expressions say.
struct Case<'a> {
    written: &'a file::Rule,
    rule: &'a Rule,
    count: Option<Said<'a>>,
    mitigate: Option<Said<'a>>,
    /// The expression that says what a request costs.
    cost: Option<Text>,
}

/// An expression and its outline.
struct Said<'a> {
    text: &'a Text,
    outline: Outline,
}

/// Where warnings go.
struct Warnings<'a> {
    source: &'a Source,
    out: &'a mut Diagnostics,
}

/// Looks at the whole file.
pub(super) fn warn(compiled: &Compiled<'_>, out: &mut Diagnostics) {
    let cases = cases(compiled);
    let mut warnings = Warnings {
        source: compiled.source,
        out,
    };
    for (at, case) in cases.iter().enumerate() {
        let earlier = cases.get(..at).unwrap_or_default();
        keys::warn(case, &cases, compiled.file, &mut warnings);
        order::warn(case, earlier, &mut warnings);
        for said in case.said() {
            logic::warn(said, &mut warnings);
            values::warn(said, &mut warnings);
        }
        reads::warn(case, compiled, &mut warnings);
        limits::warn(case, &cases, compiled.file, &mut warnings);
        actions::warn(case, compiled.file, &mut warnings);
    }
    actions::warn_of_held(&cases, compiled.file, &mut warnings);
    answers::warn(&cases, compiled.file, &mut warnings);
    unused::warn(compiled.file, &mut warnings);
    routes::warn(compiled.file, &mut warnings);
}

/// Looks at what no mistake elsewhere can change.
pub(super) fn warn_of_trust(file: &File, source: &Source, out: &mut Diagnostics) {
    traffic::warn(file, &mut Warnings { source, out });
}

fn cases<'a>(compiled: &Compiled<'a>) -> Vec<Case<'a>> {
    let enabled = compiled.file.rules.iter().filter(|rule| rule.enabled.value);
    let compiled = compiled.rules.iter().map(|(_, rule)| rule);
    let pairs = enabled.zip(compiled);
    pairs
        .map(|(written, rule)| Case {
            written,
            rule,
            count: written.count.as_ref().and_then(Said::of),
            mitigate: written.mitigate.as_ref().and_then(Said::of),
            cost: limits::expression(&written.cost.value)
                .map(|text| Text::new(text.to_owned(), written.cost.span.clone())),
        })
        .collect()
}

// === impl Case ===

impl<'a> Case<'a> {
    /// The expressions that are written.
    fn said(&self) -> impl Iterator<Item = &Said<'a>> {
        self.count.iter().chain(&self.mitigate)
    }

    /// What it counts.
    fn counts(&self) -> Option<&Outline> {
        let said = self.count.as_ref().or(self.mitigate.as_ref());
        said.map(|said| &said.outline)
    }

    /// What it stops.
    fn stops(&self) -> Option<&Outline> {
        let said = self.mitigate.as_ref().or(self.count.as_ref());
        said.map(|said| &said.outline)
    }

    fn bans(&self) -> bool {
        self.rule.limiter.is_some() && !self.rule.ban.is_never()
    }

    fn texts(&self) -> impl Iterator<Item = &Text> {
        let written = self.written;
        let expressions = written.count.iter().chain(&written.mitigate);
        expressions.chain(&written.key).chain(&self.cost)
    }
}

// === impl Said ===

impl<'a> Said<'a> {
    fn of(text: &'a Text) -> Option<Said<'a>> {
        let outline = expr::outline(&text.value).ok()?;
        Some(Said { text, outline })
    }
}

// === impl Warnings ===

impl Warnings<'_> {
    /// A warning at a place of the file.
    fn at(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        self.out.warning(span, message)
    }

    /// A warning at a place of an expression.
    fn within(
        &mut self,
        text: &Text,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let span = text.inner(self.source, span);
        self.out.warning(span, message)
    }
}
