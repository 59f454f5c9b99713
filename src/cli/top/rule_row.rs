//! A rule as a row of the table: its settings, its newest rates and its recent history.

use serde_json::Value;

use super::api_fields::ApiFields as _;
use super::traffic_history::complete_steps;

/// A rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleRow {
    pub name: String,
    /// The position in the order of evaluation, counted from 0.
    pub order: usize,
    /// The object of the API.
    pub object: Value,
    pub matched_per_s: f64,
    pub mitigated_per_s: f64,
    /// For a dry run.
    pub would_mitigate_per_s: f64,
    /// `None` if the rule has no keys.
    pub keys: Option<u64>,
    /// `None` if the rule bans no key.
    pub bans: Option<u64>,
    /// Rates at which the candidate also refuses requests, and would admit some. `None` without a candidate.
    pub candidate_per_s: Option<(f64, f64)>,
    /// Matched requests per second of the last 15 minutes, oldest first.
    pub matched: Vec<f64>,
    /// Mitigated ones. For a dry run, what it would mitigate.
    pub mitigated: Vec<f64>,
}

/// The order of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSort {
    Evaluated,
    MostMitigated,
    MostMatched,
    MostBans,
}

// === impl RuleRow ===

impl RuleRow {
    /// A row without rates.
    pub fn new(order: usize, object: &Value) -> Self {
        let has = |name: &str| !object.object(name).is_null();
        Self {
            name: object.text("name").to_owned(),
            order,
            keys: has("algorithm").then(|| object.count("keys")),
            bans: (has("duration") || has("escalate")).then(|| object.count("bans")),
            object: object.clone(),
            ..Self::default()
        }
    }

    /// Keeps the rates and the history of an earlier row of the rule.
    pub fn keep_rates(&mut self, known: Self) {
        let (object, keys, bans, order) = (self.object.take(), self.keys, self.bans, self.order);
        *self = Self {
            object,
            keys,
            bans,
            order,
            ..known
        };
    }

    /// Takes the rates of a tick.
    pub fn take_tick(&mut self, tick: &Value) {
        let own = tick.object("rules").object(&self.name);
        if own.is_null() {
            return;
        }
        let rate = |name: &str| own.number(name).unwrap_or_default();
        self.matched_per_s = rate("matched_per_s");
        self.mitigated_per_s = rate("mitigated_per_s");
        self.would_mitigate_per_s = rate("would_mitigate_per_s");
        let candidate = own.object("candidate");
        let rate = |name: &str| candidate.number(name).unwrap_or_default();
        self.candidate_per_s = candidate
            .is_object()
            .then(|| (rate("stricter_per_s"), rate("laxer_per_s")));
        self.keys = self.keys.map(|_| own.count("keys"));
        self.bans = self.bans.map(|_| own.count("bans"));
    }

    /// Takes the history of 15 minutes.
    pub fn take_history(&mut self, history: &Value) {
        let own = history.object("rules").object(&self.name);
        self.matched = complete_steps(own, "matched_per_s");
        self.mitigated = complete_steps(own, "mitigated_per_s");
    }

    /// The rate of the requests on which the rule acts, or would act.
    pub fn acting_per_s(&self) -> f64 {
        if self.is_dry_run() {
            self.would_mitigate_per_s
        } else {
            self.mitigated_per_s
        }
    }

    /// The length of a ban by hand.
    pub fn ban_duration(&self) -> &str {
        let first = self.object.list("escalate").first().and_then(Value::as_str);
        match (self.object.text("duration"), first) {
            ("", None) => "10m",
            ("", Some(first)) => first,
            (duration, _) => duration,
        }
    }

    /// The limit, such as `5 / 1m`.
    pub fn limit(&self) -> String {
        limit_text(&self.object)
    }

    /// The action, in parentheses for a dry run.
    pub fn action(&self) -> String {
        let action = self.object.text("action");
        if self.is_dry_run() {
            format!("({action})")
        } else {
            action.to_owned()
        }
    }

    /// Whether the rule does not act.
    pub fn is_dry_run(&self) -> bool {
        self.object.flag("dry_run")
    }

    /// Signs behind the name: a dry run, a candidate, a disabled rule.
    pub fn signs(&self) -> String {
        let has_candidate = self.object.object("candidate").is_object();
        let is_off = self.object.object("enabled") == &Value::Bool(false);
        let signs = [
            is_off.then_some("off"),
            self.is_dry_run().then_some("dry"),
            has_candidate.then_some("cand"),
        ];
        signs.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// The limit of a rule or a candidate, such as `5 / 1m`.
pub fn limit_text(object: &Value) -> String {
    let limit = object.count("limit");
    match (object.text("algorithm"), object.text("period")) {
        ("", _) => "every match".to_owned(),
        (_, "") => format!("{limit} at once"),
        (_, period) => format!("{limit} / {period}"),
    }
}

// === impl RuleSort ===

impl RuleSort {
    /// The next order.
    pub const fn next(self) -> Self {
        match self {
            Self::Evaluated => Self::MostMitigated,
            Self::MostMitigated => Self::MostMatched,
            Self::MostMatched => Self::MostBans,
            Self::MostBans => Self::Evaluated,
        }
    }

    /// The order in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evaluated => "as evaluated",
            Self::MostMitigated => "most mitigated",
            Self::MostMatched => "most matched",
            Self::MostBans => "most bans",
        }
    }

    /// Sorts rules. Equal ones stay in file order.
    pub fn apply(self, rules: &mut [RuleRow]) {
        rules.sort_by_key(|row| row.order);
        match self {
            Self::Evaluated => {}
            Self::MostMitigated => {
                rules.sort_by(|a, b| b.acting_per_s().total_cmp(&a.acting_per_s()));
            }
            Self::MostMatched => rules.sort_by(|a, b| b.matched_per_s.total_cmp(&a.matched_per_s)),
            Self::MostBans => rules.sort_by_key(|row| std::cmp::Reverse(row.bans)),
        }
    }
}
