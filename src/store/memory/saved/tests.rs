//! The format: what is written is read, and nothing else is.

use std::net::IpAddr;

use ipnet::IpNet;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::rules::BanId;
use crate::rules::plan::RuleId;
use crate::store::memory::SHOWN;
use crate::store::{AdminNote, BanAuthor, BanEntry, ChangeScope};

fn header() -> SavedHeader {
    SavedHeader {
        secret: *b"0123456789abcdef",
        taken: Timestamp::from_secs(1_767_225_600),
        longest: 120,
    }
}

fn written(records: &[SavedRecord]) -> Vec<u8> {
    let mut writer = RecordWriter::new(Vec::new(), &header()).unwrap();
    for record in records {
        writer.add(record).unwrap();
    }
    writer.end().unwrap()
}

fn read(bytes: &[u8]) -> Result<(SavedHeader, Vec<SavedRecord>), SnapshotError> {
    let (mut reader, header) = RecordReader::new(bytes, 1 << 20)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        records.push(record);
    }
    Ok((header, records))
}

/// Ends what was written by hand as a snapshot ends.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let (length, hash) = (bytes.len() as u64, Sha256::digest(&bytes));
    bytes.extend(length.to_le_bytes());
    bytes.extend(hash);
    bytes
}

fn begun() -> Vec<u8> {
    let whole = written(&[]);
    whole[..whole.len() - 41].to_vec()
}

fn times() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp::from_nanos)
}

fn counts() -> impl Strategy<Value = SavedCount> {
    let words = any::<State>().prop_map(SavedCount::Words);
    let slices = (any::<u64>(), prop::collection::vec(any::<u32>(), 2..70));
    let log = (
        times(),
        prop::collection::vec((times(), any::<u32>()), 0..70),
    );
    prop_oneof![
        words,
        slices.prop_map(|(index, counts)| SavedCount::Slices { index, counts }),
        log.prop_map(|(at, entries)| SavedCount::Log { at, entries }),
    ]
}

prop_compose! {
    fn rules()(identity: u64, slot: u16, name in "[A-Za-z0-9_-]{1,64}") -> SavedRecord {
        SavedRecord::Rule(RegisteredRule { id: RuleId { identity, slot }, name })
    }
}

prop_compose! {
    fn bans()(
        hash: u128,
        identity: u64,
        key in prop::collection::vec(any::<u8>(), 0..=SHOWN),
        began in times(),
        until in times(),
        offence: u32,
        counts: bool,
        past: bool,
        ban_id: [u8; 16],
        since in times(),
        is_shared: bool,
        note in prop::option::of("[a-zäß ]{0,60}"),
    ) -> SavedRecord {
        let (id, key) = (RuleId::unregistered(identity), key.into());
        let manual = |note: String| BanAuthor::Manual(AdminNote::new(&note).unwrap());
        let by = note.map_or(BanAuthor::Rule, manual);
        let ban = BanEntry { id, ban_id: BanId::from_bytes(ban_id), key, until, offence, since, by, is_shared };
        SavedRecord::Ban(SavedBan { hash, sentence: BanRecord { ban, began, counts }, past })
    }
}

prop_compose! {
    fn counters()(tag: u64, expires: u32, slot: u16, fill: u8, count in counts()) -> SavedRecord {
        SavedRecord::Counter(SavedCounter { tag, expires, slot, fill, count })
    }
}

prop_compose! {
    fn exemptions()(ip: IpAddr, length in 0..=32u8, since in times(), until in times(), note in "[a-z]{0,9}", node: bool) -> SavedRecord {
        let (network, note) = (IpNet::new(ip, length).unwrap(), AdminNote::new(&note).unwrap());
        SavedRecord::Exemption(ExemptionEntry { network, since, until, note, scope: if node { ChangeScope::Node } else { ChangeScope::Fleet } })
    }
}

fn records() -> impl Strategy<Value = Vec<SavedRecord>> {
    prop::collection::vec(
        prop_oneof![rules(), bans(), counters(), exemptions()],
        0..20,
    )
}

proptest! {
    #[test]
    fn what_was_written_is_read(records in records()) {
        prop_assert_eq!(read(&written(&records)).unwrap(), (header(), records));
    }

    #[test]
    fn a_changed_byte_is_found(records in records(), place: prop::sample::Index, change in 1..=255u8) {
        let mut bytes = written(&records);
        *place.get_mut(&mut bytes) ^= change;
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn a_part_is_not_the_whole(records in records(), place: prop::sample::Index) {
        let bytes = written(&records);
        prop_assert!(read(&bytes[..place.index(bytes.len())]).is_err());
    }

    #[test]
    fn nothing_that_is_read_is_believed(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&noise);
        let _ = read(&[begun(), noise.clone()].concat());
        let _ = read(&signed([begun(), noise].concat()));
    }
}

#[test]
fn what_is_wrong_is_said() {
    let whole = written(&[]);
    let said = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(said(b""), "it is not a snapshot of lockgate's counters");
    assert_eq!(said(b"[server]\nworkers"), said(b""));
    let mut other = whole.clone();
    other[8] = 77;
    assert_eq!(
        said(&other),
        "it has format 77, and this version of lockgate reads format 3"
    );
    let cut = "it was cut off or something was added to it";
    assert_eq!(said(&whole[..whole.len() - 1]), cut);
    assert_eq!(said(&[&whole[..], b"x"].concat()), cut);
    let mut changed = whole.clone();
    changed[20] ^= 1;
    assert_eq!(
        said(&changed),
        "its checksum is wrong: it was changed or damaged"
    );
    let unknown = signed([begun(), vec![99]].concat());
    assert_eq!(
        said(&unknown),
        "it is damaged: it has a record of an unknown kind"
    );
}

#[test]
fn a_length_takes_no_memory() {
    for kind in [SLICES, LOG] {
        for length in [u64::MAX, 1 << 40, MOST_SLICES as u64 + 1] {
            let mut bytes = begun();
            bytes.push(kind);
            bytes.extend([0; 1 + 8 + 4 + 2 + 8]);
            bytes.extend(length.to_le_bytes());
            assert!(read(&signed(bytes)).is_err());
        }
    }
    let mut ban = begun();
    ban.push(BAN);
    ban.extend([0; 16 + 8 + 8 + 8 + 4 + 2]);
    ban.extend(u16::MAX.to_le_bytes());
    ban.extend([0; u16::MAX as usize]);
    assert!(read(&signed(ban)).is_err());
}

#[test]
fn of_a_log_that_is_too_long_the_newest_part_is_kept() {
    let entries = |range: std::ops::Range<u64>| {
        let entries = range.map(|n| (Timestamp::from_nanos(n), n as u32));
        let at = Timestamp::from_nanos(1_000);
        let entries = entries.collect();
        SavedCount::Log { at, entries }
    };
    let counter = |count| SavedCounter {
        tag: 1,
        expires: 2,
        slot: 3,
        fill: 4,
        count,
    };
    let bytes = written(&[SavedRecord::Counter(counter(entries(0..1_000)))]);
    let (mut reader, _) = RecordReader::new(&bytes[..], 160).unwrap();
    let kept = SavedRecord::Counter(counter(entries(990..1_000)));
    assert_eq!(reader.next().unwrap(), Some(kept));
    assert_eq!(reader.next().unwrap(), None);
}
