//! What `lockgate check` says about each preset: its rules, which clients they refuse or challenge,
//! and what that costs honest users.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::config::file::{ConfigFile, PresetKind, ProtectSettings, UserSource};
use crate::config::presets::{Preset, RuleDraft};
use crate::config::{ConfigSource, Text, duration_text};
use crate::credential::KnownCookie;

/// The facts about one preset, as text.
struct PresetSummary<'a> {
    preset: &'a Preset,
    written: &'a ProtectSettings,
    file: &'a ConfigFile,
    source: &'a ConfigSource,
}

/// One block of text for each preset.
pub fn human(file: &ConfigFile, source: &ConfigSource) -> String {
    let blocks = summaries(file, source).map(|summary| summary.block());
    blocks.collect()
}

/// The same facts as JSON, one object for each preset.
pub fn json(file: &ConfigFile, source: &ConfigSource) -> Value {
    let objects = summaries(file, source).map(|summary| summary.object());
    Value::Array(objects.collect())
}

fn summaries<'a>(
    file: &'a ConfigFile,
    source: &'a ConfigSource,
) -> impl Iterator<Item = PresetSummary<'a>> {
    let presets = file.presets.iter();
    presets.filter_map(move |preset| {
        Some(PresetSummary {
            preset,
            written: file.protect.get(preset.index)?,
            file,
            source,
        })
    })
}

// === impl PresetSummary ===

impl PresetSummary<'_> {
    fn block(&self) -> String {
        let (rules, off) = self.rules();
        let off = if off.is_empty() {
            String::new()
        } else {
            format!(" (off: {})", off.join(" "))
        };
        let count = if rules.len() == 1 { "rule" } else { "rules" };
        let user = self
            .user()
            .map_or(String::new(), |user| format!(", user from {user}"));
        let mut text = format!(
            "protect \"{}\" ({}:{}): {}{user}\n  {} {count} {}: {}{off}\n",
            self.written.name.value,
            self.path(),
            self.line(),
            self.requests(),
            rules.len(),
            self.position(),
            rules.join(" "),
        );
        let facts = [
            ("known", Vec::from_iter(self.known())),
            ("refuses", vec![self.stops(false).join("; ")]),
            ("challenges", vec![self.stops(true).join("; ")]),
            ("cost", self.cost()),
            ("not stopped", vec![self.not_stopped().join("; ")]),
        ];
        for (title, lines) in facts {
            let lines = lines.into_iter().filter(|line| !line.is_empty());
            for (at, line) in lines.enumerate() {
                let title = if at == 0 { title } else { "" };
                let _ = writeln!(text, "  {title:<11}  {line}");
            }
        }
        text
    }

    fn object(&self) -> Value {
        let rules = self.preset.rules.iter();
        let rules: Vec<&str> = rules
            .map(|rule| rule.settings.name.value.as_str())
            .collect();
        json!({
            "name": self.written.name.value,
            "kind": self.written.kind.map(PresetKind::name),
            "file": self.path(),
            "line": self.line(),
            "requests": self.requests(),
            "user": self.user(),
            "position": self.position(),
            "rules": rules,
            "known": self.known(),
            "refuses": self.stops(false),
            "challenges": self.stops(true),
            "cost": self.cost(),
            "not_stopped": self.not_stopped(),
        })
    }

    /// The rules that are enabled, and those that are not.
    fn rules(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let rules = self.preset.rules.iter();
        let (on, off): (Vec<_>, Vec<_>) = rules.partition(|rule| rule.settings.enabled.value);
        let subs = |rules: Vec<&RuleDraft>| rules.into_iter().map(|rule| rule.sub).collect();
        (subs(on), subs(off))
    }

    fn path(&self) -> &str {
        self.source.part(self.written.span.start).path
    }

    fn line(&self) -> usize {
        self.source.position(self.written.span.start).line
    }

    /// The protected requests, such as `POST /login`.
    fn requests(&self) -> String {
        let paths = join(&self.written.path);
        let hosts = match self.written.host.as_slice() {
            [] => String::new(),
            hosts => format!(" on {}", join(hosts)),
        };
        match self.written.kind {
            Some(PresetKind::Pages) => format!("{paths}{hosts}"),
            _ => format!("{} {paths}{hosts}", self.written.method.value),
        }
    }

    fn user(&self) -> Option<String> {
        Some(match &self.written.user.as_ref()?.source {
            UserSource::Field(name) => format!("form field \"{name}\""),
            UserSource::Json(names) => format!("JSON name \"{}\"", names.join(".")),
            UserSource::Expression(text) => format!("`{}`", text.value),
        })
    }

    fn position(&self) -> String {
        let before = self.preset.slot.checked_sub(1);
        match before.and_then(|at| self.file.written_rules().nth(at)) {
            Some(rule) => format!("after rule \"{}\"", rule.name.value),
            None => "before all rules".to_owned(),
        }
    }

    /// Which responses make a client known. `None` if other settings say it.
    fn known(&self) -> Option<String> {
        let known = self.file.known_clients.as_ref()?;
        let Some(source) = &self.preset.source else {
            let nobody = known.success.is_none() && self.file.known_sources().next().is_none();
            return nobody.then(|| {
                "nobody: add a `login` or `signup` preset, or `success` in `[known_clients]`"
                    .to_owned()
            });
        };
        let cookie = match &known.domain.value {
            Some(_) => KnownCookie::DOMAIN_NAME,
            None => KnownCookie::HOST_NAME,
        };
        let days = known.lifetime.value.as_secs() / 86_400;
        Some(format!(
            "a response that matches `{}`; cookie {cookie}, {days} days",
            source.success.value
        ))
    }

    /// What the rules refuse or challenge, one phrase for each rule.
    fn stops(&self, challenges: bool) -> Vec<String> {
        let rules = self.preset.rules.iter();
        let rules = rules.filter(|rule| rule.settings.enabled.value);
        let rules = rules.filter(|rule| rule.challenges() == challenges);
        let phrases = rules.map(|rule| {
            let phrase = self.phrase(rule);
            if rule.settings.dry_run.value {
                format!("{phrase} (dry run)")
            } else {
                phrase
            }
        });
        phrases.collect()
    }

    fn phrase(&self, rule: &RuleDraft) -> String {
        use PresetKind::{Login, Pages, Signup};
        let young = duration_text(self.written.young.value);
        let (who, what, share) = match (self.written.kind, rule.sub) {
            (Some(Login), "known-device") => ("known devices", "failures", ""),
            (Some(Login), "account") => ("new devices of one account", "failures", ""),
            (Some(Login), "account-check") => ("new devices of one account", "logins", ""),
            (Some(Login), "address") => ("new devices of one address", "failures", "fail"),
            (Some(Login), "tool") => ("new devices of one TLS fingerprint", "failures", "fail"),
            (Some(Login), "site") => ("all new devices", "failures", "fail"),
            (Some(Login), "ceiling") => ("all new devices", "failures", ""),
            (Some(Login), "at-once") => ("new devices", "logins", ""),
            (Some(Login), "clearance") => ("a clearance", "failures", ""),
            (Some(Login), "clearance-logins") => ("a clearance", "logins", ""),
            (Some(Pages), "only") => (
                "new clients of one address",
                "pages",
                "of its requests are pages",
            ),
            (Some(Pages), "clearance") => ("a clearance", "pages", ""),
            (Some(Signup), "account") => ("a device", "actions", ""),
            (Some(Signup), "new-devices") => {
                return counted(
                    rule,
                    &format!("devices younger than {young}"),
                    "actions",
                    "are theirs",
                );
            }
            (Some(Signup), "clearance") => ("a clearance of a new device", "actions", ""),
            (Some(Signup), "register-clearance") => ("a clearance", "registrations", ""),
            (Some(Signup), "register") => return "every registration".to_owned(),
            (Some(Signup), _) => return format!("all devices younger than {young}, always"),
            _ => return "all new clients, always".to_owned(),
        };
        counted(rule, who, what, share)
    }

    /// What the preset cost honest users in the simulation, one row of figures for each kind and mode. Other settings
    /// than the defaults were not simulated.
    fn cost(&self) -> Vec<String> {
        let written = self.written;
        if written.ratio.is_some() || !written.rules.is_empty() {
            return vec![
                "(simulation) only the default limits and ratios were simulated".to_owned(),
            ];
        }
        self.cost_of_defaults()
    }

    fn cost_of_defaults(&self) -> Vec<String> {
        let strict = self.written.strict.value;
        let ceiling = self.written.ceiling.value;
        let lines: &[&str] = match self.written.kind {
            Some(PresetKind::Login) if !self.written.challenge.value => {
                &["no client is challenged; an attack from many addresses is not stopped"]
            }
            Some(PresetKind::Login) if strict => {
                &["(simulation) 40 % challenged at all times; no attack: 0.25 % harmed"]
            }
            Some(PresetKind::Login) => {
                let below = match ceiling {
                    0 => "(simulation) no attack: 0 % challenged".to_owned(),
                    80 => "(simulation) no attack: 0 % challenged below the ceiling of 80 failures/min; \
                           a site of 20 logins/s passes it: 77 %"
                        .to_owned(),
                    other => format!(
                        "(simulation) no attack: 0 % challenged below the ceiling of {other} failures/min"
                    ),
                };
                let attack = "attack: all new devices challenged (40 % of users), 0.2 % cannot solve; \
                              apps that cannot solve are refused";
                return vec![below, attack.to_owned()];
            }
            Some(PresetKind::Pages) if strict => &["(simulation) 60 % challenged, 0.29 % harmed"],
            Some(PresetKind::Pages) => &[
                "(simulation) 0 % challenged; 11 % of a 10-minute scrape and 1.55 % of a 6-hour scrape get through",
            ],
            Some(PresetKind::Signup) if strict => {
                &["every new device and every registration is challenged; not simulated"]
            }
            Some(PresetKind::Signup) => &["(simulation) attack: 26 % challenged, 0.75 % harmed"],
            None => &[],
        };
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn not_stopped(&self) -> Vec<&'static str> {
        let strict = self.written.strict.value;
        let solvers =
            "clients that solve (ask requests with x-lockgate-challenge for a second factor)";
        let slow = "stuffing slower than the honest noise (strict = true stops it)";
        let images = "scrapers that load images (strict = true stops them)";
        match self.written.kind {
            Some(PresetKind::Login) if !self.written.challenge.value => {
                vec!["attacks from many addresses at many accounts"]
            }
            Some(PresetKind::Login) => {
                let guesses = "guesses at one account by a client that solves";
                let mut rest = vec![solvers];
                rest.extend((!strict).then_some(slow));
                rest.extend(self.written.user.is_none().then_some(guesses));
                rest
            }
            Some(PresetKind::Pages) if !strict => vec!["clients that solve", images],
            Some(_) => vec!["clients that solve"],
            None => Vec::new(),
        }
    }
}

/// Describes the limit of a rule: its key, the number of requests or responses, and their share of the total.
fn counted(rule: &RuleDraft, who: &str, what: &str, share: &str) -> String {
    let limit = rule.settings.limit.as_ref().map_or(0, |limit| limit.value);
    let Some(period) = &rule.settings.period else {
        return format!("{who} above {limit} {what} in flight");
    };
    let mut text = format!(
        "{who} after {limit} {what} in {}",
        duration_text(period.value)
    );
    if let Some(ratio) = &rule.settings.ratio {
        let _ = write!(text, " if over {} % {share}", percent(ratio.value));
    }
    text
}

/// A ratio as a percentage, without digits that mean nothing.
fn percent(ratio: f64) -> f64 {
    (ratio * 10_000.0).round() / 100.0
}

fn join(texts: &[Text]) -> String {
    let texts: Vec<&str> = texts.iter().map(|text| &*text.value).collect();
    texts.join(", ")
}
