//! `[store]` and `[lists]`.

use std::path::PathBuf;

use toml::de::DeValue;

use super::checked_name;
use crate::config::scalar::{
    SettingType, choice, filled, integer, kind, path, path_or_none, size_between,
};
use crate::config::schema::{self, ValueSchema};
use crate::config::section::{Raw, SectionReader};
use crate::config::{Spanned, Text};

/// `[store]`.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The kind of store. Default memory.
    pub kind: Spanned<StoreKind>,
    /// The maximum number of keys over all rules. Default 1,000,000.
    pub max_keys: Spanned<u32>,
    /// The maximum size of all `sliding_log` timestamps in bytes. Default 64 MiB.
    pub max_log_bytes: Spanned<u64>,
    /// The file of the counter snapshot. `None`, the default, saves nothing.
    pub snapshot: Spanned<Option<PathBuf>>,
}

/// Where counters are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// In this process.
    Memory,
}

/// One of `[lists]`.
#[derive(Clone, Debug)]
pub struct ListSettings {
    /// The name that expressions use after the `$`.
    pub name: Text,
    /// The values of the list.
    pub items: ListItems,
}

/// The source of a list's values.
#[derive(Clone, Debug)]
pub enum ListItems {
    /// Values in the configuration file.
    Inline(Vec<Spanned<ListItem>>),
    /// A file with one value per line.
    File(Spanned<PathBuf>),
}

/// An element of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// A string: an address, a network or any text.
    Text(String),
    /// An integer.
    Integer(i64),
}

const KINDS: &[(&str, StoreKind)] = &[("memory", StoreKind::Memory)];

pub(super) fn store(s: &mut SectionReader<'_, '_>) -> StoreSettings {
    s.later(&["redis"]);
    StoreSettings {
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

pub(super) fn lists(s: &mut SectionReader<'_, '_>) -> Vec<ListSettings> {
    let mut lists = Vec::new();
    for (name, raw) in s.entries(schema::NAME) {
        let name = checked_name(s, name);
        // A list with errors is still defined, so rules that use it get no further errors.
        let items = items(s, raw).unwrap_or(ListItems::Inline(Vec::new()));
        lists.push(ListSettings { name, items });
    }
    lists
}

fn items(s: &mut SectionReader<'_, '_>, raw: &Raw<'_>) -> Option<ListItems> {
    let example = "[\"192.0.2.0/24\"] or { file = \"agents.txt\" }";
    let inline = |items| Some(ListItems::Inline(items));
    s.entry_array_or_table(raw, &item(), inline, from_file, example)
        .flatten()
}

fn from_file(s: &mut SectionReader<'_, '_>) -> Option<ListItems> {
    s.required("file", path(), "\"agents.txt\"")
        .map(ListItems::File)
}

fn item() -> SettingType<ListItem> {
    let (number, word) = (integer(i64::MIN..=i64::MAX), filled());
    let shape = ValueSchema::Either(vec![word.shape(), number.shape()]);
    SettingType::new(shape, move |value| match value {
        DeValue::Integer(_) => number.parse(value).map(ListItem::Integer),
        DeValue::String(_) => word.parse(value).map(ListItem::Text),
        other => Err(kind("a string or an integer", other)),
    })
}
