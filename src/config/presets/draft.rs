//! A rule of a preset before it becomes an entry of `[[rules]]`.

use std::ops::Range;
use std::time::Duration;

use super::conditions::generated;
use crate::config::Spanned;
use crate::config::expr_text::ExprText;
use crate::config::file::{ProtectSettings, RuleSettings};
use crate::decision::Action;
use crate::limit::Algorithm;
use crate::rules::{HeaderStyle, MissingPart};

/// A rule of a preset.
#[derive(Clone, Debug)]
pub struct RuleDraft {
    /// The name within the preset.
    pub sub: &'static str,
    /// The settings as a user would write them.
    pub settings: RuleSettings,
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A duration as it is written in a preset's table: a number and a unit.
#[derive(Clone, Copy)]
pub enum Span {
    /// Minutes.
    Minutes(u64),
    /// Hours.
    Hours(u64),
    /// Days.
    Days(u64),
}

// === impl Span ===

impl Span {
    const fn duration(self) -> Duration {
        Duration::from_secs(match self {
            Span::Minutes(count) => count * MINUTE,
            Span::Hours(count) => count * HOUR,
            Span::Days(count) => count * DAY,
        })
    }
}

// === impl RuleDraft ===

impl RuleDraft {
    /// Creates a rule that refuses every request that `mitigate` selects.
    pub fn new(preset: &ProtectSettings, sub: &'static str, mitigate: ExprText) -> Self {
        let mut settings = RuleSettings::defaults(preset.span.clone());
        let name = format!("{}/{sub}", preset.name.value);
        settings.name = Spanned::new(name, preset.name.span.clone());
        settings.mitigate = Some(mitigate);
        settings.dry_run = preset.dry_run.clone();
        Self { sub, settings }
    }

    /// Counts other requests than the rule mitigates.
    pub fn counting(mut self, count: ExprText) -> Self {
        self.settings.count = Some(count);
        self
    }

    /// Counts the requests that the rule mitigates.
    pub fn counting_only(mut self) -> Self {
        self.settings.count = self.settings.mitigate.take();
        self
    }

    /// Acts only above this share of `total`.
    pub fn share(mut self, ratio: Spanned<f64>, total: ExprText) -> Self {
        self.settings.ratio = Some(ratio);
        self.settings.total = Some(total);
        self.settings.headers.value = HeaderStyle::None;
        self
    }

    /// Counts each value of a field separately.
    pub fn by(mut self, field: &str) -> Self {
        let part = generated(field, &self.span());
        self.settings.key.push(part);
        self
    }

    /// Counts each user separately.
    pub fn by_user(mut self, user: ExprText) -> Self {
        self.settings.key.push(user);
        self
    }

    /// Ignores requests without the key.
    pub fn skip_missing(mut self) -> Self {
        self.settings.missing.value = MissingPart::Skip;
        self
    }

    /// Allows `limit` units per `period`.
    pub fn limit(mut self, limit: u32, period: Span) -> Self {
        self.settings.limit = Some(Spanned::new(limit, self.span()));
        self.settings.period = Some(Spanned::new(period.duration(), self.span()));
        self
    }

    /// Allows `limit` requests in flight.
    pub fn in_flight(mut self, limit: u32) -> Self {
        self.settings.algorithm.value = Algorithm::Concurrency;
        self.settings.limit = Some(Spanned::new(limit, self.span()));
        self
    }

    /// Bans for these durations: of the first offence, the second and so on.
    pub fn ban(mut self, bans: &[Span]) -> Self {
        let span = self.span();
        match bans {
            [only] => self.settings.duration = Spanned::new(only.duration(), span),
            several => {
                let bans = several.iter().map(|ban| ban.duration());
                let bans = bans.map(|ban| Spanned::new(ban, span.clone()));
                self.settings.escalate = bans.collect();
            }
        }
        self
    }

    /// Challenges instead of refusing.
    pub fn challenge(mut self) -> Self {
        self.settings.action.value = Action::Challenge;
        self
    }

    /// Whether the rule challenges.
    pub fn challenges(&self) -> bool {
        self.settings.action.value == Action::Challenge
    }

    fn span(&self) -> Range<usize> {
        self.settings.span.clone()
    }
}
