//! Reads `[store]` and `[lists]`.

use toml::de::DeValue;

use super::checked_name;
use crate::config::defaults;
use crate::config::file::{Item, Items, List, Store, StoreKind};
use crate::config::scalar::{
    Scalar, choice, filled, integer, kind, path, path_or_none, size_between,
};
use crate::config::schema::{self, Shape};
use crate::config::section::{Raw, Section};

const KINDS: &[(&str, StoreKind)] = &[("memory", StoreKind::Memory)];

pub(super) fn store(s: &mut Section<'_, '_>) -> Store {
    s.later(&["redis"]);
    Store {
        kind: s.or("kind", choice(KINDS, &["redis"]), defaults::STORE_KIND),
        max_keys: s.or("max_keys", integer(1..=1_000_000_000), defaults::MAX_KEYS),
        max_log_bytes: s.or(
            "max_log_bytes",
            size_between(64 << 10, 1 << 40),
            defaults::MAX_LOG_BYTES,
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
