//! Bans as administration sees them: their authors and notes, and what can be wrong with a change.

use std::fmt;

use crate::clock::Timestamp;
use crate::rules::BanId;
use crate::rules::plan::RuleId;

/// The longest note of a ban or an exemption, in bytes.
pub const MAX_NOTE_BYTES: usize = 200;

/// A ban that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanEntry {
    /// The rule.
    pub id: RuleId,
    /// The identity of the ban, of the rule and the complete key.
    pub ban_id: BanId,
    /// The key's bytes as in the plan, truncated to [`super::memory::SHOWN`] bytes.
    pub key: Box<[u8]>,
    /// When the ban ends.
    pub until: Timestamp,
    /// The ordinal of this offence of the key, counted from 1.
    pub offence: u32,
    /// When the ban began. For a ban that a shared store has reported, when this node learned of it.
    pub since: Timestamp,
    /// The author of the ban.
    pub by: BanAuthor,
    /// Whether a shared store has the ban. If not, only this process has it.
    pub is_shared: bool,
}

/// The author of a ban.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BanAuthor {
    /// The rule.
    #[default]
    Rule,
    /// A person, with a note.
    Manual(AdminNote),
}

/// A person's note on a ban or an exemption: at most [`MAX_NOTE_BYTES`] bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminNote(Box<str>);

/// The key of a ban that a person starts or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BanKey {
    /// The complete bytes of the key.
    Bytes(Box<[u8]>),
    /// The id of a ban that is in force or that was removed.
    Id(BanId),
}

/// A ban by hand, or a removed ban that is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanTerms {
    /// When the ban ends.
    pub until: Timestamp,
    /// When it began. A restored ban keeps its time.
    pub since: Timestamp,
    /// Its author.
    pub by: BanAuthor,
    /// The ordinal of the offence. `None` keeps that of the key: a ban by hand is no offence.
    pub offence: Option<u32>,
}

/// Why a ban or an exemption was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminError {
    /// There is no ban, no removed ban or no exemption with this id, key or network.
    NotFound,
    /// The end is not in the future.
    AlreadyEnded,
    /// The note has more than [`MAX_NOTE_BYTES`] bytes.
    LongNote,
    /// The exemption lasts longer than a day.
    TooLong,
    /// The list of exemptions is full.
    ListFull,
    /// All of the capacity for bans is in use at the moment.
    NoCapacity,
    /// No core of the gateway takes commands at the moment.
    Unavailable,
}

// === impl BanEntry ===

impl BanEntry {
    /// The person's note on a ban by hand. `None` if a rule started the ban.
    pub fn note(&self) -> Option<&str> {
        self.by.note()
    }
}

// === impl BanAuthor ===

impl BanAuthor {
    /// The note of a person. `None` for a rule.
    pub fn note(&self) -> Option<&str> {
        match self {
            BanAuthor::Rule => None,
            BanAuthor::Manual(note) => Some(note.as_str()),
        }
    }

    /// The name in listings.
    pub const fn name(&self) -> &'static str {
        match self {
            BanAuthor::Rule => "rule",
            BanAuthor::Manual(_) => "manual",
        }
    }
}

// === impl AdminNote ===

impl AdminNote {
    /// Reads a note. Fails if it is too long.
    pub fn new(text: &str) -> Result<Self, AdminError> {
        if text.len() > MAX_NOTE_BYTES {
            return Err(AdminError::LongNote);
        }
        Ok(Self(text.into()))
    }

    /// The text. Empty if there is no note.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// === impl BanKey ===

impl BanKey {
    /// The key with these bytes.
    pub fn of(key: &[u8]) -> Self {
        Self::Bytes(key.into())
    }

    /// The id of a ban of the key by `rule`.
    pub fn ban_id(&self, rule: RuleId) -> BanId {
        match self {
            BanKey::Bytes(key) => BanId::of(rule, key),
            BanKey::Id(id) => *id,
        }
    }
}

// === impl BanTerms ===

impl BanTerms {
    /// A ban by hand from `now` on.
    pub fn by_hand(now: Timestamp, until: Timestamp, note: AdminNote) -> Self {
        Self {
            until,
            since: now,
            by: BanAuthor::Manual(note),
            offence: None,
        }
    }
}

// === impl AdminError ===

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdminError::NotFound => "there is no such record",
            AdminError::AlreadyEnded => "the end must be in the future",
            AdminError::LongNote => "a note can have at most 200 bytes",
            AdminError::TooLong => "an exemption can last at most 24 hours",
            AdminError::ListFull => "there are already 1000 exemptions, the maximum",
            AdminError::NoCapacity => "all of the capacity for bans is in use; try again",
            AdminError::Unavailable => "the gateway cannot take commands now; try again",
        })
    }
}

impl std::error::Error for AdminError {}
