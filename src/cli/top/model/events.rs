//! What arrives from the gateway, and how the rules are sorted.

use std::collections::HashMap;

use serde_json::Value;

use super::{SORT_INTERVAL, TopModel};
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::command::ChangeResult;
use crate::cli::top::rule_row::{RuleRow, RuleSort};
use crate::cli::top::screen::{ScreenFigures, StreamFilter, TopScreen};
use crate::cli::top::traffic_history::TrafficHistory;
use crate::clock::Timestamp;

// === impl TopModel ===

impl TopModel {
    /// Notes that time has passed.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Takes a tick of the stream. A paused screen stands still.
    pub fn take_tick(&mut self, tick: Value) {
        self.stream.ticked_at = self.now;
        self.stream.gateway = tick.time("ts");
        self.stream.retry = None;
        if self.pause.is_some() {
            return;
        }
        self.decisions.end_second();
        let shown_at = self.stream.shown_at;
        // A tick can arrive a little early.
        let is_due = shown_at.is_none_or(|at| {
            self.now.since(at).as_millis() + 500 >= self.refresh_interval().as_millis()
        });
        if is_due {
            self.stream.shown_at = Some(self.now);
            for row in &mut self.rules {
                row.take_tick(&tick);
            }
            self.tick = tick;
            self.sort_rules();
        }
    }

    /// Takes a decision of the stream that was opened with `filter`.
    pub fn take_decision(&mut self, filter: &StreamFilter, decision: Value) {
        if *filter != self.decisions.filter {
            return;
        }
        self.decisions.take(decision, self.pause.is_some());
        if matches!(self.screen, TopScreen::Decisions(_)) {
            self.follow_selection();
        }
    }

    /// Takes the number of decisions that the stream did not send.
    pub fn take_skipped(&mut self, skipped: &Value) {
        if self.pause.is_none() {
            self.decisions.skip(skipped.count("count"));
        }
    }

    /// Notes that the stream has ended, and when it is opened again.
    pub fn take_lost(&mut self, retry_at: Timestamp, reason: String) {
        self.stream.retry = Some((retry_at, reason));
    }

    /// Takes a status.
    pub fn take_status(&mut self, status: Value) {
        if self.pause.is_none() {
            self.status = status;
        }
    }

    /// Takes the list of rules, in file order.
    pub fn take_rules(&mut self, rules: &Value) {
        if self.pause.is_some() {
            return;
        }
        let known = self.rules.drain(..).enumerate();
        let known = known.map(|(place, row)| (row.name.clone(), (place, row)));
        let mut known: HashMap<_, _> = known.collect();
        let listed = rules.as_array().into_iter().flatten().enumerate();
        let rows = listed.map(|(order, object)| {
            let mut row = RuleRow::new(order, object);
            let place = known.remove(&row.name).map(|(place, known)| {
                row.keep_rates(known);
                place
            });
            (place, row)
        });
        let mut rows: Vec<_> = rows.collect();
        let has_same_rules = known.is_empty() && rows.iter().all(|(place, _)| place.is_some());
        if has_same_rules && self.sort != RuleSort::Evaluated {
            rows.sort_by_key(|(place, _)| *place);
        } else {
            self.sorted_at = Timestamp::default();
        }
        self.rules = rows.into_iter().map(|(_, row)| row).collect();
        if self.prompt.is_none() {
            self.sort_rules();
        }
        self.follow_rule();
    }

    /// Takes the history of the last 15 minutes.
    pub fn take_history(&mut self, history: &Value) {
        if self.pause.is_some() {
            return;
        }
        self.history = TrafficHistory::new(history);
        for row in &mut self.rules {
            row.take_history(history);
        }
    }

    /// Takes what a screen shows, unless another one is open. Rows stay while a question is open, and on a paused
    /// screen.
    pub fn take_figures(&mut self, screen: &TopScreen, figures: ScreenFigures) {
        let is_empty = self.figures == ScreenFigures::default();
        let stands_still = self.pause.is_some() || self.prompt.is_some();
        if *screen != self.screen || (stands_still && !is_empty) {
            return;
        }
        let ScreenFigures { rows, about, error } = figures;
        if error.is_none() {
            self.figures.rows = rows.or(self.figures.rows.take());
            self.figures.about = about.or(self.figures.about.take());
        }
        self.figures.error = error;
        self.follow_selection();
    }

    /// Shows the result of a change.
    pub fn take_result(&mut self, result: ChangeResult) {
        self.notice = Some((self.now, result));
    }

    /// Sorts the rules by another criterion.
    pub(super) fn sort_by(&mut self, sort: RuleSort) {
        self.sort = sort;
        self.is_reversed = false;
        self.sort_now();
    }

    /// Reverses the order of the rules.
    pub(super) fn reverse(&mut self) {
        self.is_reversed = !self.is_reversed;
        self.sort_now();
    }

    fn sort_now(&mut self) {
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
        self.follow_rule();
    }

    fn follow_rule(&mut self) {
        if self.screen == TopScreen::Overview {
            self.follow_selection();
        }
    }
}
