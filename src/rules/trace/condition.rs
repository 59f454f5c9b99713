//! The parts of an expression, with secrets hidden, and the parts that decided its value.

use std::fmt::Write as _;

use super::SecretValues;
use crate::expr::{
    self, ExplainedPart, ExprEnv, FieldFacts, PartKind, Predicate, ReadValue, ScalarValue,
};

/// The longest shown value, in characters.
const LONGEST: usize = 80;
/// The most values of a list that are shown.
const MOST: usize = 4;

/// A part of an expression, with its value.
#[derive(Clone, Debug)]
pub struct TracedCondition {
    /// The kind of the part.
    pub kind: PartKind,
    /// The part as written; only the operator for a connective.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
    /// The values that the part read.
    pub reads: Vec<TracedValue>,
    /// The operands of a connective.
    pub parts: Vec<TracedCondition>,
}

/// Something that a part of an expression read.
#[derive(Clone, Debug)]
pub struct TracedValue {
    /// The text of what was read, as written.
    pub label: String,
    /// The values; empty if the value is missing. Secrets are replaced by hashes.
    pub values: Vec<ScalarValue<'static>>,
    /// Whether the values are hashes.
    pub secret: bool,
}

// === impl TracedCondition ===

impl TracedCondition {
    /// Evaluates the parts of `predicate`. `None` only if `env` is not the one that it was compiled in.
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

    /// The parts that make the whole true or false.
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

    /// The part, its value and what it read, as text.
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

    /// The values as text, truncated.
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

/// The text in quotes, with control characters escaped.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// Joins the lines of an expression.
fn one_line(text: &str) -> String {
    if text.contains('\n') {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        text.to_owned()
    }
}
