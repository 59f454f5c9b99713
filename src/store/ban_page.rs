//! Pages of a listing of bans, for clients that read it part by part while bans start and end.

use std::cmp::Reverse;

use crate::clock::Timestamp;
use crate::rules::BanId;

#[cfg(test)]
mod tests;

/// The largest page.
pub const MAX_PAGE: usize = 1_000;

/// The position of a ban in a listing: the ban that ends last is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PagePosition {
    until: Reverse<Timestamp>,
    id: BanId,
}

/// Some of the bans of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanPage<T> {
    /// The bans, the one that ends last first.
    pub items: Vec<T>,
    /// The number of bans in the whole listing.
    pub total: usize,
    /// Where the next page starts. `None` on the last page.
    pub next: Option<PagePosition>,
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
    /// The limit is not from 1 to [`MAX_PAGE`].
    Limit,
    /// The cursor is not one that a page has named.
    Cursor,
}

// === impl PagePosition ===

impl PagePosition {
    /// The position of a ban that ends at `until`.
    pub fn new(until: Timestamp, id: BanId) -> Self {
        let until = Reverse(until);
        Self { until, id }
    }

    /// Reads the text that a position formats as.
    pub fn parse(text: &str) -> Result<Self, PageError> {
        let (until, id) = text.split_at_checked(16).ok_or(PageError::Cursor)?;
        let is_hex = until.bytes().all(|byte| byte.is_ascii_hexdigit());
        let until = u64::from_str_radix(until, 16).ok().filter(|_| is_hex);
        let position = until.zip(BanId::parse(id));
        let (until, id) = position.ok_or(PageError::Cursor)?;
        Ok(Self::new(Timestamp::from_nanos(until), id))
    }
}

impl std::fmt::Display for PagePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}{}", self.until.0.as_nanos(), self.id)
    }
}

/// Returns the `limit` bans of a listing that follow `cursor`, or its first ones.
///
/// A cursor is a position and not a number of bans: every ban that neither starts nor ends between two pages is on
/// exactly one of them. Only the bans of the page are sorted.
pub fn page<T>(
    bans: Vec<T>,
    position: impl Fn(&T) -> PagePosition,
    cursor: Option<PagePosition>,
    limit: usize,
) -> Result<BanPage<T>, PageError> {
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(PageError::Limit);
    }
    let total = bans.len();
    let follows = |ban: &T| cursor.is_none_or(|cursor| position(ban) > cursor);
    let mut items: Vec<T> = bans.into_iter().filter(follows).collect();
    let has_more = items.len() > limit;
    if has_more {
        items.select_nth_unstable_by_key(limit, &position);
        items.truncate(limit);
    }
    items.sort_unstable_by_key(&position);
    let next = items.last().map(&position).filter(|_| has_more);
    Ok(BanPage { items, total, next })
}

// === impl PageError ===

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PageError::Limit => "limit must be from 1 to 1000",
            PageError::Cursor => "it must be the `next` of a page",
        })
    }
}

impl std::error::Error for PageError {}
