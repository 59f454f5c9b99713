//! The settings of a rule as a user would write them: the inverse of its reader.

use std::time::Duration;

use super::rule::{self, CandidateSettings, CostSettings, RuleSettings};
use crate::config::ExprText;
use crate::config::Spanned;
use crate::config::scalar::{self, SettingType};
use crate::config::schema::ExampleValue;

/// A setting of a rule and its value. The name of a nested setting is dotted.
pub type WrittenSetting = (&'static str, ExampleValue);

/// Collects settings that differ from their defaults.
struct SettingWriter(Vec<WrittenSetting>);

impl RuleSettings {
    /// Returns the settings that differ from their defaults, with all named expressions inlined.
    pub fn written(&self) -> Vec<WrittenSetting> {
        let mut out = SettingWriter(Vec::new());
        out.selection(self);
        out.limit(self);
        out.action(self);
        out.0
    }
}

// === impl SettingWriter ===

impl SettingWriter {
    /// Adds which requests the rule selects, and how it tells them apart.
    fn selection(&mut self, rule: &RuleSettings) {
        self.text("name", Some(&rule.name.value));
        self.text("count", rule.count.as_ref().map(|text| &text.value));
        self.text("mitigate", rule.mitigate.as_ref().map(|text| &text.value));
        self.key(&rule.key);
    }

    /// Adds how the rule counts.
    fn limit(&mut self, rule: &RuleSettings) {
        let default = RuleSettings::defaults(rule.span.clone());
        let default = &default;
        self.given("limit", &scalar::integer(0..=u32::MAX), &rule.limit);
        self.given("period", &rule::period(), &rule.period);
        self.changed(
            "algorithm",
            &rule::algorithm(),
            &rule.algorithm,
            &default.algorithm,
        );
        self.given("burst", &rule::burst(), &rule.burst);
        self.changed("slices", &rule::slices(), &rule.slices, &default.slices);
        self.changed("queue", &rule::queue(), &rule.queue, &default.queue);
        self.cost(&rule.cost);
        self.given("ratio", &rule::ratio(), &rule.ratio);
        self.text("total", rule.total.as_ref().map(|text| &text.value));
        self.changed("jitter", &rule::jitter(), &rule.jitter, &default.jitter);
        self.changed("missing", &rule::missing(), &rule.missing, &default.missing);
        self.given(
            "on_store_failure",
            &rule::on_store_failure(),
            &rule.on_store_failure,
        );
        self.given("store_mode", &rule::store_mode(), &rule.store_mode);
        self.candidate(rule.candidate.as_ref());
    }

    /// Adds what the rule does with the requests that it mitigates.
    fn action(&mut self, rule: &RuleSettings) {
        let default = RuleSettings::defaults(rule.span.clone());
        let default = &default;
        self.changed("duration", &rule::ban(), &rule.duration, &default.duration);
        self.bans(&rule.escalate);
        self.changed("action", &rule::action(), &rule.action, &default.action);
        self.text("response", rule.response.as_ref().map(|name| &name.value));
        self.text("upstream", rule.upstream.as_ref().map(|name| &name.value));
        self.changed(
            "max_delay",
            &scalar::duration(),
            &rule.max_delay,
            &default.max_delay,
        );
        if rule.ratio.is_none() {
            self.changed("headers", &rule::headers(), &rule.headers, &default.headers);
        }
        self.changed(
            "dry_run",
            &scalar::boolean(),
            &rule.dry_run,
            &default.dry_run,
        );
        self.changed(
            "enabled",
            &scalar::boolean(),
            &rule.enabled,
            &default.enabled,
        );
    }

    /// Adds an optional setting.
    fn given<T: 'static>(
        &mut self,
        name: &'static str,
        scalar: &SettingType<T>,
        value: &Option<Spanned<T>>,
    ) {
        let shown = value.as_ref().and_then(|value| scalar.show(&value.value));
        self.0.extend(shown.map(|shown| (name, shown)));
    }

    /// Adds a setting that has a default.
    fn changed<T: PartialEq + 'static>(
        &mut self,
        name: &'static str,
        scalar: &SettingType<T>,
        value: &Spanned<T>,
        default: &Spanned<T>,
    ) {
        if value.value != default.value {
            let shown = scalar.show(&value.value);
            self.0.extend(shown.map(|shown| (name, shown)));
        }
    }

    fn text(&mut self, name: &'static str, value: Option<&String>) {
        let shown = value.map(|text| ExampleValue::Text(text.clone()));
        self.0.extend(shown.map(|shown| (name, shown)));
    }

    fn key(&mut self, parts: &[ExprText]) {
        let parts = parts
            .iter()
            .map(|part| ExampleValue::Text(part.value.clone()));
        self.list("key", parts.collect());
    }

    fn bans(&mut self, bans: &[Spanned<Duration>]) {
        let scalar = rule::ban();
        let bans = bans.iter().filter_map(|ban| scalar.show(&ban.value));
        self.list("escalate", bans.collect());
    }

    fn list(&mut self, name: &'static str, values: Vec<ExampleValue>) {
        if !values.is_empty() {
            self.0.push((name, ExampleValue::List(values)));
        }
    }

    fn cost(&mut self, cost: &Spanned<CostSettings>) {
        match &cost.value {
            CostSettings::Fixed(1) => {}
            CostSettings::Fixed(units) => {
                let units = ExampleValue::Integer(i64::from(*units));
                self.0.push(("cost", units));
            }
            CostSettings::Expression(text) => self.text("cost", Some(&text.value)),
            CostSettings::Header(name) => {
                self.text("cost.response_header", Some(&name.to_string()));
            }
        }
    }

    fn candidate(&mut self, candidate: Option<&CandidateSettings>) {
        let Some(candidate) = candidate else {
            return;
        };
        let CandidateSettings {
            span: _,
            algorithm,
            limit,
            period,
            burst,
            slices,
            queue,
            ratio,
        } = candidate;
        self.given("candidate.algorithm", &rule::algorithm(), algorithm);
        self.given("candidate.limit", &scalar::integer(1..=u32::MAX), limit);
        self.given("candidate.period", &rule::period(), period);
        self.given("candidate.burst", &rule::burst(), burst);
        self.given("candidate.slices", &rule::slices(), slices);
        self.given("candidate.queue", &rule::queue(), queue);
        self.given("candidate.ratio", &rule::ratio(), ratio);
    }
}
