//! Tests of pages.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::store::fixture::at;

/// A ban by its end and its number.
type Ban = (u64, u8);

fn position(ban: &Ban) -> PagePosition {
    PagePosition::new(at(ban.0), BanId::from_bytes([ban.1; 16]))
}

/// All bans, page by page. `change` is called between pages.
fn read_pages(
    bans: &mut BTreeSet<Ban>,
    limit: usize,
    change: impl Fn(&mut BTreeSet<Ban>),
) -> Vec<Ban> {
    let (mut read, mut cursor) = (Vec::new(), None);
    loop {
        let found = page(bans.iter().copied().collect(), position, cursor, limit).unwrap();
        assert_eq!(found.total, bans.len());
        assert!(found.items.len() <= limit);
        read.extend(found.items);
        let Some(next) = found.next else {
            return read;
        };
        assert_eq!(PagePosition::parse(&next.to_string()), Ok(next));
        cursor = Some(next);
        change(bans);
    }
}

#[test]
fn the_ban_that_ends_last_is_first() {
    let bans = [(5, 1), (9, 2), (5, 3), (7, 4)];
    let found = page(bans.to_vec(), position, None, 10).unwrap();
    assert_eq!(found.items, [(9, 2), (7, 4), (5, 1), (5, 3)]);
    assert_eq!((found.total, found.next), (4, None));
}

#[test]
fn a_limit_or_a_cursor_can_be_wrong() {
    for limit in [0, MAX_PAGE + 1, usize::MAX] {
        assert_eq!(
            page(vec![(1, 1)], position, None, limit),
            Err(PageError::Limit)
        );
    }
    let good = position(&(5, 5)).to_string();
    for wrong in [
        "",
        "x",
        &good[1..],
        &format!("{good}0"),
        &good.replace('0', "+"),
        "ääääääääääääääääääääääää",
    ] {
        assert_eq!(
            PagePosition::parse(wrong),
            Err(PageError::Cursor),
            "{wrong}"
        );
    }
}

#[test]
fn exactly_full_pages_have_no_empty_one_after_them() {
    let mut bans: BTreeSet<Ban> = (0..6).map(|n| (u64::from(n), n)).collect();
    assert_eq!(read_pages(&mut bans, 3, |_| ()).len(), 6);
    let found = page(bans.into_iter().collect(), position, None, 6).unwrap();
    assert_eq!(found.next, None);
}

proptest! {
    #[test]
    fn pages_have_every_ban_once(mut bans: BTreeSet<(u64, u8)>, limit in 1..9usize) {
        bans = bans.into_iter().map(|(until, id)| (until % 1_000, id)).collect();
        let mut expected: Vec<_> = bans.iter().copied().collect();
        expected.sort_by_key(position);
        prop_assert_eq!(read_pages(&mut bans, limit, |_| ()), expected);
    }

    #[test]
    fn a_ban_that_stays_is_on_one_page_while_others_start_and_end(
        stays in prop::collection::btree_set((0..100u64, 0..100u8), 0..40),
        ends in prop::collection::btree_set((0..100u64, 100..150u8), 0..20),
        starts in prop::collection::btree_set((0..100u64, 150..200u8), 0..20),
        limit in 1..9usize,
    ) {
        let mut bans: BTreeSet<Ban> = stays.union(&ends).copied().collect();
        let read = read_pages(&mut bans, limit, |bans| {
            bans.pop_first();
            bans.extend(stays.iter().chain(&starts).copied());
            bans.retain(|ban| !ends.contains(ban));
        });
        let read: Vec<_> = read.into_iter().filter(|ban| stays.contains(ban)).collect();
        let mut expected: Vec<_> = stays.iter().copied().collect();
        expected.sort_by_key(position);
        prop_assert_eq!(read, expected);
    }
}
