//! The conditions of attention entries, and their texts. Pure.

mod upstreams;

use std::sync::Arc;
use std::time::Duration;

use self::upstreams::{failing_upstream, unhealthy_servers};
use crate::admin::objects::{
    AttentionLevel, CertificateObject, HeldObject, LastReloadObject, StoreObject, UpstreamObject,
};
use crate::clock::Timestamp;
use crate::observe::activity::CandidateRates;

/// The mitigated requests per second above which a rule can need attention.
const BUSY_RULE: f64 = 20.0;
/// How many times as much as before a rule must mitigate.
const GROWTH: f64 = 5.0;
/// The requests per second above which a candidate or a dry run is worth a look.
const WORTH_A_LOOK: f64 = 0.5;
/// The share of `server.max_held` above which requests may soon not be held.
const HELD_SHARE: f64 = 0.8;
const DAY: Duration = Duration::from_secs(86_400);

/// What the conditions read. "Window" means the history of 15 minutes.
#[derive(Clone, Debug, Default)]
pub struct AttentionFacts {
    /// The last reload. `None` before the first one.
    pub last_reload: Option<LastReloadObject>,
    /// The enabled rules.
    pub rules: Vec<RuleActivity>,
    /// The upstreams.
    pub upstreams: Vec<UpstreamObject>,
    /// The certificates of all listeners.
    pub certificates: Vec<CertificateObject>,
    /// The panics within the window.
    pub panics: u64,
    /// The store. `None` if its state is unknown.
    pub store: Option<StoreObject>,
    /// The bans that were evicted within the window.
    pub evicted_bans: u64,
    /// The held requests.
    pub held: HeldObject,
    /// The bans that are likely false positives.
    pub likely_false_positives: usize,
}

/// What a rule does now and did before.
#[derive(Clone, Debug, Default)]
pub struct RuleActivity {
    /// The name.
    pub name: Arc<str>,
    /// The action.
    pub action: &'static str,
    /// Mitigated requests per second, now.
    pub mitigated_per_s: f64,
    /// Requests per second that a dry run would mitigate, now.
    pub would_mitigate_per_s: f64,
    /// Mitigated requests per second in each step of the first quarter of the window.
    pub before: Vec<f32>,
    /// `None` without a candidate.
    pub candidate: Option<CandidateRates>,
    /// Active bans.
    pub bans: u64,
}

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionFinding {
    /// Identifies the entry while the condition holds.
    pub id: String,
    /// How urgent it is.
    pub level: AttentionLevel,
    /// A sentence without a final full stop.
    pub text: String,
    /// More text. May be empty.
    pub detail: String,
    /// Where to look. `None` if there is no such section.
    pub link: Option<String>,
    /// Since when the condition holds. `None` if only the time of its first sight is known.
    pub since: Option<Timestamp>,
}

// === impl AttentionFacts ===

impl AttentionFacts {
    /// Returns the conditions that hold, in the order of the documentation.
    pub fn findings(&self, now: Timestamp) -> Vec<AttentionFinding> {
        let mut findings = Vec::new();
        findings.extend(self.reload());
        findings.extend(self.rules.iter().filter_map(RuleActivity::attack));
        findings.extend(self.upstreams.iter().filter_map(failing_upstream));
        let certificates = self.certificates.iter();
        findings.extend(certificates.filter_map(|one| expiry(one, now)));
        findings.extend(self.panics());
        findings.extend(self.store.as_ref().and_then(outage));
        findings.extend(self.upstreams.iter().flat_map(unhealthy_servers));
        findings.extend(self.evictions());
        findings.extend(self.held());
        findings.extend(self.false_positives());
        findings.extend(self.rules.iter().filter_map(RuleActivity::divergence));
        findings.extend(self.rules.iter().filter_map(RuleActivity::trial));
        findings
    }

    fn reload(&self) -> Option<AttentionFinding> {
        let last = self.last_reload.as_ref().filter(|last| !last.ok)?;
        let error = last.errors.first();
        let detail = error.map_or_else(String::new, |error| {
            let at = format!("{}:{}:{}", error.file, error.line, error.column);
            format!(
                "{at}: {}. The previous configuration stays in effect.",
                error.message
            )
        });
        let text = "The last reload was refused";
        let finding = AttentionFinding::new("reload", AttentionLevel::Crit, text);
        let since = Some(last.at.0);
        Some(
            finding
                .with_detail(detail)
                .at(since)
                .linked("config:last_reload"),
        )
    }

    fn panics(&self) -> Option<AttentionFinding> {
        let text = match self.panics {
            0 => return None,
            1 => "The gateway had a panic within the last 15 minutes".to_owned(),
            more => format!("The gateway had {more} panics within the last 15 minutes"),
        };
        let finding = AttentionFinding::new("panics", AttentionLevel::Crit, text);
        Some(
            finding.with_detail(
                "This is a bug. The log has a line `panic` for each; please report them.",
            ),
        )
    }

    fn evictions(&self) -> Option<AttentionFinding> {
        let text = match self.evicted_bans {
            0 => return None,
            1 => "A ban was evicted within the last 15 minutes".to_owned(),
            more => format!("{more} bans were evicted within the last 15 minutes"),
        };
        let finding = AttentionFinding::new("evictions", AttentionLevel::Warn, text);
        let detail = "The store is full of bans. Raise store.max_keys.";
        Some(finding.with_detail(detail).linked("bans:all"))
    }

    fn held(&self) -> Option<AttentionFinding> {
        let HeldObject { now, max } = self.held;
        if now as f64 <= max as f64 * HELD_SHARE {
            return None;
        }
        let text = format!("{now} of at most {max} requests are held");
        let finding = AttentionFinding::new("held", AttentionLevel::Warn, text);
        let detail = "At server.max_held, rules refuse requests instead of holding them.";
        Some(finding.with_detail(detail).linked("section:rules"))
    }

    fn false_positives(&self) -> Option<AttentionFinding> {
        let text = match self.likely_false_positives {
            0 => return None,
            1 => "1 ban is likely a false positive".to_owned(),
            more => format!("{more} bans are likely false positives"),
        };
        let finding = AttentionFinding::new("false_positives", AttentionLevel::Note, text);
        let detail = "First offence, at most 5 requests mitigated, banned by a rule.";
        Some(
            finding
                .with_detail(detail)
                .linked("bans:likely_false_positives"),
        )
    }
}

// === impl RuleActivity ===

impl RuleActivity {
    fn attack(&self) -> Option<AttentionFinding> {
        let acts = !["allow", "tag", "log"].contains(&self.action);
        let before = median(&self.before);
        let rate = self.mitigated_per_s;
        if !acts || rate <= BUSY_RULE || rate <= GROWTH * (before + 1.0) {
            return None;
        }
        let (verb, per_second) = (verb(self.action), number(rate));
        let text = format!("{} {verb} {per_second} requests per second", self.name);
        let bans = match self.bans {
            0 => String::new(),
            1 => " 1 active ban.".to_owned(),
            more => format!(" {more} active bans."),
        };
        let detail = format!("{} per second 15 minutes ago.{bans}", number(before));
        let id = format!("rule:{}", self.name);
        let finding = AttentionFinding::new(&id, AttentionLevel::Crit, text);
        Some(finding.with_detail(detail).linked(&id))
    }

    fn divergence(&self) -> Option<AttentionFinding> {
        let rates = self.candidate?;
        if rates.stricter_per_s + rates.laxer_per_s <= WORTH_A_LOOK {
            return None;
        }
        let differs = number(rates.stricter_per_s + rates.laxer_per_s);
        let text = format!(
            "The candidate of {} decides {differs} requests per second differently",
            self.name
        );
        let (stricter, laxer) = (number(rates.stricter_per_s), number(rates.laxer_per_s));
        let detail =
            format!("It also refuses {stricter} per second and would admit {laxer} per second.");
        Some(self.note("candidate", text).with_detail(detail))
    }

    fn trial(&self) -> Option<AttentionFinding> {
        if self.would_mitigate_per_s <= WORTH_A_LOOK {
            return None;
        }
        let (action, rate) = (self.action, number(self.would_mitigate_per_s));
        let text = format!(
            "The dry run of {} would {action} {rate} requests per second",
            self.name
        );
        Some(self.note("dry_run", text))
    }

    fn note(&self, kind: &str, text: String) -> AttentionFinding {
        let id = format!("{kind}:{}", self.name);
        let finding = AttentionFinding::new(&id, AttentionLevel::Note, text);
        finding.linked(&format!("rule:{}", self.name))
    }
}

fn expiry(certificate: &CertificateObject, now: Timestamp) -> Option<AttentionFinding> {
    let end = certificate.not_after.0;
    let left = end.since(now);
    let level = match left {
        left if left < 7 * DAY => AttentionLevel::Crit,
        left if left < 21 * DAY => AttentionLevel::Warn,
        _ => return None,
    };
    let days = left.as_secs() / DAY.as_secs();
    let when = match days {
        _ if left.is_zero() => "has expired".to_owned(),
        0 => "expires in less than a day".to_owned(),
        1 => "expires in 1 day".to_owned(),
        days => format!("expires in {days} days"),
    };
    let CertificateObject { listener, name, .. } = certificate;
    let text = format!("The certificate of {name} {when}");
    let id = format!("certificate:{listener}/{name}");
    let detail = format!("Listener {listener}, until {}.", certificate.not_after);
    Some(AttentionFinding::new(&id, level, text).with_detail(detail))
}

fn outage(store: &StoreObject) -> Option<AttentionFinding> {
    let effect = match store.state {
        "ok" => return None,
        "local" => {
            let percent = store.local_fraction.unwrap_or(1.0) * 100.0;
            format!("This gateway counts alone, at {percent:.0} % of each limit.")
        }
        "open" => "Rules admit every request.".to_owned(),
        "closed" => "Rules refuse every request with 503.".to_owned(),
        _ => "Some calls fail; those requests use the fallback.".to_owned(),
    };
    let text = match store.state {
        "degraded" => format!("Store {} is degraded", store.kind),
        _ => format!("Store {} is unavailable", store.kind),
    };
    let error = store.error.as_ref().map(|error| format!("{error}. "));
    let detail = capitalized(&(error.unwrap_or_default() + &effect));
    let finding = AttentionFinding::new("store", AttentionLevel::Warn, text);
    let since = store.since.map(|since| since.0);
    Some(
        finding
            .with_detail(detail)
            .at(since)
            .linked("section:rules"),
    )
}

// === impl AttentionFinding ===

impl AttentionFinding {
    fn new(id: &str, level: AttentionLevel, text: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            level,
            text: text.into(),
            detail: String::new(),
            link: None,
            since: None,
        }
    }

    fn with_detail(self, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { detail, ..self }
    }

    fn at(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    fn linked(self, link: &str) -> Self {
        let link = Some(link.to_owned());
        Self { link, ..self }
    }
}

/// The verb of an action with a rule as its subject.
fn verb(action: &str) -> &'static str {
    match action {
        "shadow" => "shadows",
        "divert" => "diverts",
        "delay" => "delays",
        "tarpit" => "tarpits",
        "close" => "closes",
        "challenge" => "challenges",
        _ => "blocks",
    }
}

/// Returns the median of some rates. 0 without any.
fn median(rates: &[f32]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f32::total_cmp);
    sorted.get(sorted.len() / 2).copied().map_or(0.0, f64::from)
}

/// Formats a rate: one decimal below 9.95, none above, 0 below 0.05.
fn number(rate: f64) -> String {
    match rate {
        rate if rate < 0.05 => "0".to_owned(),
        rate if rate < 9.95 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}
