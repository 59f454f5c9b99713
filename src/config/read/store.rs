//! Reads `[store]` and `[lists]`.

use toml::de::DeValue;

use super::checked_name;
use crate::config::defaults;
use crate::config::file::{Item, Items, List, Store, StoreKind};
use crate::config::scalar::{Parsed, choice, filled, integer, kind, path};
use crate::config::section::{Raw, Section};

const KINDS: &[(&str, StoreKind)] = &[("memory", StoreKind::Memory)];

pub(super) fn store(s: &mut Section<'_, '_>) -> Store {
    s.later(&["redis", "snapshot", "max_log_bytes"]);
    Store {
        kind: s.or("kind", choice(KINDS, &["redis"]), defaults::STORE_KIND),
        max_keys: s.or("max_keys", integer(1..=1_000_000_000), defaults::MAX_KEYS),
    }
}

pub(super) fn lists(s: &mut Section<'_, '_>) -> Vec<List> {
    let mut lists = Vec::new();
    for (name, raw) in s.entries() {
        let name = checked_name(s, name);
        // A list with mistakes is still a list: rules that use it are not wrong.
        let items = items(s, raw).unwrap_or(Items::Inline(Vec::new()));
        lists.push(List { name, items });
    }
    lists
}

fn items(s: &mut Section<'_, '_>, raw: &Raw<'_>) -> Option<Items> {
    match raw.get_ref() {
        DeValue::Array(array) => {
            let items = array.iter().filter_map(|raw| s.parse(raw, item));
            Some(Items::Inline(items.collect()))
        }
        DeValue::Table(_) => s.open(raw, from_file).flatten(),
        other => {
            let wrong = kind("an array or a table", other);
            let help = "for example [\"192.0.2.0/24\"] or { file = \"agents.txt\" }";
            s.wrong(raw.span(), wrong.help(help));
            None
        }
    }
}

fn from_file(s: &mut Section<'_, '_>) -> Option<Items> {
    s.required("file", path, "\"agents.txt\"").map(Items::File)
}

fn item(value: &DeValue<'_>) -> Parsed<Item> {
    match value {
        DeValue::Integer(_) => integer(i64::MIN..=i64::MAX)(value).map(Item::Integer),
        DeValue::String(_) => filled(value).map(Item::Text),
        other => Err(kind("a string or an integer", other)),
    }
}
