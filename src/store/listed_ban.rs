//! A ban in a listing of the whole fleet.

use super::{BanAuthor, BanEntry, BanTerms, ChangeScope, memory};
use crate::clock::Timestamp;
use crate::rules::BanId;
use crate::rules::plan::RuleId;

/// A ban in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBan {
    /// The rule.
    pub rule: RuleId,
    /// The identity of the ban.
    pub ban_id: BanId,
    /// The key.
    pub key: ListedKey,
    /// When the ban ends.
    pub until: Timestamp,
    /// The ordinal of this offence of the key, counted from 1.
    pub offence: u32,
    /// When the ban began.
    pub since: Timestamp,
    /// The author of the ban.
    pub by: BanAuthor,
    /// Why the ban was started, as the gateway that started it has written. `None` if the index of the fleet does not
    /// have it.
    pub cause: Option<Box<str>>,
    /// Which gateways have the ban.
    pub scope: ChangeScope,
}

/// The key of a ban in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedKey {
    /// The bytes of the key as in the plan, cut at [`super::memory::SHOWN`] bytes.
    Bytes(Box<[u8]>),
    /// The text that the gateway that started the ban has written, with secret parts hashed.
    Text(Box<str>),
}

/// A ban that a person starts or restores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanRequest {
    /// The rule.
    pub rule: RuleId,
    /// The key.
    pub key: super::BanKey,
    /// The text of the key in listings. Secret parts must be hashed.
    pub text: Box<str>,
    /// The cause in listings.
    pub cause: Box<str>,
    /// The ban.
    pub terms: BanTerms,
}

/// A change that a person has made, and the gateways to which it applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedChange<T> {
    /// The record that was added or removed.
    pub record: T,
    /// The gateways to which the change applies.
    pub scope: ChangeScope,
}

// === impl ListedBan ===

impl ListedBan {
    /// A ban that `rule` has started for a key with these complete bytes.
    pub fn started(rule: RuleId, key: &[u8], until: Timestamp, since: Timestamp) -> Self {
        Self {
            rule,
            ban_id: BanId::of(rule, key),
            key: ListedKey::Bytes(key.get(..memory::SHOWN).unwrap_or(key).into()),
            until,
            offence: 1,
            since,
            by: BanAuthor::Rule,
            cause: None,
            scope: ChangeScope::Fleet,
        }
    }

    /// A ban of this gateway. `is_fleet` says whether all gateways have it.
    pub(super) fn of_entry(ban: BanEntry, is_fleet: bool) -> Self {
        let scope = if is_fleet {
            ChangeScope::Fleet
        } else {
            ChangeScope::Node
        };
        Self {
            rule: ban.id,
            ban_id: ban.ban_id,
            key: ListedKey::Bytes(ban.key),
            until: ban.until,
            offence: ban.offence,
            since: ban.since,
            by: ban.by,
            cause: None,
            scope,
        }
    }

    /// The terms that restore the ban.
    pub fn terms(&self) -> BanTerms {
        BanTerms {
            until: self.until,
            since: self.since,
            by: self.by.clone(),
            offence: Some(self.offence),
        }
    }
}
