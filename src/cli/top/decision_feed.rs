//! The newest decisions of the stream.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::action_layer::ActionLayer;
use super::api_fields::ApiFields as _;
use super::screen::{ListedRow, RowKind, StreamFilter};

/// The number of decisions that are kept.
const KEPT: usize = 200;
/// How many of the newest rows are compared with a new decision.
const COMPARED: usize = 12;

/// The newest decisions, newest first.
#[derive(Clone, Debug, Default)]
pub struct DecisionFeed {
    pub rows: VecDeque<ListedRow>,
    /// What the gateway was asked for.
    pub filter: StreamFilter,
    /// Whether decisions are shown in which no rule mitigated the request.
    pub shows_forwarded: bool,
    /// Decisions of the newest second that were counted and not sent.
    pub skipped: u64,
    /// The same for the second that is not over.
    skipping: u64,
    /// Decisions that arrived while the screen was paused.
    pub missed: u64,
}

// === impl DecisionFeed ===

impl DecisionFeed {
    /// Follows other decisions, and forgets those of another filter.
    pub fn follow(&mut self, filter: &StreamFilter) {
        if self.filter != *filter {
            *self = Self {
                filter: filter.clone(),
                shows_forwarded: self.shows_forwarded,
                ..Self::default()
            };
        }
    }

    /// Takes a decision. Equal decisions share a row with their number, at the place of the newest one.
    pub fn take(&mut self, decision: Value, is_paused: bool) {
        if !self.is_wanted(&decision) {
            return;
        }
        let repeat = decision.count("repeat").max(1);
        if is_paused {
            self.missed = self.missed.saturating_add(repeat);
            return;
        }
        let mut row = ListedRow::of(RowKind::Decision, &decision);
        let mut newest = self.rows.iter().take(COMPARED);
        let equal = newest.position(|known| is_equal(&known.object, &decision));
        if let Some(known) = equal.and_then(|index| self.rows.remove(index)) {
            let sum = known.object.count("repeat").saturating_add(repeat);
            // The row keeps its identity, so it stays selected.
            let members = [
                ("repeat", json!(sum)),
                ("id", known.object.object("id").clone()),
            ];
            if let Some(object) = row.object.as_object_mut() {
                object.extend(members.map(|(name, value)| (name.to_owned(), value)));
            }
        }
        self.rows.push_front(row);
        self.rows.truncate(KEPT);
    }

    /// Takes the number of decisions that were not sent.
    pub fn skip(&mut self, count: u64) {
        self.skipping = self.skipping.saturating_add(count);
    }

    /// Notes the end of a second.
    pub fn end_second(&mut self) {
        self.skipped = std::mem::take(&mut self.skipping);
    }

    /// Shows decisions in which no rule mitigated the request, or hides them.
    pub fn toggle_forwarded(&mut self) {
        self.shows_forwarded = !self.shows_forwarded;
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|row| self.is_wanted(&row.object));
        self.rows = rows;
    }

    /// Decisions of one rule are all of interest. Otherwise forwarded requests would hide the others.
    fn is_wanted(&self, decision: &Value) -> bool {
        let layer = ActionLayer::of(decision.text("action"));
        let is_mitigated = layer.is_mitigated() && !decision.text("rule").is_empty();
        is_mitigated || self.shows_forwarded || self.filter.rule.is_some()
    }
}

fn is_equal(one: &Value, other: &Value) -> bool {
    let members = [
        "rule",
        "action",
        "key",
        "method",
        "path",
        "client_ip",
        "dry_run",
        "status",
    ];
    members
        .iter()
        .all(|name| one.object(name) == other.object(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(id: u64, action: &str, path: &str) -> Value {
        let rule = (action != "forward").then_some("login");
        json!({"id": id.to_string(), "rule": rule, "action": action, "key": "k", "path": path, "repeat": 2})
    }

    #[test]
    fn equal_decisions_share_a_row_and_the_list_is_bounded() {
        let mut feed = DecisionFeed::default();
        feed.take(decision(1, "block", "/a"), false);
        feed.take(decision(2, "block", "/b"), false);
        feed.take(decision(3, "block", "/a"), false);
        feed.take(decision(4, "forward", "/a"), false);
        assert_eq!(feed.rows.len(), 2);
        let newest = &feed.rows[0].object;
        assert_eq!((newest.count("repeat"), newest.text("id")), (4, "1"));
        for id in 0..1_000 {
            feed.take(decision(id, "block", &format!("/{id}")), false);
        }
        assert_eq!(feed.rows.len(), KEPT);
        assert_eq!(feed.rows[0].object.text("path"), "/999");
    }

    #[test]
    fn forwarded_requests_are_shown_if_wanted_or_of_one_rule() {
        let mut feed = DecisionFeed::default();
        feed.toggle_forwarded();
        feed.take(decision(1, "forward", "/a"), false);
        assert_eq!(feed.rows.len(), 1);
        feed.toggle_forwarded();
        assert!(feed.rows.is_empty());
        let filter = StreamFilter {
            rule: Some("login".into()),
            ip: None,
        };
        feed.take(decision(1, "block", "/a"), false);
        feed.follow(&filter);
        assert!(feed.rows.is_empty(), "the filter has changed");
        feed.take(decision(1, "tag", "/a"), false);
        feed.follow(&filter);
        assert_eq!(feed.rows.len(), 1);
    }

    #[test]
    fn skipped_and_missed_decisions_are_counted() {
        let mut feed = DecisionFeed::default();
        feed.skip(5);
        feed.end_second();
        feed.take(decision(1, "block", "/a"), true);
        assert_eq!((feed.skipped, feed.missed, feed.rows.len()), (5, 2, 0));
        feed.end_second();
        assert_eq!(feed.skipped, 0);
    }
}
