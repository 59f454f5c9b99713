//! A rule as a row of the table: its settings, its newest rates and its recent history.

use serde_json::Value;

/// The number of values in a sparkline.
pub const SPARKS: usize = 20;

/// A rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleRow {
    pub name: String,
    /// The position in the file.
    order: usize,
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
    /// Mitigated requests per second of the last 15 minutes, oldest first.
    pub sparks: Vec<f64>,
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
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let number = |name: &str| object.get(name).and_then(Value::as_u64);
        let has = |name: &str| object.get(name).is_some_and(|value| !value.is_null());
        Self {
            name: text("name").unwrap_or_default().to_owned(),
            order,
            keys: number("keys").filter(|_| has("algorithm")),
            bans: number("bans").filter(|_| has("duration") || has("escalate")),
            object: object.clone(),
            ..Self::default()
        }
    }

    /// Keeps the rates and the history of an earlier row of the rule.
    pub fn keep_rates(&mut self, known: &Self) {
        self.matched_per_s = known.matched_per_s;
        self.mitigated_per_s = known.mitigated_per_s;
        self.would_mitigate_per_s = known.would_mitigate_per_s;
        self.sparks.clone_from(&known.sparks);
    }

    /// Takes the rates of a tick.
    pub fn take_tick(&mut self, tick: &Value) {
        let Some(own) = tick.get("rules").and_then(|rules| rules.get(&self.name)) else {
            return;
        };
        let rate = |name: &str| own.get(name).and_then(Value::as_f64).unwrap_or_default();
        self.matched_per_s = rate("matched_per_s");
        self.mitigated_per_s = rate("mitigated_per_s");
        self.would_mitigate_per_s = rate("would_mitigate_per_s");
        let number = |name: &str| own.get(name).and_then(Value::as_u64);
        self.keys = self.keys.and(number("keys")).or(self.keys);
        self.bans = self.bans.and(number("bans")).or(self.bans);
    }

    /// Takes the history of 15 minutes, shortened to [`SPARKS`] values by their mean.
    pub fn take_history(&mut self, history: &Value) {
        let own = history.get("rules").and_then(|rules| rules.get(&self.name));
        let values = own
            .and_then(|own| own.get("mitigated_per_s"))
            .and_then(Value::as_array);
        let values: Vec<f64> = values
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .collect();
        let size = values.len().div_ceil(SPARKS).max(1);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        self.sparks = values.chunks(size).map(mean).collect();
    }

    /// The limit, such as `5 / 1m`.
    pub fn limit(&self) -> String {
        let limit = self
            .object
            .get("limit")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        let text = |name: &str| self.object.get(name).and_then(Value::as_str);
        match (text("algorithm"), text("period")) {
            (None, _) => "every match".to_owned(),
            (Some(_), Some(period)) => format!("{limit} / {period}"),
            (Some(_), None) => format!("{limit} at once"),
        }
    }

    /// The action, in parentheses for a dry run.
    pub fn action(&self) -> String {
        let action = self
            .object
            .get("action")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if self.is_dry_run() {
            format!("({action})")
        } else {
            action.to_owned()
        }
    }

    /// Whether the rule does not act.
    pub fn is_dry_run(&self) -> bool {
        self.object
            .get("dry_run")
            .and_then(Value::as_bool)
            .unwrap_or_default()
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
                rules.sort_by(|a, b| b.mitigated_per_s.total_cmp(&a.mitigated_per_s));
            }
            Self::MostMatched => rules.sort_by(|a, b| b.matched_per_s.total_cmp(&a.matched_per_s)),
            Self::MostBans => rules.sort_by_key(|row| std::cmp::Reverse(row.bans)),
        }
    }
}
