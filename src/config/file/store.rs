//! `[store]` and `[lists]`.

use std::path::PathBuf;

use toml::de::DeValue;

use super::checked_name;
use crate::config::scalar::{
    Scalar, choice, filled, integer, kind, path, path_or_none, size_between,
};
use crate::config::schema::{self, Shape};
use crate::config::section::{Raw, Section};
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

const KINDS: &[(&str, StoreKind)] = &[("memory", StoreKind::Memory)];

pub(super) fn store(s: &mut Section<'_, '_>) -> Store {
    s.later(&["redis"]);
    Store {
        kind: s.or("kind", choice(KINDS, &["redis"]), StoreKind::Memory),
        max_keys: s.or("max_keys", integer(1..=1_000_000_000), 1_000_000u32),
        max_log_bytes: s.or(
            "max_log_bytes",
            size_between(64 << 10, 1 << 40),
            64u64 << 20,
        ),
        snapshot: s.or("snapshot", path_or_none(), None),
    }
}

pub(super) fn lists(s: &mut Section<'_, '_>) -> Vec<List> {
    let mut lists = Vec::new();
    for (name, raw) in s.entries(schema::NAME) {
        let name = checked_name(s, name);
        // A list with mistakes is still a list: rules that use it are not wrong.
        let items = items(s, raw).unwrap_or(Items::Inline(Vec::new()));
        lists.push(List { name, items });
    }
    lists
}

fn items(s: &mut Section<'_, '_>, raw: &Raw<'_>) -> Option<Items> {
    let example = "[\"192.0.2.0/24\"] or { file = \"agents.txt\" }";
    let inline = |items| Some(Items::Inline(items));
    s.entry_array_or_table(raw, &item(), inline, from_file, example)
        .flatten()
}

fn from_file(s: &mut Section<'_, '_>) -> Option<Items> {
    s.required("file", path(), "\"agents.txt\"")
        .map(Items::File)
}

fn item() -> Scalar<Item> {
    let (number, word) = (integer(i64::MIN..=i64::MAX), filled());
    let shape = Shape::Either(vec![word.shape(), number.shape()]);
    Scalar::new(shape, move |value| match value {
        DeValue::Integer(_) => number.parse(value).map(Item::Integer),
        DeValue::String(_) => word.parse(value).map(Item::Text),
        other => Err(kind("a string or an integer", other)),
    })
}
