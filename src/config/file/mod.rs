//! gateway.toml as written: a file a section, with its types and its reader. Each value keeps its
//! span; a setting that was left out holds its default, at the span of its section. A reader reports
//! what is wrong in its section and continues, so that one run finds every mistake.

mod client_ip;
mod listener;
mod observe;
mod response;
mod route;
mod rule;
mod rule_checks;
mod server;
mod store;
mod upstream;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use toml::de::DeTable;

use super::scalar::{self, check_name, filled};
use super::schema::Table;
use super::section::Section;
use super::source::Part;
use super::{Diagnostics, Source, Spanned, Text, check, lint, syntax};
pub use client_ip::{ClientIp, Geo};
pub use listener::{Certificate, Listener, Tls};
pub use observe::{Access, Admin, Log};
pub use response::{Header, Response};
pub use route::{Route, Target};
pub use rule::{Candidate, Cost, Rule};
pub(super) use rule_checks::check_numbers;
pub use server::{Limits, Server};
pub use store::{Item, Items, List, Store, StoreKind};
pub use upstream::{Member, OriginTls, Upstream};

/// A whole file, with what it includes.
#[derive(Clone, Debug)]
pub struct File {
    /// `include`: the files, whose sections stand after those of this one.
    pub include: Vec<Text>,
    /// `[server]`.
    pub server: Server,
    /// `[[listeners]]`, at least one in a file without errors.
    pub listeners: Vec<Listener>,
    /// `[limits]`.
    pub limits: Limits,
    /// `[client_ip]`.
    pub client_ip: ClientIp,
    /// `[geo]`.
    pub geo: Geo,
    /// `[admin]`; `None`: no admin port.
    pub admin: Option<Admin>,
    /// `[log]`.
    pub log: Log,
    /// `[store]`.
    pub store: Store,
    /// `[lists]`, in file order.
    pub lists: Vec<List>,
    /// `[[upstreams]]`.
    pub upstreams: Vec<Upstream>,
    /// `[[routes]]`, in file order: the first match wins.
    pub routes: Vec<Route>,
    /// `[[rules]]`, in file order.
    pub rules: Vec<Rule>,
    /// `[responses]`, in file order.
    pub responses: Vec<Response>,
}

/// Stands for an address that was refused, so that what belongs to it is still looked at. Nothing
/// else can be there: port 0 is a new port each time.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Reads a file and those that it includes. There is something to go on with, also when there were
/// errors: [`Diagnostics::has_errors`] decides whether it may be used.
pub fn read(source: &Source, diagnostics: &mut Diagnostics) -> Option<File> {
    let mut parts = source.parts();
    let mut whole = read_part(&parts.next()?, diagnostics, file);
    for included in parts {
        read_part(&included, diagnostics, |root| include(&mut whole, root));
    }
    check::file(&whole, diagnostics);
    Some(whole)
}

/// Reads one file of a source. Of one with syntax errors, what the parser could read.
fn read_part<T>(
    part: &Part<'_>,
    diagnostics: &mut Diagnostics,
    read: impl FnOnce(&mut Section<'_, '_>) -> T,
) -> T {
    let text = syntax::readable(part, diagnostics);
    let (root, _) = DeTable::parse_recoverable(&text);
    lint::read_comments(root.get_ref(), part, diagnostics);
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

/// Adds the sections of an included file at the end of a file's own.
fn include(whole: &mut File, root: &mut Section<'_, '_>) {
    let why = "cannot stand in an included file";
    let main_only = [
        "server",
        "listeners",
        "limits",
        "client_ip",
        "geo",
        "admin",
        "log",
        "store",
    ];
    let help = "put it into the configuration file itself";
    root.refuse(&main_only, why, help);
    let help = "name all files in the configuration file itself";
    root.refuse(&["include"], why, help);
    let lists = root.table("lists", store::lists).unwrap_or_default();
    whole.lists.extend(lists);
    whole
        .upstreams
        .extend(root.tables("upstreams", upstream::upstream));
    whole.routes.extend(root.tables("routes", route::route));
    whole.rules.extend(root.tables("rules", rule::rule));
    let responses = root.table("responses", response::responses);
    whole.responses.extend(responses.unwrap_or_default());
}

/// The `name` of a section. A wrong one is kept, so that references to it are not errors too.
fn name(section: &mut Section<'_, '_>, example: &'static str) -> Text {
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
