//! The records that people see and write in Redis: bans, their index for listings, and exemptions.
//!
//! A value starts with a version. A gateway skips values of another version, so that a fleet can be upgraded step by
//! step. Values come from the network and can be anything.

use ipnet::IpNet;

use super::encode::push;
use super::key_names::{FleetKey, NameHash};
use super::sync_reply::ByteReader;
use crate::clock::Timestamp;
use crate::rules::cut_text;
use crate::rules::plan::RuleId;
use crate::store::{AdminNote, BanAuthor, ChangeScope, ExemptionEntry, ListedBan, ListedKey};

/// The version of the values of the index and of exemptions.
const VALUE_VERSION: u8 = 1;

/// The longest text of a key or a cause, in bytes.
const MAX_TEXT_BYTES: usize = 512;

/// The first byte of the record of a ban.
const BANNED: u8 = 128;

/// The flag of a record with past offences, and the length of that part (records.lua).
const HAS_OFFENCES: u8 = 64;
const OFFENCES_BYTES: usize = 9;

const BY_RULE: u8 = 0;
const BY_HAND: u8 = 1;

/// The part of a key's record that concerns bans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct BanRecordPart {
    /// The end of the ban. `None` if the key is not banned.
    pub(in crate::store) until: Option<Timestamp>,
    /// The offences of the key that count.
    pub(in crate::store) offences: u32,
}

// === impl BanRecordPart ===

impl BanRecordPart {
    /// Reads the record of a key, at the server's time `now`.
    pub(super) fn read(record: &[u8], now: Timestamp) -> Self {
        let Some((kind, rest)) = record.split_first() else {
            return Self::default();
        };
        if *kind == BANNED {
            let mut rest = ByteReader::new(rest);
            let (until, offences) = (rest.time(), rest.offence());
            return Self {
                until: until.filter(|until| *until > now),
                offences: offences.unwrap_or_default(),
            };
        }
        if *kind < BANNED && kind & HAS_OFFENCES != 0 {
            let start = rest.len().saturating_sub(OFFENCES_BYTES);
            let mut part = ByteReader::new(rest.get(start..).unwrap_or_default());
            let (offences, forget_at) = (part.offence(), part.time());
            let is_remembered = forget_at.is_some_and(|forget_at| forget_at > now);
            return Self {
                until: None,
                offences: offences.filter(|_| is_remembered).unwrap_or_default(),
            };
        }
        Self::default()
    }

    /// The record of a ban.
    pub(super) fn pack_ban(until: Timestamp, offences: u32) -> Vec<u8> {
        let mut record = vec![BANNED];
        push(&mut record, until.as_micros(), 7);
        push(&mut record, u64::from(offences.min(u16::MAX.into())), 2);
        record
    }
}

/// Packs what the index knows of a ban.
pub(super) fn pack_ban(ban: &ListedBan, text: &str) -> Vec<u8> {
    let mut packed = vec![VALUE_VERSION];
    push(&mut packed, ban.until.as_micros(), 7);
    push(&mut packed, u64::from(ban.offence.min(u16::MAX.into())), 2);
    push(&mut packed, ban.since.as_micros(), 7);
    packed.push(if ban.by == BanAuthor::Rule {
        BY_RULE
    } else {
        BY_HAND
    });
    push_text(&mut packed, ban.by.note().unwrap_or_default());
    push_text(&mut packed, text);
    push_text(&mut packed, ban.cause.as_deref().unwrap_or_default());
    packed
}

/// Reads what [`pack_ban`] has written for a ban of `rule`. `None` if it is of another version.
pub(super) fn read_ban(rule: RuleId, field: &[u8], value: &[u8]) -> Option<ListedBan> {
    let hash = NameHash::from_bytes(field.try_into().ok()?);
    let key = FleetKey {
        identity: rule.identity,
        hash,
    };
    let mut value = ByteReader::new(value);
    (value.byte()? == VALUE_VERSION).then_some(())?;
    let (until, offence, since) = (value.time()?, value.offence()?, value.time()?);
    let by = value.byte()?;
    let note = AdminNote::new(&value.text()?).ok()?;
    let (text, cause) = (value.text()?, value.text()?);
    Some(ListedBan {
        rule,
        ban_id: key.ban_id(),
        key: ListedKey::Text(text.into()),
        until,
        offence: offence.max(1),
        since,
        by: match by {
            BY_RULE => BanAuthor::Rule,
            _ => BanAuthor::Manual(note),
        },
        cause: (!cause.is_empty()).then(|| cause.into()),
        scope: ChangeScope::Fleet,
    })
}

/// Packs an exemption: the value of the field with the text of its network.
pub(super) fn pack_exemption(exemption: &ExemptionEntry) -> Vec<u8> {
    let mut packed = vec![VALUE_VERSION];
    push(&mut packed, exemption.since.as_micros(), 7);
    push(&mut packed, exemption.until.as_micros(), 7);
    push_text(&mut packed, exemption.note.as_str());
    packed
}

/// Reads what [`pack_exemption`] has written. `None` if it is of another version.
pub(super) fn read_exemption(field: &[u8], value: &[u8]) -> Option<ExemptionEntry> {
    let network: IpNet = std::str::from_utf8(field).ok()?.parse().ok()?;
    let mut value = ByteReader::new(value);
    (value.byte()? == VALUE_VERSION).then_some(())?;
    Some(ExemptionEntry {
        network,
        since: value.time()?,
        until: value.time()?,
        note: AdminNote::new(&value.text()?).ok()?,
        scope: ChangeScope::Fleet,
    })
}

/// Appends the length and the bytes of a text, cut at [`MAX_TEXT_BYTES`].
fn push_text(packed: &mut Vec<u8>, text: &str) {
    let text = cut_text(text, MAX_TEXT_BYTES);
    push(packed, text.len() as u64, 2);
    packed.extend_from_slice(text.as_bytes());
}

// === impl ByteReader ===

impl ByteReader<'_> {
    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number(2)?).ok()?;
        let text = self.take(length.min(MAX_TEXT_BYTES))?;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::MAX_NOTE_BYTES;
    use crate::store::fixture::at;

    const RULE: RuleId = RuleId {
        identity: 77,
        slot: 7,
    };

    fn ban(by: BanAuthor, cause: Option<&str>) -> (FleetKey, ListedBan) {
        let key = FleetKey::new(RULE, b"key");
        let ban = ListedBan {
            rule: RULE,
            ban_id: key.ban_id(),
            key: ListedKey::Text("203.0.113.7 \"a b\"".into()),
            until: at(60),
            offence: 3,
            since: at(0),
            by,
            cause: cause.map(Into::into),
            scope: ChangeScope::Fleet,
        };
        (key, ban)
    }

    #[test]
    fn a_value_of_the_index_is_read_back() {
        let note = AdminNote::new(&"ä".repeat(MAX_NOTE_BYTES / 2)).unwrap();
        for by in [
            BanAuthor::Rule,
            BanAuthor::Manual(note),
            BanAuthor::Manual(AdminNote::default()),
        ] {
            let (key, ban) = ban(by, Some("6 × POST /login 401 in 8 s"));
            let packed = pack_ban(&ban, "203.0.113.7 \"a b\"");
            assert_eq!(read_ban(RULE, &key.hash.to_bytes(), &packed), Some(ban));
        }
        let (key, ban) = ban(BanAuthor::Rule, None);
        let mut packed = pack_ban(&ban, &"ä".repeat(1_000));
        let read = read_ban(RULE, &key.hash.to_bytes(), &packed).unwrap();
        assert_eq!(
            read.key,
            ListedKey::Text("ä".repeat(MAX_TEXT_BYTES / 2).into())
        );
        packed[0] = 2;
        assert_eq!(read_ban(RULE, &key.hash.to_bytes(), &packed), None);
    }

    #[test]
    fn an_exemption_is_read_back() {
        let exemption = ExemptionEntry {
            network: "2001:db8::/32".parse().unwrap(),
            since: at(0),
            until: at(60),
            note: AdminNote::new("partner").unwrap(),
            scope: ChangeScope::Fleet,
        };
        let packed = pack_exemption(&exemption);
        assert_eq!(read_exemption(b"2001:db8::/32", &packed), Some(exemption));
    }

    #[test]
    fn the_record_of_a_ban_is_read_until_its_end() {
        let record = BanRecordPart::pack_ban(at(60), 4);
        let expected = |until| BanRecordPart { until, offences: 4 };
        assert_eq!(BanRecordPart::read(&record, at(59)), expected(Some(at(60))));
        assert_eq!(BanRecordPart::read(&record, at(60)), expected(None));
    }

    proptest! {
        #[test]
        fn no_value_panics(field in prop::collection::vec(any::<u8>(), 0..40), value in prop::collection::vec(any::<u8>(), 0..80)) {
            let version = [&[VALUE_VERSION], &value[..]].concat();
            for value in [&value, &version] {
                let _ = read_ban(RULE, &field, value);
                let _ = read_ban(RULE, &[0; 16], value);
                let _ = read_exemption(b"10.0.0.0/8", value);
                let _ = BanRecordPart::read(value, at(0));
            }
        }
    }
}
