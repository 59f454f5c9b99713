//! Writes a snapshot.

use std::io::{self, Write};
use std::net::IpAddr;

use sha2::{Digest as _, Sha256};

use super::{
    BAN, BY_HAND, BY_RULE, END, EXEMPTION, LOG, LONGEST_NAME, MAGIC, RULE, SHARE, SavedBan,
    SavedCount, SavedCounter, SavedHeader, SavedRecord,
};
use super::{SLICES, VERSION, WORDS};
use crate::rules::registry::RegisteredRule;
use crate::store::memory::SHOWN;
use crate::store::{ChangeScope, ExemptionEntry};

/// Writes records one after the other.
pub(in super::super) struct RecordWriter<W> {
    out: W,
    hasher: Sha256,
    written: u64,
    /// The buffer of the current record.
    record: Vec<u8>,
}

// === impl RecordWriter ===

impl<W: Write> RecordWriter<W> {
    /// Writes the header. `out` should be buffered.
    pub(in super::super) fn new(out: W, header: &SavedHeader) -> io::Result<Self> {
        let mut writer = Self {
            out,
            hasher: Sha256::new(),
            written: 0,
            record: Vec::with_capacity(512),
        };
        writer.put(&MAGIC);
        writer.put(&VERSION.to_le_bytes());
        writer.put(&header.secret);
        writer.put(&header.taken.as_nanos().to_le_bytes());
        writer.put(&header.longest.to_le_bytes());
        writer.send()?;
        Ok(writer)
    }

    /// Adds a record.
    pub(in super::super) fn add(&mut self, record: &SavedRecord) -> io::Result<()> {
        match record {
            SavedRecord::Rule(rule) => self.rule(rule),
            SavedRecord::Ban(ban) => self.ban(ban),
            SavedRecord::Counter(counter) => self.counter(counter),
            SavedRecord::Exemption(exemption) => self.exemption(exemption),
        }
        self.send()
    }

    /// Writes the end marker and checksum; returns the output.
    pub(in super::super) fn end(mut self) -> io::Result<W> {
        self.put(&[END]);
        self.send()?;
        self.out.write_all(&self.written.to_le_bytes())?;
        self.out.write_all(&self.hasher.finalize())?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn rule(&mut self, rule: &RegisteredRule) {
        let name = rule.name.as_bytes();
        let name = name.get(..LONGEST_NAME).unwrap_or(name);
        self.put(&[RULE]);
        self.put(&rule.id.identity.to_le_bytes());
        self.put(&rule.id.slot.to_le_bytes());
        self.put(&[name.len() as u8]);
        self.put(name);
    }

    fn ban(&mut self, ban: &SavedBan) {
        let (sentence, entry) = (&ban.sentence, &ban.sentence.ban);
        let key = entry.key.get(..SHOWN).unwrap_or(&entry.key);
        self.put(&[BAN]);
        self.put(&ban.hash.to_le_bytes());
        self.put(&entry.id.identity.to_le_bytes());
        self.put(&sentence.began.as_nanos().to_le_bytes());
        self.put(&entry.until.as_nanos().to_le_bytes());
        self.put(&entry.offence.to_le_bytes());
        self.put(&[u8::from(sentence.counts), u8::from(ban.past)]);
        self.put(&(key.len() as u16).to_le_bytes());
        self.put(key);
        self.put(&entry.ban_id.to_bytes());
        self.put(&entry.since.as_nanos().to_le_bytes());
        match entry.note() {
            None => self.put(&[BY_RULE]),
            Some(note) => {
                self.put(&[BY_HAND]);
                self.note(note);
            }
        }
        self.put(&[u8::from(entry.is_shared)]);
    }

    fn exemption(&mut self, exemption: &ExemptionEntry) {
        let network = exemption.network;
        self.put(&[EXEMPTION, u8::from(network.addr().is_ipv6())]);
        match network.addr() {
            IpAddr::V4(ip) => self.put(&ip.octets()),
            IpAddr::V6(ip) => self.put(&ip.octets()),
        }
        self.put(&[network.prefix_len()]);
        self.put(&exemption.since.as_nanos().to_le_bytes());
        self.put(&exemption.until.as_nanos().to_le_bytes());
        self.note(exemption.note.as_str());
        self.put(&[u8::from(exemption.scope == ChangeScope::Node)]);
    }

    fn note(&mut self, note: &str) {
        // At most `MAX_NOTE_BYTES`.
        self.put(&[note.len() as u8]);
        self.put(note.as_bytes());
    }

    fn counter(&mut self, counter: &SavedCounter) {
        let kind = match &counter.count {
            SavedCount::Words(_) => WORDS,
            SavedCount::Share(_) => SHARE,
            SavedCount::Slices { .. } => SLICES,
            SavedCount::Log { .. } => LOG,
        };
        self.put(&[kind, counter.fill]);
        self.put(&counter.tag.to_le_bytes());
        self.put(&counter.expires.to_le_bytes());
        self.put(&counter.slot.to_le_bytes());
        self.count(&counter.count);
    }

    fn count(&mut self, count: &SavedCount) {
        match count {
            SavedCount::Words(words) => self.words(words),
            SavedCount::Share(share) => {
                self.words(&share.count);
                self.words(&share.total);
            }
            SavedCount::Slices { index, counts } => {
                self.put(&index.to_le_bytes());
                self.length(counts.len());
                self.words(counts);
            }
            SavedCount::Log { at, entries } => {
                self.put(&at.as_nanos().to_le_bytes());
                self.length(entries.len());
                for (at, units) in entries {
                    self.put(&at.as_nanos().to_le_bytes());
                    self.put(&units.to_le_bytes());
                }
            }
        }
    }

    fn words(&mut self, words: &[u32]) {
        for word in words {
            self.put(&word.to_le_bytes());
        }
    }

    fn length(&mut self, length: usize) {
        self.put(&(length as u64).to_le_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.record.extend_from_slice(bytes);
    }

    fn send(&mut self) -> io::Result<()> {
        self.hasher.update(&self.record);
        self.written += self.record.len() as u64;
        self.out.write_all(&self.record)?;
        self.record.clear();
        Ok(())
    }
}
