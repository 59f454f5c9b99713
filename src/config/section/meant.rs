//! What a misspelt key was meant to be. Its value is read all the same, so that its own mistakes are
//! told and nothing that refers to it is blamed; that the key is unknown is an error in any case.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use toml::de::{DeArray, DeTable, DeValue};

use super::example::{SEVERAL, join};
use super::unknown::{self, INCLUDE};
use super::{Raw, Section};
use crate::config::schema::{self, Shape, Table};
use crate::config::suggest::nearest;

/// A key as the parser gives it.
pub(super) type Name<'a> = toml::Spanned<std::borrow::Cow<'a, str>>;

/// A key that stands in for another.
pub(super) struct StandIn<'a> {
    /// What it was meant to be.
    key: &'static str,
    name: &'a Name<'a>,
    raw: &'a Raw<'a>,
}

/// The keys of every section, by its path.
static KNOWN: LazyLock<BTreeMap<String, BTreeSet<&'static str>>> = LazyLock::new(|| {
    let mut known = BTreeMap::new();
    collect("", &schema::root(), &mut known);
    known
});

/// Whether the section at `path` has a key of this name.
pub(super) fn is_key(path: &str, name: &str) -> bool {
    KNOWN.get(path).is_some_and(|known| known.contains(name))
}

// === impl Section ===

impl<'a> Section<'a, '_> {
    /// The key and its value, under a misspelt name too.
    pub(super) fn find(&self, key: &str) -> Option<(&'a Name<'a>, &'a Raw<'a>)> {
        self.table
            .get_key_value(key)
            .or_else(|| self.stand_ins(key).next())
    }

    /// All misspelt names of the key, with their values.
    pub(super) fn stand_ins(&self, key: &str) -> impl Iterator<Item = (&'a Name<'a>, &'a Raw<'a>)> {
        // While what is known is being described, all tables are empty.
        let all = match self.describing() || self.table.is_empty() {
            true => [].as_slice(),
            false => self.misspelt.get_or_init(|| misspelt(self)),
        };
        let own = all.iter().filter(move |one| one.key == key);
        own.map(|one| (one.name, one.raw))
    }
}

fn misspelt<'a>(section: &Section<'a, '_>) -> Vec<StandIn<'a>> {
    let Some(known) = KNOWN.get(&section.path) else {
        return Vec::new();
    };
    let unknown = section
        .table
        .iter()
        .filter(|(name, _)| !known.contains(name.get_ref().as_ref()));
    let stand_in = |(name, raw): (&'a Name<'a>, &'a Raw<'a>)| {
        let key = meant(&section.path, name.get_ref(), raw.get_ref(), known)?;
        Some(StandIn { key, name, raw })
    };
    let mut found: Vec<_> = unknown.filter_map(stand_in).collect();
    found.sort_by_key(|one| one.name.span().start);
    found
}

/// The key of the section at `path` that `name` was meant to be, if its value may be read as one.
fn meant(
    path: &str,
    name: &str,
    value: &DeValue<'_>,
    known: &BTreeSet<&'static str>,
) -> Option<&'static str> {
    let Some(help) = unknown::meant(path, name) else {
        let key = nearest(name, known.iter().copied())?;
        let fits = !path.is_empty() || key == INCLUDE || is_section(value);
        return (fits && is_whole(key, value)).then_some(key);
    };
    // Of foreign words only those for sections: other values seldom have the same form.
    let headers = SEVERAL.iter().filter(|_| path.is_empty());
    let first = |key: &&&'static str| {
        let header = help.find("`[").and_then(|at| help.get(at..));
        header.is_some_and(|header| header.starts_with(&format!("`[[{key}]]")))
    };
    let key = headers.copied().find(|key| first(&key))?;
    speaks_of(key, value).then_some(key)
}

fn is_section(value: &DeValue<'_>) -> bool {
    let all = |array: &DeArray<'_>| array.iter().all(|item| item.get_ref().is_table());
    value.is_table() || value.as_array().is_some_and(all)
}

/// Whether a table is more than one that stands within an element: `[listener.tls]`.
fn is_whole(key: &str, value: &DeValue<'_>) -> bool {
    match value.as_table() {
        Some(table) if SEVERAL.contains(&key) => {
            let mut values = table.iter().map(|(_, value)| value.get_ref());
            values.any(|value| !value.is_table())
        }
        _ => true,
    }
}

/// Whether what stands in it has to do with `section`.
fn speaks_of(section: &str, value: &DeValue<'_>) -> bool {
    let known = |table: &DeTable<'_>| {
        let mut names = table
            .iter()
            .filter(|(_, value)| !value.get_ref().is_table());
        let known = KNOWN.get(section);
        names.any(|(name, _)| {
            let name = name.get_ref().as_ref();
            known.is_some_and(|known| known.contains(name))
                || unknown::meant(section, name).is_some()
        })
    };
    match value {
        DeValue::Table(table) => known(table),
        DeValue::Array(array) => {
            let mut items = array.iter().map(|item| item.get_ref());
            items.any(|item| item.as_table().is_some_and(known))
        }
        _ => false,
    }
}

fn collect(path: &str, table: &Table, known: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let theirs = table.aliases.iter().map(|(_, theirs)| *theirs);
    let keys = table.keys.iter().map(|key| key.name).chain(theirs);
    let keys = keys.chain(table.later.iter().copied());
    known.entry(path.to_owned()).or_default().extend(keys);
    for key in &table.keys {
        within(&join(path, key.name), &key.shape, known);
    }
    for shape in table.names.iter().flat_map(|names| &names.shapes) {
        within(&join(path, "NAME"), shape, known);
    }
}

fn within(path: &str, shape: &Shape, known: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    match shape {
        Shape::Table(table) => collect(path, table, known),
        Shape::List { item, .. } => within(path, item, known),
        Shape::Either(all) => all.iter().for_each(|shape| within(path, shape, known)),
        _ => {}
    }
}
