//! Walks over what a configuration may hold, as its readers tell it.

use lockgate::config::schema::{TableSchema, ValueSchema};

/// Calls `see` with each table and its dotted path; a name of the user's own is NAME.
pub fn each_table(table: &TableSchema, see: &mut impl FnMut(&str, &TableSchema)) {
    walk(table, "", see);
}

/// Calls `see` with each value that is no table, and its dotted path.
pub fn each_value(table: &TableSchema, see: &mut impl FnMut(&str, &ValueSchema)) {
    each_table(table, &mut |path, table| {
        for key in &table.keys {
            values(&key.shape, &join(path, key.name), see);
        }
    });
}

fn walk(table: &TableSchema, path: &str, see: &mut impl FnMut(&str, &TableSchema)) {
    see(path, table);
    for key in &table.keys {
        below(&key.shape, &join(path, key.name), see);
    }
    for shape in table.names.iter().flat_map(|names| &names.shapes) {
        below(shape, &join(path, "NAME"), see);
    }
}

fn below(shape: &ValueSchema, path: &str, see: &mut impl FnMut(&str, &TableSchema)) {
    match shape {
        ValueSchema::Table(table) => walk(table, path, see),
        ValueSchema::List { item, .. } => below(item, path, see),
        ValueSchema::Either(all) => all.iter().for_each(|shape| below(shape, path, see)),
        _ => {}
    }
}

fn values(shape: &ValueSchema, path: &str, see: &mut impl FnMut(&str, &ValueSchema)) {
    match shape {
        ValueSchema::Table(_) => {}
        ValueSchema::List { item, .. } => values(item, path, see),
        ValueSchema::Either(all) => all.iter().for_each(|shape| values(shape, path, see)),
        shape => see(path, shape),
    }
}

fn join(path: &str, name: &str) -> String {
    format!("{path}.{name}").trim_matches('.').to_owned()
}
