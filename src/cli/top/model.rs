//! The state of `lockgate top`: what is shown, what is selected, and what each key does. Pure: it neither draws nor
//! calls the gateway, but returns [`TopCommand`]s.

use std::time::Duration;

use serde_json::Value;

mod keys;

use super::rule_row::{RuleRow, RuleSort};
use crate::clock::Timestamp;

/// How long a notice and its undo are shown.
const NOTICE: Duration = Duration::from_secs(10);
/// The minimum time between two sorts of a table.
const SORT_INTERVAL: Duration = Duration::from_secs(10);
/// The time without a tick after which the stream counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(4);
/// The times between two refreshes, in seconds.
const REFRESH: [u64; 4] = [1, 2, 5, 10];

/// A key, independent of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopKey {
    Char(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Enter,
    Esc,
    Backspace,
    CtrlC,
}

/// What is on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopScreen {
    /// The head, the entries that need attention, and the rules.
    Overview,
    /// A rule with its hottest keys.
    Rule(String),
    /// The active bans, or only those that are likely false positives.
    Bans {
        /// Whether only likely false positives are shown.
        is_likely_false: bool,
    },
    /// The servers of all upstreams.
    Upstreams,
    /// All keys.
    Help,
}

/// A call of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum TopCommand {
    /// End the program.
    Quit,
    /// Read what the screen shows.
    Refresh,
    /// Unban a key.
    Unban {
        /// The rule.
        rule: String,
        /// The key as listed.
        key: String,
    },
    /// Ban a key by hand.
    Ban {
        /// The rule.
        rule: String,
        /// The key as listed.
        key: String,
        /// As in gateway.toml.
        duration: String,
    },
    /// Restore a ban that was removed.
    Undo(Value),
    /// Reload the configuration.
    Reload,
}

/// What is asked in the line above the key help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopPrompt {
    /// A question that `y` or `n` answers.
    Confirm(ConfirmedAction),
    /// The duration of a ban by hand.
    Duration {
        /// The rule and the key.
        target: (String, String),
        /// What was typed.
        text: String,
    },
    /// A rule, a key or an address to find.
    Find(String),
}

/// What a `y` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfirmedAction {
    /// Unban the key of the rule.
    Unban(String, String),
    /// Reload the configuration.
    Reload,
}

/// A row that a key can select: a rule, a hot key, a ban or a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedRow {
    /// The rule.
    pub rule: String,
    /// The key. Empty for a rule and a server.
    pub key: String,
    /// The object of the API.
    pub object: Value,
}

/// The state.
#[derive(Clone, Debug)]
pub struct TopModel {
    /// The time of the newest event.
    pub now: Timestamp,
    /// What is shown.
    pub screen: TopScreen,
    /// The newest status.
    pub status: Value,
    /// The newest tick.
    pub tick: Value,
    /// The rules in the shown order.
    pub rules: Vec<RuleRow>,
    /// The rows of all screens but the overview.
    pub rows: Vec<ListedRow>,
    /// The identity of the selected row, which it keeps when the table is sorted.
    selected: (String, String),
    /// The question or the input, if there is one.
    pub prompt: Option<TopPrompt>,
    /// The result of the last command, and when it was shown first.
    notice: Option<(Timestamp, String)>,
    removed: Option<Value>,
    sort: RuleSort,
    is_reversed: bool,
    sorted_at: Timestamp,
    /// When the screen was paused.
    paused_at: Option<Timestamp>,
    ticked_at: Timestamp,
    refresh: usize,
}

// === impl TopModel ===

impl TopModel {
    /// The state before the first event.
    pub fn new(now: Timestamp) -> Self {
        Self {
            now,
            screen: TopScreen::Overview,
            status: Value::Null,
            tick: Value::Null,
            rules: Vec::new(),
            rows: Vec::new(),
            selected: Default::default(),
            prompt: None,
            notice: None,
            removed: None,
            sort: RuleSort::Evaluated,
            is_reversed: false,
            sorted_at: Timestamp::default(),
            paused_at: None,
            ticked_at: now,
            refresh: 0,
        }
    }

    /// The time between two refreshes.
    pub fn refresh_interval(&self) -> Duration {
        Duration::from_secs(REFRESH.get(self.refresh).copied().unwrap_or(1))
    }

    /// How long the screen has been paused. `None` if it is not.
    pub fn paused_for(&self) -> Option<Duration> {
        self.paused_at.map(|at| self.now.since(at))
    }

    /// How long ago the last tick arrived, if that is too long. `None` while the stream is live.
    pub fn lost_for(&self) -> Option<Duration> {
        let silence = self.now.since(self.ticked_at);
        (silence >= LOST_AFTER).then_some(silence)
    }

    /// The result of the last command, for ten seconds.
    pub fn notice(&self) -> Option<&str> {
        let (at, text) = self.notice.as_ref()?;
        (self.now.since(*at) < NOTICE).then_some(text.as_str())
    }

    /// The index of the selected row.
    pub fn selected_index(&self) -> usize {
        let is_selected = |id: (String, String)| id == self.selected;
        let ids = self.row_ids();
        ids.into_iter().position(is_selected).unwrap_or_default()
    }

    /// Notes that time has passed.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Takes a tick of the stream. A paused screen stands still.
    pub fn take_tick(&mut self, tick: Value) {
        self.ticked_at = self.now;
        if self.paused_at.is_some() {
            return;
        }
        for row in &mut self.rules {
            row.take_tick(&tick);
        }
        self.tick = tick;
        self.sort_rules();
    }

    /// Takes a status.
    pub fn take_status(&mut self, status: Value) {
        if self.paused_at.is_none() {
            self.status = status;
        }
    }

    /// Takes the list of rules, in file order.
    pub fn take_rules(&mut self, rules: &Value) {
        if self.paused_at.is_some() {
            return;
        }
        let listed = rules.as_array().into_iter().flatten().enumerate();
        let rows = listed.map(|(order, object)| {
            let mut row = RuleRow::new(order, object);
            let known = self.rules.iter().find(|known| known.name == row.name);
            if let Some(known) = known {
                row.keep_rates(known);
            }
            row
        });
        self.rules = rows.collect();
        self.sorted_at = Timestamp::default();
        self.sort_rules();
    }

    /// Takes the history of each rule's mitigated requests.
    pub fn take_history(&mut self, history: &Value) {
        for row in &mut self.rules {
            row.take_history(history);
        }
    }

    /// Takes the rows of the current screen.
    pub fn take_rows(&mut self, rows: Vec<ListedRow>) {
        if self.paused_at.is_none() {
            self.rows = rows;
        }
    }

    /// Shows the result of a command. `removed` can be restored with `z`.
    pub fn take_result(&mut self, text: String, removed: Option<Value>) {
        self.notice = Some((self.now, text));
        self.removed = removed;
    }

    fn open(&mut self, screen: TopScreen) -> Option<TopCommand> {
        if let (TopScreen::Rule(name), TopScreen::Overview) = (&self.screen, &screen) {
            self.selected = (name.clone(), String::new());
        }
        self.screen = screen;
        self.rows.clear();
        Some(TopCommand::Refresh)
    }

    fn open_selected(&mut self) -> Option<TopCommand> {
        let index = self.selected_index();
        let name = match &self.screen {
            TopScreen::Overview => self.rules.get(index).map(|row| row.name.clone()),
            TopScreen::Bans { .. } => self.rows.get(index).map(|row| row.rule.clone()),
            _ => None,
        };
        self.open(TopScreen::Rule(name?))
    }

    /// Opens the rule before or after the one that is open.
    fn open_neighbour(&mut self, step: isize) -> Option<TopCommand> {
        let TopScreen::Rule(name) = &self.screen else {
            return None;
        };
        let index = self.rules.iter().position(|row| row.name == *name)?;
        let next = index.checked_add_signed(step)?;
        let name = self.rules.get(next)?.name.clone();
        self.open(TopScreen::Rule(name))
    }

    /// Opens the rule with this name, or shows the bans that match.
    fn find(&mut self, text: &str) -> Option<TopCommand> {
        let name = text.trim();
        if name.is_empty() {
            return None;
        }
        if self.rules.iter().any(|row| row.name == name) {
            return self.open(TopScreen::Rule(name.to_owned()));
        }
        let command = self.open(TopScreen::Bans {
            is_likely_false: false,
        });
        self.selected = (String::new(), name.to_owned());
        command
    }

    /// The text that the list of bans must contain. `None` without a search.
    pub fn search(&self) -> Option<&str> {
        let (rule, key) = &self.selected;
        (rule.is_empty() && !key.is_empty()).then_some(key.as_str())
    }

    fn row_ids(&self) -> Vec<(String, String)> {
        if self.screen == TopScreen::Overview {
            let rules = self.rules.iter();
            rules.map(|row| (row.name.clone(), String::new())).collect()
        } else {
            let rows = self.rows.iter();
            rows.map(|row| (row.rule.clone(), row.key.clone()))
                .collect()
        }
    }

    fn select(&mut self, step: isize) {
        let ids = self.row_ids();
        let last = ids.len().saturating_sub(1);
        let index = self.selected_index().saturating_add_signed(step).min(last);
        if let Some(id) = ids.into_iter().nth(index) {
            self.selected = id;
        }
    }

    /// The rule and the key of the selected row. `None` if it is not a key.
    fn selected_key(&self) -> Option<(String, String)> {
        let row = self.rows.get(self.selected_index())?;
        let is_key = matches!(self.screen, TopScreen::Rule(_) | TopScreen::Bans { .. });
        is_key.then(|| (row.rule.clone(), row.key.clone()))
    }

    fn toggle_pause(&mut self) {
        self.paused_at = match self.paused_at {
            Some(_) => None,
            None => Some(self.now),
        };
    }

    fn sort_by(&mut self, sort: RuleSort) {
        self.sort = sort;
        self.is_reversed = false;
        self.sorted_at = Timestamp::default();
        self.sort_rules();
    }

    fn reverse(&mut self) {
        self.is_reversed = !self.is_reversed;
        self.sorted_at = Timestamp::default();
        self.sort_rules();
    }

    /// Sorts the rules, at most every ten seconds and never while a question is open.
    fn sort_rules(&mut self) {
        let is_early = self.now.since(self.sorted_at) < SORT_INTERVAL;
        if is_early || self.prompt.is_some() {
            return;
        }
        self.sorted_at = self.now;
        self.sort.apply(&mut self.rules);
        if self.is_reversed {
            self.rules.reverse();
        }
    }

    /// The order of the rules, in words.
    pub fn sort_name(&self) -> &'static str {
        self.sort.name()
    }
}

#[cfg(test)]
mod tests;
