//! The state of `lockgate top`: what is shown, what is selected, and what each key does. Pure: it neither draws nor
//! calls the gateway, but returns [`TopCommand`]s.

mod events;
mod keys;
mod navigation;
mod questions;

use std::time::Duration;

use serde_json::Value;

use super::api_fields::ApiFields as _;
use super::command::{ChangeResult, TopCommand, TopPrompt, UndoneChange};
use super::decision_feed::DecisionFeed;
use super::draw::HELP_LINES;
use super::rule_row::{RuleRow, RuleSort};
use super::screen::{ListedRow, RowId, ScreenFigures, TopScreen};
use super::traffic_history::TrafficHistory;
use crate::clock::Timestamp;

/// How long a notice and its undo are shown.
const NOTICE: Duration = Duration::from_secs(10);
/// The minimum time between two sorts of a table.
const SORT_INTERVAL: Duration = Duration::from_secs(10);
/// The time without a tick after which the stream counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(4);
/// The times between two refreshes, in seconds.
const REFRESH: [u64; 4] = [1, 2, 5, 10];

/// The state.
#[derive(Clone, Debug)]
pub struct TopModel {
    /// The time of the newest event.
    now: Timestamp,
    /// What is shown.
    pub screen: TopScreen,
    /// The screens to which `esc` leads, with their selections.
    back: Vec<(TopScreen, RowSelection)>,
    /// The newest status.
    pub status: Value,
    /// The newest tick that is shown.
    pub tick: Value,
    /// The traffic of the last 15 minutes.
    pub history: TrafficHistory,
    /// The rules in the shown order.
    pub rules: Vec<RuleRow>,
    /// What only this screen shows.
    pub figures: ScreenFigures,
    /// The decisions of the stream.
    pub decisions: DecisionFeed,
    selection: RowSelection,
    /// The question or the input, if there is one.
    pub prompt: Option<TopPrompt>,
    /// The result of the last change, and when it was shown first.
    notice: Option<(Timestamp, ChangeResult)>,
    sort: RuleSort,
    is_reversed: bool,
    sorted_at: Timestamp,
    pause: Option<ScreenPause>,
    stream: StreamState,
    refresh: usize,
}

/// The selected row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RowSelection {
    /// `None` for the first row, whichever it is.
    id: Option<RowId>,
    /// Where the row is, so that a row that disappears leaves its line selected.
    line: usize,
}

/// The times of a pause.
#[derive(Clone, Copy, Debug)]
struct ScreenPause {
    at: Timestamp,
    /// The gateway's time at the start.
    gateway: Timestamp,
}

/// The state of the stream.
#[derive(Clone, Debug)]
struct StreamState {
    /// When the newest tick arrived.
    ticked_at: Timestamp,
    /// When the newest tick that is shown arrived. `None` before the first one.
    shown_at: Option<Timestamp>,
    /// The gateway's time in the newest tick. `None` before the first one.
    gateway: Option<Timestamp>,
    /// When the stream is opened again, and why it ended.
    retry: Option<(Timestamp, String)>,
}

/// A stream without a tick for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostStream<'a> {
    /// The time since the last tick.
    pub silence: Duration,
    /// The time until the next attempt. `None` while one is in progress.
    pub retry_in: Option<Duration>,
    /// Empty if it is not known.
    pub reason: &'a str,
}

// === impl TopModel ===

impl TopModel {
    /// The state before the first event.
    pub fn new(now: Timestamp) -> Self {
        Self {
            now,
            screen: TopScreen::Overview,
            back: Vec::new(),
            status: Value::Null,
            tick: Value::Null,
            history: TrafficHistory::default(),
            rules: Vec::new(),
            figures: ScreenFigures::default(),
            decisions: DecisionFeed::default(),
            selection: RowSelection::default(),
            prompt: None,
            notice: None,
            sort: RuleSort::Evaluated,
            is_reversed: false,
            sorted_at: Timestamp::default(),
            pause: None,
            stream: StreamState {
                ticked_at: now,
                shown_at: None,
                gateway: None,
                retry: None,
            },
            refresh: 0,
        }
    }

    /// The time between two refreshes.
    pub fn refresh_interval(&self) -> Duration {
        Duration::from_secs(REFRESH.get(self.refresh).copied().unwrap_or(1))
    }

    /// The gateway's time. It stands still while the screen is paused.
    pub fn gateway_now(&self) -> Timestamp {
        match (self.pause, self.stream.gateway) {
            (Some(pause), _) => pause.gateway,
            (None, Some(time)) => time.plus(self.now.since(self.stream.ticked_at)),
            (None, None) => self.now,
        }
    }

    /// How long the screen has been paused. `None` if it is not.
    pub fn paused_for(&self) -> Option<Duration> {
        self.pause.map(|pause| self.now.since(pause.at))
    }

    /// How long the stream has been lost. `None` while it is live.
    pub fn lost(&self) -> Option<LostStream<'_>> {
        let silence = self.now.since(self.stream.ticked_at);
        let retry = self.stream.retry.as_ref();
        (silence >= LOST_AFTER).then(|| LostStream {
            silence,
            retry_in: retry
                .map(|(at, _)| at.since(self.now))
                .filter(|left| !left.is_zero()),
            reason: retry.map_or("", |(_, reason)| reason),
        })
    }

    /// The result of the last change, for ten seconds.
    pub fn notice(&self) -> Option<&str> {
        Some(self.fresh_result()?.text.as_str())
    }

    fn fresh_result(&self) -> Option<&ChangeResult> {
        let (at, result) = self.notice.as_ref()?;
        (self.now.since(*at) < NOTICE).then_some(result)
    }

    /// Takes the undo of the last change, while its notice is shown.
    fn take_undo(&mut self) -> Option<UndoneChange> {
        self.fresh_result()?;
        self.notice.as_mut()?.1.undo.take()
    }

    /// The order of the rules, in words.
    pub fn sort_name(&self) -> String {
        let reversed = if self.is_reversed { ", reversed" } else { "" };
        format!("{}{reversed}", self.sort.name())
    }

    /// The index of the selected row. On a screen of text, its first line.
    pub fn selected_index(&self) -> usize {
        self.selection.line
    }

    /// The selected hot key, ban, decision or server.
    pub fn selected_row(&self) -> Option<&ListedRow> {
        let index = match self.screen {
            TopScreen::Ban { .. } | TopScreen::Server { .. } => 0,
            _ => self.selection.line,
        };
        self.listed_row(index)
    }

    /// The key whose ban the rule screen describes. `None` if it is not banned.
    pub fn described_key(&self) -> Option<&str> {
        let row = self.selected_row()?;
        let is_rule = matches!(self.screen, TopScreen::Rule(_));
        (is_rule && row.is_banned()).then_some(row.key.as_str())
    }

    fn listed_row(&self, index: usize) -> Option<&ListedRow> {
        match self.screen {
            TopScreen::Overview => None,
            TopScreen::Decisions(_) => self.decisions.rows.get(index),
            _ => self.figures.rows.as_ref()?.get(index),
        }
    }

    /// The number of rows that can be selected.
    fn row_count(&self) -> usize {
        match self.screen {
            TopScreen::Overview => self.rules.len(),
            TopScreen::Decisions(_) => self.decisions.rows.len(),
            TopScreen::Help => HELP_LINES,
            // How many lines the reasons take is known only when they are drawn.
            TopScreen::Explanation(_) => {
                let about = self.figures.about.as_ref();
                let rules = about.map_or(0, |about| about.list("rules").len());
                LINES_PER_RULE * (rules + 1)
            }
            _ => self.figures.rows.as_ref().map_or(0, Vec::len),
        }
    }

    fn row_id(&self, index: usize) -> Option<RowId> {
        match self.screen {
            TopScreen::Overview => {
                let row = self.rules.get(index)?;
                Some((row.name.clone(), String::new()))
            }
            _ => self.listed_row(index).map(ListedRow::id),
        }
    }

    /// Moves the selection.
    fn select(&mut self, step: isize) -> Option<TopCommand> {
        let last = self.row_count().saturating_sub(1);
        let described = self.described_key().map(str::to_owned);
        let line = self.selection.line.saturating_add_signed(step).min(last);
        // The first row of the decisions is always the newest one.
        let is_newest = line == 0 && matches!(self.screen, TopScreen::Decisions(_));
        self.selection = RowSelection {
            id: self.row_id(line).filter(|_| !is_newest),
            line,
        };
        let is_other = self.described_key().map(str::to_owned) != described;
        (is_other && self.described_key().is_some()).then_some(TopCommand::Refresh)
    }

    /// Finds the selected row again after the rows have changed.
    fn follow_selection(&mut self) {
        let count = self.row_count();
        let found = match &self.selection.id {
            Some(id) => {
                (0..count.min(MAX_ROWS)).find(|line| self.row_id(*line).as_ref() == Some(id))
            }
            None => Some(0),
        };
        match found {
            Some(line) => self.selection.line = line,
            None if count > 0 => {
                self.selection.line = self.selection.line.min(count - 1);
                self.selection.id = self.row_id(self.selection.line);
            }
            None => {}
        }
    }
}

/// The number of lines that the explanation of a rule takes at most.
const LINES_PER_RULE: usize = 4;
/// The number of rows among which the selected one is looked for.
const MAX_ROWS: usize = 100_000;

#[cfg(test)]
mod tests;
