//! Reads a snapshot.

use std::io::Read;
use std::net::IpAddr;

use ipnet::IpNet;
use sha2::{Digest as _, Sha256};

use super::{
    BAN, BY_HAND, BY_RULE, END, EXEMPTION, LOG, MAGIC, MOST_SLICES, RULE, SHARE, SavedBan,
    SavedCount, SavedCounter, SavedHeader, SnapshotError,
};
use super::{OLDEST_VERSION, SLICES, SavedRecord, VERSION, WORDS};
use crate::clock::Timestamp;
use crate::limit::{ShareCounter, State};
use crate::rules::BanId;
use crate::rules::plan::RuleId;
use crate::rules::registry::RegisteredRule;
use crate::store::memory::SHOWN;
use crate::store::memory::bans::BanRecord;
use crate::store::{AdminNote, BanAuthor, BanEntry, ChangeScope, ExemptionEntry};

/// Reads records one after the other. They are only trustworthy once the end has been reached.
pub(in super::super) struct RecordReader<R> {
    input: R,
    version: u32,
    hasher: Sha256,
    read: u64,
    /// The maximum number of bytes of one log that are kept.
    longest_log: usize,
}

// === impl RecordReader ===

impl<R: Read> RecordReader<R> {
    /// Reads the header. `input` should be buffered. Of a log larger than `longest_log` bytes, only the newest
    /// part is kept.
    pub(in super::super) fn new(
        input: R,
        longest_log: usize,
    ) -> Result<(Self, SavedHeader), SnapshotError> {
        let mut reader = Self {
            input,
            version: VERSION,
            hasher: Sha256::new(),
            read: 0,
            longest_log,
        };
        let header = reader.header()?;
        Ok((reader, header))
    }

    /// Returns the next record. `None` at the end, if length and checksum match.
    pub(in super::super) fn next(&mut self) -> Result<Option<SavedRecord>, SnapshotError> {
        let [kind] = self.take()?;
        Ok(Some(match kind {
            END => {
                self.end()?;
                return Ok(None);
            }
            RULE => SavedRecord::Rule(self.rule()?),
            BAN => SavedRecord::Ban(self.ban()?),
            EXEMPTION => SavedRecord::Exemption(self.exemption()?),
            WORDS | SLICES | LOG | SHARE => SavedRecord::Counter(self.counter(kind)?),
            _ => return Err(SnapshotError::Nonsense("a record of an unknown kind")),
        }))
    }

    fn header(&mut self) -> Result<SavedHeader, SnapshotError> {
        let magic: [u8; 8] = self.take().map_err(|damage| match damage {
            SnapshotError::Length => SnapshotError::Foreign,
            other => other,
        })?;
        if magic != MAGIC {
            return Err(SnapshotError::Foreign);
        }
        let version = self.u32()?;
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(SnapshotError::Version(version));
        }
        self.version = version;
        Ok(SavedHeader {
            secret: self.take()?,
            taken: self.time()?,
            longest: self.u32()?,
        })
    }

    fn end(&mut self) -> Result<(), SnapshotError> {
        let (read, hash) = (self.read, self.hasher.clone().finalize());
        let (length, expected) = (self.u64()?, self.take::<32>()?);
        if length != read || self.input.read(&mut [0])? != 0 {
            return Err(SnapshotError::Length);
        }
        if hash.as_slice() != expected {
            return Err(SnapshotError::Checksum);
        }
        Ok(())
    }

    fn rule(&mut self) -> Result<RegisteredRule, SnapshotError> {
        let (identity, slot, [length]) = (self.u64()?, self.u16()?, self.take()?);
        let name = self.bytes(usize::from(length))?;
        let name = String::from_utf8_lossy(&name).into_owned();
        let id = RuleId { identity, slot };
        Ok(RegisteredRule { id, name })
    }

    fn ban(&mut self) -> Result<SavedBan, SnapshotError> {
        let hash = u128::from_le_bytes(self.take()?);
        let identity = self.u64()?;
        let (began, until, offence) = (self.time()?, self.time()?, self.u32()?);
        let [counts, past] = self.take()?;
        let length = usize::from(self.u16()?);
        if length > SHOWN {
            return Err(SnapshotError::Nonsense("a key that is too long"));
        }
        let key = self.bytes(length)?;
        let id = RuleId::unregistered(identity);
        let (ban_id, since, by, is_shared) = if self.version == OLDEST_VERSION {
            // The id of a ban with a key that was cut is another one than before, but also finds it.
            (BanId::of(id, &key), began, BanAuthor::Rule, false)
        } else {
            (
                BanId::from_bytes(self.take()?),
                self.time()?,
                self.author()?,
                self.take()? != [0],
            )
        };
        let ban = BanEntry {
            id,
            ban_id,
            key: key.into(),
            until,
            offence,
            since,
            by,
            is_shared,
        };
        let counts = counts != 0;
        Ok(SavedBan {
            hash,
            sentence: BanRecord { ban, began, counts },
            past: past != 0,
        })
    }

    fn author(&mut self) -> Result<BanAuthor, SnapshotError> {
        match self.take()? {
            [BY_RULE] => Ok(BanAuthor::Rule),
            [BY_HAND] => Ok(BanAuthor::Manual(self.note()?)),
            _ => Err(SnapshotError::Nonsense("a ban of an unknown author")),
        }
    }

    fn note(&mut self) -> Result<AdminNote, SnapshotError> {
        let [length] = self.take()?;
        let note = self.bytes(usize::from(length))?;
        let note = String::from_utf8(note).ok();
        let note = note.and_then(|note| AdminNote::new(&note).ok());
        note.ok_or(SnapshotError::Nonsense("an invalid note"))
    }

    fn scope(&mut self) -> Result<ChangeScope, SnapshotError> {
        Ok(match self.take()? {
            [0] => ChangeScope::Fleet,
            _ => ChangeScope::Node,
        })
    }

    fn exemption(&mut self) -> Result<ExemptionEntry, SnapshotError> {
        let ip = match self.take()? {
            [0] => IpAddr::from(self.take::<4>()?),
            _ => IpAddr::from(self.take::<16>()?),
        };
        let [length] = self.take()?;
        let network = IpNet::new(ip, length);
        Ok(ExemptionEntry {
            network: network.map_err(|_| SnapshotError::Nonsense("an invalid network"))?,
            since: self.time()?,
            until: self.time()?,
            note: self.note()?,
            scope: self.scope()?,
        })
    }

    fn counter(&mut self, kind: u8) -> Result<SavedCounter, SnapshotError> {
        let [fill] = self.take()?;
        Ok(SavedCounter {
            fill,
            tag: self.u64()?,
            expires: self.u32()?,
            slot: self.u16()?,
            count: match kind {
                SLICES => self.slices()?,
                LOG => self.log()?,
                SHARE => SavedCount::Share(ShareCounter {
                    count: self.words()?,
                    total: self.words()?,
                }),
                _ => SavedCount::Words(self.words()?),
            },
        })
    }

    fn words(&mut self) -> Result<State, SnapshotError> {
        Ok([self.u32()?, self.u32()?, self.u32()?])
    }

    fn slices(&mut self) -> Result<SavedCount, SnapshotError> {
        let (index, length) = (self.u64()?, self.u64()?);
        if length < 2 || length > MOST_SLICES as u64 {
            return Err(SnapshotError::Nonsense(
                "a counter with too many sub-windows",
            ));
        }
        let counts: Result<_, _> = (0..length).map(|_| self.u32()).collect();
        let counts = counts?;
        Ok(SavedCount::Slices { index, counts })
    }

    fn log(&mut self) -> Result<SavedCount, SnapshotError> {
        let (at, length) = (self.time()?, self.u64()?);
        let most = (self.longest_log / size_of::<(Timestamp, u32)>()).max(1) as u64;
        for _ in 0..length.saturating_sub(most) {
            self.take::<12>()?;
        }
        // Grows as bytes arrive; the stated length is not trusted.
        let entries: Result<_, SnapshotError> = (0..length.min(most))
            .map(|_| Ok((self.time()?, self.u32()?)))
            .collect();
        let entries = entries?;
        Ok(SavedCount::Log { at, entries })
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = vec![0; length];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn time(&mut self) -> Result<Timestamp, SnapshotError> {
        Ok(Timestamp::from_nanos(self.u64()?))
    }

    fn u16(&mut self) -> Result<u16, SnapshotError> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    fn u32(&mut self) -> Result<u32, SnapshotError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, SnapshotError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        self.input.read_exact(bytes)?;
        self.hasher.update(&*bytes);
        self.read += bytes.len() as u64;
        Ok(())
    }
}
