//! What to say of a key that its section does not have: what other programs call it, what it is a
//! misspelling of, or where it belongs.

mod foreign;

pub(super) use foreign::meant;

use std::collections::BTreeSet;
use std::ops::Range;

use super::example::{SEVERAL, header, join};
use crate::config::Diagnostics;
use crate::config::schema::{self, Shape, Table};
use crate::config::suggest::{either, nearest};

/// What stands before all sections, and is something else below one.
pub(super) const INCLUDE: &str = "include";

/// More places are of no help.
const MOST: usize = 3;

/// Reports `name` in the section at `path`, whose keys are `known`; `unwanted` are refused there.
pub(super) fn report(
    path: &str,
    name: &str,
    known: &BTreeSet<&'static str>,
    unwanted: &[&'static str],
    span: Range<usize>,
    out: &mut Diagnostics,
) {
    if name == "include" {
        let message = format!(
            "below `{}`, `include` is a key of that section",
            header(path)
        );
        out.error(span, message)
            .help("put it at the top of the file, before the first `[section]`");
        return;
    }
    let foreign = meant(path, name);
    let all = known.iter().chain(unwanted).copied();
    let near = nearest(name, all.filter(|_| foreign.is_none()));
    let guess = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let error = out.error(span, format!("unknown key `{name}`{guess}"));
    if let Some(help) = foreign {
        error.help(help);
    } else if let Some(near) = near.filter(|near| path.is_empty() && SEVERAL.contains(near)) {
        error.help(format!("write `[[{near}]]`"));
    } else if guess.is_empty() {
        let places = places(name);
        match places.is_empty() {
            true => {
                let known: Vec<_> = known.iter().copied().collect();
                error.help(format!("the keys here are {}", known.join(", ")))
            }
            false => error.help(format!("it is a key of {}", either(&places))),
        };
    }
}

/// Reports an `include` that TOML takes for a key of the section at `path`.
pub(super) fn misplaced(path: &str, span: Range<usize>, out: &mut Diagnostics) {
    let header = header(path);
    let message = format!("below `{header}`, `{INCLUDE}` is a key of that section");
    out.error(span, message)
        .help("put it at the top of the file, before the first `[section]`");
}

/// Whether what is said of `name` in the section at `path` is that it should be `key`.
pub(super) fn stands_for(path: &str, name: &str, key: &str) -> bool {
    match meant(path, name) {
        Some(help) => [format!("`{key} = "), format!("`{key}`")]
            .iter()
            .any(|named| help.contains(named)),
        None => nearest(name, [key]).is_some() && !sections(name).contains(&header(path)),
    }
}

/// The first sections that have a key of this name.
fn places(name: &str) -> Vec<String> {
    sections(name).into_iter().take(MOST).collect()
}

/// The sections that have a key of this name.
fn sections(name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(&schema::root(), "", name, &mut found);
    found
}

fn collect(table: &Table, path: &str, name: &str, found: &mut BTreeSet<String>) {
    for key in &table.keys {
        if key.name == name && !path.is_empty() {
            found.insert(header(path));
        }
        within(&key.shape, &join(path, key.name), name, found);
    }
    for shape in table.names.iter().flat_map(|names| &names.shapes) {
        within(shape, &join(path, "NAME"), name, found);
    }
}

fn within(shape: &Shape, path: &str, name: &str, found: &mut BTreeSet<String>) {
    match shape {
        Shape::Table(table) => collect(table, path, name, found),
        Shape::List { item, .. } => within(item, path, name, found),
        Shape::Either(shapes) => {
            for shape in shapes {
                within(shape, path, name, found);
            }
        }
        _ => {}
    }
}
