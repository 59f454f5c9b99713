//! What needs attention: documented conditions, never a score. The gateway writes the texts, so that the dashboard
//! and the commands agree.

mod findings;

use std::time::Duration;

pub use self::findings::{AttentionFacts, AttentionFinding, RuleActivity};
use super::objects::{ApiTime, AttentionObject};
use crate::clock::Timestamp;

/// How long an entry stays at least, so that a reader can see it.
const MIN_STAY: Duration = Duration::from_secs(30);

/// The entries that are shown.
#[derive(Debug, Default)]
pub struct AttentionBoard(Vec<ShownEntry>);

/// An entry with the time of its first appearance.
#[derive(Debug)]
struct ShownEntry {
    appeared: Timestamp,
    object: AttentionObject,
}

// === impl AttentionBoard ===

impl AttentionBoard {
    /// Shows `findings`, and earlier entries that have not stayed long enough. Returns all entries, sorted by level and
    /// then newest first.
    pub fn update(
        &mut self,
        now: Timestamp,
        findings: Vec<AttentionFinding>,
    ) -> Vec<AttentionObject> {
        self.0.retain(|entry| {
            let has_stayed = now.since(entry.appeared) >= MIN_STAY;
            !has_stayed || findings.iter().any(|found| found.id == entry.object.id)
        });
        for finding in findings {
            self.show(now, finding);
        }
        let mut entries: Vec<_> = self.0.iter().map(|entry| entry.object.clone()).collect();
        entries.sort_by(|a, b| {
            let newest_first = || b.since.cmp(&a.since);
            let by_level = a.level.cmp(&b.level);
            by_level
                .then_with(newest_first)
                .then_with(|| a.id.cmp(&b.id))
        });
        entries
    }

    fn show(&mut self, now: Timestamp, finding: AttentionFinding) {
        let shown = self
            .0
            .iter_mut()
            .find(|entry| entry.object.id == finding.id);
        let appeared = shown.as_ref().map_or(now, |entry| entry.appeared);
        let entry = ShownEntry {
            appeared,
            object: AttentionObject {
                since: ApiTime(finding.since.unwrap_or(appeared)),
                id: finding.id,
                level: finding.level,
                text: finding.text,
                detail: finding.detail,
                link: finding.link,
            },
        };
        match shown {
            Some(shown) => *shown = entry,
            None => self.0.push(entry),
        }
    }
}

#[cfg(test)]
mod tests;
