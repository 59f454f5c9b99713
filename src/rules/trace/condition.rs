//! An expression taken apart, without its secrets, and the parts that settled it.

use std::fmt::Write as _;

use super::SecretValues;
use crate::expr::{
    self, ExplainedPart, ExprEnv, FieldFacts, PartKind, Predicate, ReadValue, ScalarValue,
};

/// How much of a value a sentence shows, in characters.
const LONGEST: usize = 80;
/// How many values of a list a sentence shows.
const MOST: usize = 4;

/// A part of an expression, with what came of it.
#[derive(Clone, Debug)]
pub struct TracedCondition {
    /// What kind of part it is.
    pub kind: PartKind,
    /// The part as it was written; the word alone for a connective.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
    /// What it read.
    pub reads: Vec<TracedValue>,
    /// What a connective joins.
    pub parts: Vec<TracedCondition>,
}

/// Something that a part of an expression read.
#[derive(Clone, Debug)]
pub struct TracedValue {
    /// What was read, as it was written.
    pub label: String,
    /// The values; none: it is missing. Hashes stand in for secrets.
    pub values: Vec<ScalarValue<'static>>,
    /// The values are hashes.
    pub secret: bool,
}

// === impl TracedCondition ===

impl TracedCondition {
    /// What becomes of `predicate`; `None` only if `env` is not the one that it was compiled in.
    pub(super) fn of(
        predicate: &Predicate,
        env: &ExprEnv,
        facts: &dyn FieldFacts,
        secrets: &dyn SecretValues,
    ) -> Option<Self> {
        let explained = expr::explain(predicate.source(), env, facts).ok()?;
        Some(Self::new(explained, secrets))
    }

    fn new(explained: ExplainedPart, secrets: &dyn SecretValues) -> Self {
        let reads = explained.reads.into_iter();
        let parts = explained.parts.into_iter();
        Self {
            kind: explained.kind,
            text: one_line(&explained.text),
            holds: explained.holds,
            reads: reads.map(|read| TracedValue::new(read, secrets)).collect(),
            parts: parts.map(|part| Self::new(part, secrets)).collect(),
        }
    }

    /// The parts that make it true or false.
    pub(super) fn decisive(&self) -> Vec<&TracedCondition> {
        let same = |part: &&TracedCondition| part.holds == self.holds;
        let all = || {
            self.parts
                .iter()
                .flat_map(TracedCondition::decisive)
                .collect()
        };
        let first = || self.parts.iter().find(same).map(TracedCondition::decisive);
        match (self.kind, self.holds) {
            (PartKind::And, false) | (PartKind::Or, true) => first().unwrap_or_default(),
            (PartKind::And | PartKind::Or | PartKind::Xor | PartKind::Not, _) => all(),
            _ => vec![self],
        }
    }

    /// The part, its truth and what it read, in words.
    pub(super) fn describe(&self) -> String {
        let mut text = format!("`{}` is {}", self.text, self.holds);
        for seen in &self.reads {
            let _ = write!(text, ", {} is {}", seen.label, seen.show());
        }
        text
    }
}

// === impl TracedValue ===

impl TracedValue {
    fn new(read: ReadValue, secrets: &dyn SecretValues) -> Self {
        let secret = secrets.is_secret(&read.fields, &read.entries);
        let values = read.values.into_iter().map(|value| match value {
            ScalarValue::Bytes(bytes) if secret => hashed(&bytes, secrets),
            ScalarValue::Int(int) if secret => hashed(int.to_string().as_bytes(), secrets),
            other => other,
        });
        Self {
            label: one_line(&read.label),
            values: values.collect(),
            secret,
        }
    }

    /// The values in words, cut short.
    pub fn show(&self) -> String {
        let shown = self.values.iter().take(MOST).map(|value| self.one(value));
        let shown = shown.collect::<Vec<_>>().join(", ");
        match self.values.len().checked_sub(MOST) {
            _ if self.values.is_empty() => "missing".to_owned(),
            Some(more) if more > 0 => format!("{shown} and {more} more"),
            _ => shown,
        }
    }

    fn one(&self, value: &ScalarValue<'_>) -> String {
        match value {
            ScalarValue::Bytes(bytes) if self.secret => String::from_utf8_lossy(bytes).into_owned(),
            ScalarValue::Bytes(bytes) => quoted(&String::from_utf8_lossy(bytes)),
            ScalarValue::Int(int) => int.to_string(),
            ScalarValue::Ip(ip) => ip.to_string(),
            ScalarValue::Bool(truth) => truth.to_string(),
        }
    }
}

fn hashed(value: &[u8], secrets: &dyn SecretValues) -> ScalarValue<'static> {
    ScalarValue::Bytes(secrets.hash(value).into_bytes().into())
}

/// In quotes, with control characters escaped.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// An expression may be written over several lines.
fn one_line(text: &str) -> String {
    match text.contains('\n') {
        true => text.split_whitespace().collect::<Vec<_>>().join(" "),
        false => text.to_owned(),
    }
}
