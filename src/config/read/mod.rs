//! From TOML text to [`File`]: a function a section. Each reports what is wrong in its section and
//! goes on, so that one run finds every mistake.

use toml::de::DeTable;

use super::file::File;
use super::scalar::{self, check_name};
use super::schema::Table;
use super::section::Section;
use super::{Diagnostics, Source, Spanned, Text, check};

mod client_ip;
mod header;
mod listener;
mod observe;
mod response;
mod route;
mod rule;
mod server;
mod store;
mod upstream;

/// Reads a file. `None` if it is not TOML; else there is something to go on with, also when there
/// were errors: [`Diagnostics::has_errors`] decides whether it may be used.
pub fn read(source: &Source, diagnostics: &mut Diagnostics) -> Option<File> {
    let (root, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        syntax(source, &errors, diagnostics);
        return None;
    }
    let mut section = Section::new(root.get_ref(), 0..0, diagnostics);
    let file = file(&mut section);
    section.finish();
    check::file(&file, diagnostics);
    Some(file)
}

/// What a file may hold.
pub(super) fn describe() -> Table {
    Section::describe(file)
}

/// Errors of the TOML parser. It recovers and goes on; what it says later about the same line is
/// mostly an echo.
fn syntax(source: &Source, errors: &[toml::de::Error], diagnostics: &mut Diagnostics) {
    let mut last_line = 0;
    for error in errors {
        let span = error.span().unwrap_or_default();
        let line = source.position(span.start).line;
        if line == last_line {
            continue;
        }
        last_line = line;
        let written = source.slice(span.clone());
        match error.message() {
            "duplicate key" => diagnostics.error(span, format!("`{written}` is given twice")),
            message if is_bare_word(message, written) => diagnostics
                .error(span, format!("`{written}` needs quotes"))
                .help(format!("write \"{written}\"")),
            message => diagnostics.error(span, message),
        };
    }
}

/// The parser takes `info` for a broken `inf` and `text` for a broken `true`.
fn is_bare_word(message: &str, written: &str) -> bool {
    let about_value = ["invalid float", "invalid boolean", "string values must be"];
    about_value.iter().any(|start| message.starts_with(start))
        && written.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn file(root: &mut Section<'_, '_>) -> File {
    root.later(&["include"]);
    File {
        server: root.table_or_defaults("server", server::server),
        listeners: listener::listeners(root),
        limits: root.table_or_defaults("limits", server::limits),
        client_ip: root.table_or_defaults("client_ip", client_ip::client_ip),
        geo: root.table_or_defaults("geo", client_ip::geo),
        admin: root.table("admin", observe::admin).flatten(),
        log: root.table_or_defaults("log", observe::log),
        store: root.table_or_defaults("store", store::store),
        lists: root.table("lists", store::lists).unwrap_or_default(),
        upstreams: root.tables("upstreams", upstream::upstream),
        routes: root.tables("routes", route::route),
        rules: root.tables("rules", rule::rule),
        responses: root
            .table("responses", response::responses)
            .unwrap_or_default(),
    }
}

/// The `name` of a section. A wrong one is kept, so that who refers to it is not blamed too.
fn name(section: &mut Section<'_, '_>, example: &str) -> Text {
    let span = section.span();
    let Some(name) = section.required("name", scalar::name(), example) else {
        return Spanned::new(String::new(), span);
    };
    checked_name(section, name)
}

/// A name that is a key of the user's own.
fn checked_name(section: &mut Section<'_, '_>, name: Text) -> Text {
    if let Err(wrong) = check_name(&name.value) {
        section.wrong(name.span.clone(), wrong);
    }
    name
}
