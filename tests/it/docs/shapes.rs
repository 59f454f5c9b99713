//! Walks over what a configuration may hold, as its readers tell it.

use lockgate::config::schema::{Shape, Table};

/// Calls `see` with each table and its dotted path; a name of the user's own is NAME.
pub fn each_table(table: &Table, see: &mut impl FnMut(&str, &Table)) {
    walk(table, "", see);
}

/// Calls `see` with each value that is no table, and its dotted path.
pub fn each_value(table: &Table, see: &mut impl FnMut(&str, &Shape)) {
    each_table(table, &mut |path, table| {
        for key in &table.keys {
            values(&key.shape, &join(path, key.name), see);
        }
    });
}

fn walk(table: &Table, path: &str, see: &mut impl FnMut(&str, &Table)) {
    see(path, table);
    for key in &table.keys {
        below(&key.shape, &join(path, key.name), see);
    }
    for shape in table.names.iter().flat_map(|names| &names.shapes) {
        below(shape, &join(path, "NAME"), see);
    }
}

fn below(shape: &Shape, path: &str, see: &mut impl FnMut(&str, &Table)) {
    match shape {
        Shape::Table(table) => walk(table, path, see),
        Shape::List { item, .. } => below(item, path, see),
        Shape::Either(all) => all.iter().for_each(|shape| below(shape, path, see)),
        _ => {}
    }
}

fn values(shape: &Shape, path: &str, see: &mut impl FnMut(&str, &Shape)) {
    match shape {
        Shape::Table(_) => {}
        Shape::List { item, .. } => values(item, path, see),
        Shape::Either(all) => all.iter().for_each(|shape| values(shape, path, see)),
        shape => see(path, shape),
    }
}

fn join(path: &str, name: &str) -> String {
    format!("{path}.{name}").trim_matches('.').to_owned()
}
