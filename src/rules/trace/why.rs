//! One sentence on why a rule did what it did, or nothing.

use std::time::Duration;

use super::{Condition, Met};
use crate::clock::Timestamp;
use crate::decision::Action;
use crate::rules::{Finding, Op, Scope, Standing, Step};

/// How many parts of an expression a sentence blames.
const MOST: usize = 3;

/// Why the rule did what it did.
pub(super) fn why(met: &Met<'_>, conditions: &[(&'static str, Condition)]) -> String {
    let said = Said { met, conditions };
    if let Some(ender) = met.ended_by {
        return said.not_reached(&ender.name);
    }
    if let Some((step, finding)) = met.planned.filter(|_| met.acted()) {
        let acted = said.acted(step, finding);
        // An action that forwards lets the response count.
        let response = met.settled.and_then(|_| said.response());
        return [acted]
            .into_iter()
            .chain(response)
            .collect::<Vec<_>>()
            .join("; ");
    }
    if let Some(part) = met.absent {
        return format!("key part `{part}` is missing and missing = \"skip\"");
    }
    let mut parts = said.request();
    parts.extend(said.response());
    parts.join("; ")
}

struct Said<'a> {
    met: &'a Met<'a>,
    conditions: &'a [(&'static str, Condition)],
}

// === impl Said ===

impl Said<'_> {
    fn not_reached(&self, ender: &str) -> String {
        let looked = match self.met.planned {
            Some(_) => "; only looked at, so that Retry-After is the longest",
            None => "",
        };
        format!("not reached: rule {ender} ended the pass{looked}")
    }

    fn acted(&self, step: &Step, finding: &Finding) -> String {
        let limit = step.limiter.limit;
        let because = match finding.standing {
            _ if step.op == Op::Always => {
                "the request matched, and the rule has no limit".to_owned()
            }
            Standing::Banned {
                started: true,
                until,
            } => {
                let length = self.length(until);
                format!("this request is past the limit of {limit}: banned for {length}")
            }
            Standing::Banned { until, .. } => {
                format!("banned for another {}", self.length(until))
            }
            _ => format!("over the limit, {limit} of {limit} are used"),
        };
        let action = self.met.rule.action;
        match self.met.rule.dry_run {
            true => format!("dry_run: would have {}: {because}", past(action)),
            false => format!("{}: {because}", past(action)),
        }
    }

    /// What the request itself meant to the rule.
    fn request(&self) -> Vec<String> {
        let met = self.met;
        let Some((step, finding)) = met.planned else {
            return self.unmatched();
        };
        let limit = step.limiter.limit;
        let used = limit.saturating_sub(finding.reading.map_or(0, |r| r.remaining));
        let counted = match (step.op, finding.standing) {
            (Op::Admit, _) => return vec![format!("counted {used} of {limit}: within the limit")],
            (Op::Charge, Standing::Within) => format!("counted {used} of {limit}"),
            (Op::Charge, Standing::Over) => format!("counted, past the limit of {limit}"),
            (
                Op::Charge,
                Standing::Banned {
                    started: true,
                    until,
                },
            ) => {
                let length = self.length(until);
                format!("counted, past the limit of {limit}: banned for {length}")
            }
            (Op::Charge, Standing::Banned { until, .. }) => {
                format!("banned for another {}, so not charged", self.length(until))
            }
            _ if step.acts && met.rule.ban.is_never() => {
                format!("`mitigate` matched, but only {used} of {limit} are used")
            }
            _ if step.acts => "`mitigate` matched, but the key is not banned".to_owned(),
            _ => return vec![self.mismatch("mitigate")],
        };
        match step.acts {
            false => vec![counted, self.mismatch("mitigate")],
            true if met.matched.counts == Some(false) => vec![counted, self.mismatch("count")],
            true => vec![counted],
        }
    }

    fn unmatched(&self) -> Vec<String> {
        let met = self.met;
        let one = matches!(met.rule.scope, Scope::Same(_)) || met.matched.counts.is_none();
        match one {
            true => vec![self.mismatch("mitigate")],
            false => vec![self.mismatch("count"), self.mismatch("mitigate")],
        }
    }

    /// What the response meant to a rule that counts responses.
    fn response(&self) -> Option<String> {
        let met = self.met;
        if !met.rule.counts_response() {
            return None;
        }
        let Some((step, finding)) = met.settled else {
            return Some(match met.counts {
                None => "`count` asks for a response, and this answer never counts".to_owned(),
                Some(_) => self.mismatch("count"),
            });
        };
        let limit = step.limiter.limit;
        let used = limit.saturating_sub(finding.reading.map_or(0, |r| r.remaining));
        Some(match finding.standing {
            Standing::Within => format!("the response counted {used} of {limit}"),
            Standing::Over => {
                format!("the response counted, past the limit of {limit}: what follows is acted on")
            }
            Standing::Banned {
                started: true,
                until,
            } => format!(
                "the response counted, past the limit of {limit}: banned for {} from now on",
                self.length(until)
            ),
            Standing::Banned { until, .. } => format!(
                "banned for another {}, so the response is not charged",
                self.length(until)
            ),
        })
    }

    /// Why one of the two expressions did not match.
    fn mismatch(&self, key: &str) -> String {
        let subject = match self.met.rule.scope {
            Scope::Same(_) => String::new(),
            Scope::Separate { .. } => format!("`{key}` "),
        };
        let mut named = self.conditions.iter();
        let Some((_, condition)) = named.find(|(label, _)| *label == key || *label == "both")
        else {
            return format!("{subject}did not match");
        };
        let blamed = condition.decisive();
        let shown = blamed.iter().take(MOST).map(|part| part.sentence());
        let shown = shown.collect::<Vec<_>>().join(", and ");
        let more = match blamed.len().checked_sub(MOST) {
            Some(more) if more > 0 => format!(", and {more} more"),
            _ => String::new(),
        };
        format!("{subject}did not match: {shown}{more}")
    }

    fn length(&self, until: Timestamp) -> String {
        length(until.since(self.met.now))
    }
}

/// What an action did.
const fn past(action: Action) -> &'static str {
    match action {
        Action::Block => "blocked",
        Action::Shadow => "answered in the origin's place",
        Action::Divert => "answered by another upstream",
        Action::Delay => "held",
        Action::Tarpit => "held and blocked",
        Action::Close => "closed without an answer",
        Action::Tag => "tagged",
        Action::Log => "recorded",
        Action::Allow => "allowed",
    }
}

/// A duration as a configuration would write it, in seconds where nothing longer fits.
fn length(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    let units = [("d", 86_400), ("h", 3_600), ("m", 60)];
    let fits = units
        .iter()
        .find(|(_, unit)| seconds >= *unit && seconds.is_multiple_of(*unit));
    match fits {
        Some((name, unit)) => format!("{}{name}", seconds / unit),
        None => format!("{seconds}s"),
    }
}
