//! What a request has open until it ends: one tab, shared by its body, its answer and whoever
//! waits for it. It decides nothing.

use std::cell::Cell;

use super::body::Meter;
use super::lesson::Lesson;
use super::places::Places;

/// What a request has open.
#[derive(Default)]
pub struct Tab {
    /// What is known of its body.
    pub meter: Meter,
    /// It went where its route leads: rules may want to count the answer, whoever waits for it.
    pub begun: Cell<bool>,
    /// Nobody waits for the answer any more.
    pub left: Cell<bool>,
    /// The places that it takes.
    pub places: Places,
    /// What is learned from its answer.
    pub lesson: Lesson,
}
