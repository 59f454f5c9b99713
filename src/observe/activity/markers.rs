//! Events that matter to people: reloads, bans, and changes of the store and of servers.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Rfc3339, Timestamp};
use crate::observe::access::json_writer::JsonWriter;

/// The number of markers that are kept.
const MAX_MARKERS: usize = 60;
/// The number of bans within [`BURST_TIME`] that are worth a marker.
const BURST: u32 = 20;
const BURST_TIME: Duration = Duration::from_secs(30);
/// A ban of a rule without bans for this time is worth a marker.
const QUIET: Duration = Duration::from_secs(15 * 60);

named! {
    /// What a marker is about, and thus what a client of the admin API reads again.
    pub enum MarkerKind {
        /// A reload.
        Reload = "reload",
        /// The first ban of a rule for a long time, or many bans.
        Ban = "ban",
        /// A change of the store's state.
        Store = "store",
        /// A change of a server's health.
        Server = "server",
    }
}

/// An event that matters to people.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// When it happened.
    pub ts: Timestamp,
    /// What it is about.
    pub kind: MarkerKind,
    /// Whether it is bad news.
    pub bad: bool,
    /// A few words.
    pub label: String,
    /// A sentence.
    pub text: String,
}

/// The newest markers, and the bans that may become one.
#[derive(Debug, Default)]
pub(super) struct MarkerLog {
    markers: VecDeque<Marker>,
    rules: HashMap<Arc<str>, BanWatch>,
}

/// The recent bans of one rule.
#[derive(Debug, Default)]
struct BanWatch {
    /// The bans within [`BURST_TIME`], oldest first: at most one entry per call.
    recent: VecDeque<(Timestamp, u32)>,
    newest: Option<Timestamp>,
    /// When the last marker about many bans was made.
    burst: Option<Timestamp>,
}

// === impl MarkerLog ===

impl MarkerLog {
    /// Adds a marker. The oldest one leaves if there are too many.
    pub(super) fn push(&mut self, marker: Marker) {
        if self.markers.len() >= MAX_MARKERS {
            self.markers.pop_front();
        }
        self.markers.push_back(marker);
    }

    /// Returns the markers, oldest first.
    pub(super) fn all(&self) -> Vec<Marker> {
        self.markers.iter().cloned().collect()
    }

    /// Counts new bans of a rule and returns the marker that they are worth.
    pub(super) fn count_bans(
        &mut self,
        rule: &Arc<str>,
        bans: u32,
        now: Timestamp,
    ) -> Option<Marker> {
        let watch = self.rules.entry(rule.clone()).or_default();
        let text = watch.count(bans, now)?;
        Some(Marker {
            ts: now,
            kind: MarkerKind::Ban,
            bad: true,
            label: format!("bans: {rule}"),
            text,
        })
    }

    /// Forgets the bans of all rules except `names`. Their markers stay.
    pub(super) fn keep_rules(&mut self, names: &[&str]) {
        self.rules.retain(|name, _| names.contains(&&**name));
    }
}

// === impl BanWatch ===

impl BanWatch {
    /// Counts new bans and returns the text of the marker that they are worth.
    fn count(&mut self, bans: u32, now: Timestamp) -> Option<String> {
        let was_quiet = self.newest.is_none_or(|last| now.since(last) >= QUIET);
        self.newest = Some(now);
        self.recent.push_back((now, bans));
        while let Some((at, _)) = self.recent.front()
            && (now.since(*at) >= BURST_TIME || *at > now)
        {
            self.recent.pop_front();
        }
        let recent: u32 = self.recent.iter().map(|(_, bans)| bans).sum();
        let is_told = |burst: Timestamp| now >= burst && now.since(burst) < BURST_TIME;
        if recent >= BURST && !self.burst.is_some_and(is_told) {
            self.burst = Some(now);
            return Some(format!("{recent} keys banned within 30 s"));
        }
        let keys = if bans == 1 { "a key" } else { "keys" };
        was_quiet.then(|| format!("banned {keys} for the first time in 15 minutes"))
    }
}

// === impl Marker ===

impl Marker {
    /// Appends the marker as a JSON object on one line.
    pub fn json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"ts\":\"");
        out.extend_from_slice(&Rfc3339(self.ts).to_bytes());
        out.push(b'"');
        let mut o = JsonWriter(out);
        o.text(",\"kind\":", Some(self.kind.name()));
        o.boolean(",\"bad\":", self.bad);
        o.text(",\"label\":", Some(&self.label));
        o.text(",\"text\":", Some(&self.text));
        out.push(b'}');
    }

    /// Returns the marker as a JSON object on one line.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.json(&mut out);
        // The writer escapes everything that is not UTF-8.
        String::from_utf8_lossy(&out).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(100_000 + seconds)
    }

    fn text(log: &mut MarkerLog, bans: u32, seconds: u64) -> Option<String> {
        let marker = log.count_bans(&"login".into(), bans, at(seconds))?;
        assert_eq!(
            (marker.kind, &*marker.label),
            (MarkerKind::Ban, "bans: login")
        );
        Some(marker.text)
    }

    #[test]
    fn the_first_ban_in_15_minutes_is_marked() {
        let mut log = MarkerLog::default();
        assert!(text(&mut log, 1, 0).unwrap().contains("first time"));
        assert_eq!(text(&mut log, 1, 10), None);
        assert_eq!(text(&mut log, 1, 900), None, "the last one was 890 s ago");
        assert!(text(&mut log, 1, 1800).is_some());
        assert!(log.count_bans(&"other".into(), 1, at(1801)).is_some());
    }

    #[test]
    fn twenty_bans_within_30_seconds_are_marked_once() {
        let mut log = MarkerLog::default();
        text(&mut log, 1, 0);
        assert_eq!(text(&mut log, 18, 29), None);
        // The first one has left the 30 s.
        assert_eq!(text(&mut log, 1, 31), None);
        let marked = text(&mut log, 1, 32);
        assert_eq!(marked.unwrap(), "20 keys banned within 30 s");
        assert_eq!(text(&mut log, 100, 40), None);
        assert_eq!(
            text(&mut log, 5, 62).unwrap(),
            "105 keys banned within 30 s"
        );
    }

    #[test]
    fn the_newest_markers_are_kept() {
        let mut log = MarkerLog::default();
        for n in 0..100 {
            log.push(Marker {
                ts: at(n),
                kind: MarkerKind::Reload,
                bad: false,
                label: "reloaded".to_owned(),
                text: "\"3\" rules\n".to_owned(),
            });
        }
        let all = log.all();
        assert_eq!((all.len(), all[0].ts), (MAX_MARKERS, at(40)));
        assert_eq!(
            all[0].to_json(),
            r#"{"ts":"1970-01-02T03:47:20.000Z","kind":"reload","bad":false,"label":"reloaded","text":"\"3\" rules\n"}"#
        );
    }
}
