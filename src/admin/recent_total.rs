//! How much a total has grown within the last 15 minutes.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Timestamp;

/// The length of the window.
const WINDOW: Duration = Duration::from_secs(15 * 60);
/// Growth within this time is kept as one entry, so that at most 180 entries are kept.
const STEP: Duration = Duration::from_secs(5);

/// A total that only grows, and its recent growth.
#[derive(Debug, Default)]
pub struct RecentTotal {
    total: u64,
    /// When the total grew and by how much, oldest first.
    grown: VecDeque<(Timestamp, u64)>,
}

// === impl RecentTotal ===

impl RecentTotal {
    /// Notes the total at `now`. Returns by how much it has grown within the window.
    pub fn note(&mut self, total: u64, now: Timestamp) -> u64 {
        let more = total.saturating_sub(self.total);
        self.total = total;
        let is_over = |at: Timestamp| at > now || now.since(at) >= WINDOW;
        while self.grown.front().is_some_and(|(at, _)| is_over(*at)) {
            self.grown.pop_front();
        }
        match self.grown.back_mut() {
            Some((at, growth)) if now.since(*at) < STEP => *growth += more,
            _ if more > 0 => self.grown.push_back((now, more)),
            _ => {}
        }
        self.grown.iter().map(|(_, growth)| growth).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_counts_for_15_minutes() {
        let mut recent = RecentTotal::default();
        let mut note = |seconds, total| recent.note(total, Timestamp::from_secs(seconds));
        assert_eq!(note(1_000, 0), 0);
        assert_eq!(note(1_001, 2), 2);
        assert_eq!(note(1_002, 3), 3);
        assert_eq!(note(1_500, 4), 4);
        assert_eq!(note(1_900, 4), 4);
        assert_eq!(note(1_901, 4), 1);
        assert_eq!(note(2_400, 4), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut recent = RecentTotal::default();
        (0..5_000).for_each(|second| _ = recent.note(second, Timestamp::from_secs(second)));
        assert!(recent.grown.len() <= 181);
    }
}
