//! `[store]` and `[lists]`.

use std::path::PathBuf;

use crate::config::{Spanned, Text};

/// `[store]`.
#[derive(Clone, Debug)]
pub struct Store {
    /// Where counters live. Default memory.
    pub kind: Spanned<StoreKind>,
    /// Keys that are tracked at once, over all rules. Default 1,000,000.
    pub max_keys: Spanned<u32>,
    /// Bytes of all `sliding_log` timestamps together. Default 64 MiB.
    pub max_log_bytes: Spanned<u64>,
    /// Where counters and bans are kept over a restart; `None`: nowhere. Default none.
    pub snapshot: Spanned<Option<PathBuf>>,
}

/// Where counters live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// In this process.
    Memory,
}

/// One of `[lists]`.
#[derive(Clone, Debug)]
pub struct List {
    /// What expressions call it, after the `$`.
    pub name: Text,
    /// What is in it.
    pub items: Items,
}

/// What is in a list.
#[derive(Clone, Debug)]
pub enum Items {
    /// Written in place.
    Inline(Vec<Spanned<Item>>),
    /// In a file, one a line.
    File(Spanned<PathBuf>),
}

/// An element of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A string: an address, a network or any text.
    Text(String),
    /// An integer.
    Integer(i64),
}
