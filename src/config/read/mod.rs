//! From TOML text to [`File`]: a function a section. Each reports what is wrong in its section and
//! goes on, so that one run finds every mistake.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use toml::de::DeTable;

use super::file::{File, More};
use super::scalar::{self, check_name, filled};
use super::schema::Table;
use super::section::Section;
use super::source::Part;
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
mod syntax;
mod upstream;

/// Stands for an address that was refused, so that what belongs to it is still looked at. Nothing
/// else can be there: port 0 is a new port each time.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Reads a file and those that it includes. There is something to go on with, also when there were
/// errors: [`Diagnostics::has_errors`] decides whether it may be used.
pub fn read(source: &Source, diagnostics: &mut Diagnostics) -> Option<File> {
    let mut parts = source.parts();
    let main = parts.next()?;
    let mut whole = part(source, &main, diagnostics, file);
    for included in parts {
        whole = whole.with(part(source, &included, diagnostics, more));
    }
    check::file(&whole, diagnostics);
    Some(whole)
}

/// Reads one file of a source. Of one that is no TOML, as much as the parser has understood.
fn part<T>(
    source: &Source,
    part: &Part<'_>,
    diagnostics: &mut Diagnostics,
    read: fn(&mut Section<'_, '_>) -> T,
) -> T {
    let text = syntax::mended(source, part, diagnostics);
    let (root, _) = DeTable::parse_recoverable(&text);
    let mut section = Section::root(root.get_ref(), part.start, diagnostics);
    let value = read(&mut section);
    section.finish();
    value
}

/// What a file may hold.
pub(super) fn describe() -> Table {
    Section::describe(file)
}

fn file(root: &mut Section<'_, '_>) -> File {
    File {
        include: root.array_or("include", filled(), []),
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

/// What stands only in the configuration file itself.
const MAIN_ONLY: &[&str] = &[
    "server",
    "listeners",
    "limits",
    "client_ip",
    "geo",
    "admin",
    "log",
    "store",
];

/// An included file.
fn more(root: &mut Section<'_, '_>) -> More {
    root.refuse(
        MAIN_ONLY,
        "cannot stand in an included file",
        "put it into the configuration file itself",
    );
    root.refuse(
        &["include"],
        "cannot stand in an included file",
        "name all files in the configuration file itself",
    );
    More {
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
fn name(section: &mut Section<'_, '_>, example: &'static str) -> Text {
    let span = section.span();
    if let Some(name) = section.header_name() {
        section.optional("name", scalar::name());
        return checked_name(section, name);
    }
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
