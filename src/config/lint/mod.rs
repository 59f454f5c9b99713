//! Warnings: settings that are valid but would cause an outage or admit abuse. Notes: settings that work, with a
//! consequence that the user may not expect.
//!
//! Warnings never change what a rule does. A warning is given only if the mistake is certain; a
//! disabled rule gets none. Each has a code in [`LintCode::TABLE`]. A note has no code: a setting in the file removes it.

mod allow;
mod challenge;
mod codes;
mod counting;
mod implies;
mod keys;
mod known_clients;
mod order;
mod presets;
mod reads;
mod routes;
mod store_mode;
mod values;

#[cfg(test)]
mod tests;

pub(super) use allow::read_comments;
pub use codes::LintCode;
pub use routes::lists_in;

use std::ops::Range;

use super::file::{self, ConfigFile, CostSettings};
use super::{ConfigSource, Diagnostic, Diagnostics, ExprText};
use crate::expr::{self, ExprOutline};
use crate::geo::GeoLookup;
use crate::rules::{Rule, RuleSet};

/// A file that compiled.
pub(super) struct CompiledConfig<'a> {
    /// The file as written.
    pub(super) file: &'a ConfigFile,
    /// The text of the file.
    pub(super) source: &'a ConfigSource,
    /// The enabled rules.
    pub(super) rules: &'a RuleSet,
    /// The databases for address lookups.
    pub(super) geo: &'a GeoLookup,
}

/// A rule as written and as compiled, with its parsed expressions.
struct LintedRule<'a> {
    written: &'a file::RuleSettings,
    rule: &'a Rule,
    count: Option<ParsedExpr<'a>>,
    mitigate: Option<ParsedExpr<'a>>,
    total: Option<ParsedExpr<'a>>,
    /// The expression that computes the cost. `None` if the cost is not an expression.
    cost: Option<&'a ExprText>,
}

/// An expression and its outline.
struct ParsedExpr<'a> {
    text: &'a ExprText,
    outline: ExprOutline,
}

/// Collects warnings and notes.
struct Warnings<'a> {
    source: &'a ConfigSource,
    out: &'a mut Diagnostics,
}

/// Adds the warnings and notes of a file that compiled.
pub(super) fn warn(compiled: &CompiledConfig<'_>, out: &mut Diagnostics) {
    let rules = linted_rules(compiled);
    let file = compiled.file;
    let mut warnings = Warnings {
        source: compiled.source,
        out,
    };
    for (at, rule) in rules.iter().enumerate() {
        let earlier = rules.get(..at).unwrap_or_default();
        // The keys of presets are fixed, and their rules guard each other.
        if file.preset_of(rule.written).is_none() {
            keys::warn(rule, &rules, file, &mut warnings);
        }
        order::warn(rule, earlier, file, &mut warnings);
        if at + 1 == rules.len() {
            order::warn_of_last(rule, &mut warnings);
        }
        for parsed in rule.expressions() {
            implies::warn(&parsed.outline, parsed, &mut warnings);
            values::warn(parsed, &mut warnings);
        }
        reads::warn(rule, compiled, &mut warnings);
        challenge::warn(rule, &rules, file, &mut warnings);
        counting::warn(rule, &rules, file, &mut warnings);
        store_mode::note(rule, file, &mut warnings);
    }
    known_clients::warn(compiled, &rules, &mut warnings);
    presets::warn(&rules, file, &mut warnings);
    routes::warn(file, &mut warnings);
    // Two rules that use one named expression have the same warnings about it.
    out.remove_repeated_warnings();
}

/// Adds the warnings that depend only on `[client_ip]` and `[[listeners]]`, so that errors in other
/// sections do not hide them.
pub(super) fn warn_of_trust(file: &ConfigFile, source: &ConfigSource, out: &mut Diagnostics) {
    routes::warn_of_trust(file, &mut Warnings { source, out });
}

fn linted_rules<'a>(compiled: &CompiledConfig<'a>) -> Vec<LintedRule<'a>> {
    let enabled = compiled.file.rules.iter().filter(|rule| rule.enabled.value);
    let compiled = compiled.rules.iter().map(|(_, rule)| rule);
    let pairs = enabled.zip(compiled);
    let linted = pairs.map(|(written, rule)| LintedRule {
        written,
        rule,
        count: written.count.as_ref().and_then(ParsedExpr::new),
        mitigate: written.mitigate.as_ref().and_then(ParsedExpr::new),
        total: written.total.as_ref().and_then(ParsedExpr::new),
        cost: match &written.cost.value {
            CostSettings::Expression(text) => Some(text),
            CostSettings::Fixed(_) | CostSettings::Header(_) => None,
        },
    });
    linted.collect()
}

// === impl LintedRule ===

impl<'a> LintedRule<'a> {
    /// Returns `count`, `mitigate` and `total`, those that are written.
    fn expressions(&self) -> impl Iterator<Item = &ParsedExpr<'a>> {
        let both = self.count.iter().chain(&self.mitigate);
        both.chain(&self.total)
    }

    /// The requests that the rule counts. `None` if the expression is missing.
    fn counts(&self) -> Option<&ExprOutline> {
        let parsed = self.count.as_ref().or(self.mitigate.as_ref());
        parsed.map(|parsed| &parsed.outline)
    }

    /// The requests that the rule mitigates. `None` if the expression is missing.
    fn stops(&self) -> Option<&ExprOutline> {
        let parsed = self.mitigate.as_ref().or(self.count.as_ref());
        parsed.map(|parsed| &parsed.outline)
    }

    /// Returns whether the rule has a limit that bans.
    fn bans(&self) -> bool {
        self.rule.limiter.is_some() && !self.rule.ban.is_never()
    }

    /// Returns whether the rule has a limit that it enforces.
    fn limits(&self) -> bool {
        self.rule.limiter.is_some() && !self.rule.dry_run
    }

    /// Returns all expressions, including the key parts and the cost.
    fn texts(&self) -> impl Iterator<Item = &ExprText> {
        let written = self.written;
        let expressions = written.expressions();
        expressions.chain(&written.key).chain(self.cost)
    }
}

// === impl ParsedExpr ===

impl<'a> ParsedExpr<'a> {
    fn new(text: &'a ExprText) -> Option<Self> {
        let outline = expr::outline(&text.value).ok()?;
        Some(Self { text, outline })
    }
}

// === impl Warnings ===

impl Warnings<'_> {
    /// Adds a warning at a span of the file.
    fn at(
        &mut self,
        code: LintCode,
        span: &Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.out.warning(code, span.clone(), message)
    }

    /// Adds a note at a span of the file.
    fn note(&mut self, span: &Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        self.out.note(span.clone(), message)
    }

    /// Adds a warning at a span of an expression.
    fn within(
        &mut self,
        code: LintCode,
        text: &ExprText,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let origin = text.origin(self.source, span);
        let warning = self.out.warning(code, origin.span, message);
        for used in origin.uses {
            warning.related(used.span, format!("`@{}` is used here", used.name));
        }
        warning
    }
}
