//! Finds keys by their text in listings. Text that is hashed or cut is that of a key only if a listing has it: the bans,
//! and the hottest keys of the rule.

use std::collections::HashMap;

use super::ban_listing::{BanListing, KnownBan};
use super::state::AdminState;
use crate::decision::RuleIndex;
use crate::rules::{BanId, FixedKey, FixedKeyValue, KeyTextError, Rule};
use crate::snapshot::Snapshot;
use crate::store::ListedKey;

/// Why text is that of no key.
pub(super) enum UnknownKey {
    /// No listing has it.
    Unlisted,
    /// It is that of several keys.
    Ambiguous,
    /// It is not text of a key.
    Invalid(KeyTextError),
}

/// The keys of one rule that listings show.
pub(super) struct KnownKeys<'a> {
    pub(super) state: &'a AdminState,
    pub(super) snapshot: &'a Snapshot,
    pub(super) listing: &'a BanListing,
    pub(super) index: RuleIndex,
    pub(super) rule: &'a Rule,
}

/// Returns the only ban of a rule whose key has this text. `wrong` is why the text itself is not a key.
pub(super) fn ban_with_text<'l>(
    listing: &'l BanListing,
    rule: &Rule,
    text: &str,
    wrong: KeyTextError,
) -> Result<&'l KnownBan, UnknownKey> {
    let mut bans = listing.with_text(rule, text);
    match (bans.next(), bans.next()) {
        (Some(known), None) => Ok(known),
        (Some(_), Some(_)) => Err(UnknownKey::Ambiguous),
        (None, _) => Err(UnknownKey::of(wrong)),
    }
}

// === impl UnknownKey ===

impl UnknownKey {
    fn of(wrong: KeyTextError) -> Self {
        match wrong {
            KeyTextError::Hashed(_) | KeyTextError::Cut(_) => Self::Unlisted,
            wrong => Self::Invalid(wrong),
        }
    }
}

// === impl KnownKeys ===

impl KnownKeys<'_> {
    /// Finds a key by its text or by the id of its ban.
    pub(super) fn find(&self, text: &str) -> Result<FixedKey, UnknownKey> {
        let ban = BanId::parse(text).and_then(|id| self.listing.by_id(id));
        if let Some(known) = ban.filter(|known| known.ban.rule == self.rule.id) {
            return Ok(self.key_of_ban(known));
        }
        let wrong = match self.rule.key.read(text) {
            Ok(bytes) => return Ok(self.key(bytes.into())),
            Err(wrong) => wrong,
        };
        let hash = |secret: &[u8]| self.snapshot.redactor.hash(secret);
        let hottest = self.hottest().into_iter();
        let has_text = |(_, bytes): &(BanId, Box<[u8]>)| self.rule.key.list(bytes, &hash) == text;
        let mut keys: HashMap<BanId, FixedKey> = hottest
            .filter(has_text)
            .map(|(id, bytes)| (id, self.key(bytes)))
            .collect();
        for known in self.listing.with_text(self.rule, text) {
            let key = keys.entry(known.ban.ban_id);
            key.or_insert_with(|| self.key_of_ban(known));
        }
        let mut keys = keys.into_values();
        match (keys.next(), keys.next()) {
            (Some(key), None) => Ok(key),
            (Some(_), Some(_)) => Err(UnknownKey::Ambiguous),
            (None, _) => Err(UnknownKey::of(wrong)),
        }
    }

    /// Returns the complete hottest keys of the rule.
    fn hottest(&self) -> Vec<(BanId, Box<[u8]>)> {
        let hottest = self.state.hub().hottest(self.rule.id, usize::MAX);
        let complete = hottest.into_iter().filter(|hot| hot.is_complete());
        complete
            .map(|hot| (BanId::of(self.rule.id, &hot.key), hot.key))
            .collect()
    }

    fn key(&self, bytes: Box<[u8]>) -> FixedKey {
        let hash = |secret: &[u8]| self.snapshot.redactor.hash(secret);
        FixedKey {
            rule: self.index,
            text: self.rule.key.list(&bytes, &hash),
            value: FixedKeyValue::Bytes(bytes),
        }
    }

    /// Returns the key of a ban. Its bytes are those of the listing, of the text, or of one of the hottest keys: whichever
    /// have its id.
    fn key_of_ban(&self, known: &KnownBan) -> FixedKey {
        let ban = &known.ban;
        let listed = match &ban.key {
            ListedKey::Bytes(bytes) => Some(bytes.clone()),
            ListedKey::Text(text) => self.rule.key.read(text).ok().map(Into::into),
        };
        let is_complete = |bytes: &[u8]| BanId::of(self.rule.id, bytes) == ban.ban_id;
        let hot = || {
            let mut hottest = self.hottest().into_iter();
            hottest.find(|(id, _)| *id == ban.ban_id)
        };
        match listed
            .filter(|bytes| is_complete(bytes))
            .or_else(|| hot().map(|(_, bytes)| bytes))
        {
            Some(bytes) => self.key(bytes),
            None => FixedKey {
                rule: self.index,
                text: self.listing.key_text(known),
                value: FixedKeyValue::BannedUntil(ban.until),
            },
        }
    }
}
