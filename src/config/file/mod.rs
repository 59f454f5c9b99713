//! gateway.toml as written: one file per section, with its types and its reader. Each value keeps
//! its span; an absent setting has its default value and the span of its section. A reader reports
//! the errors of its section and continues, so that one run finds every error.

mod challenge;
mod client_ip;
mod expressions;
mod headers;
mod health;
mod known_clients;
mod listener;
mod observe;
mod protect;
mod protect_rules;
mod response;
mod route;
mod rule;
mod rule_checks;
mod server;
mod store;
mod upstream;
mod written_rule;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;

use toml::de::DeTable;

use super::presets::{KnownSource, Preset};
use super::scalar::{self, check_name, filled};
use super::schema::TableSchema;
use super::section::SectionReader;
use super::source::SourceFile;
use super::{
    ConfigSource, Diagnostics, ExprText, Spanned, Text, check, environment, expressions as named,
    lint, presets, syntax,
};
pub use challenge::ChallengeSettings;
pub use client_ip::{ClientIpSettings, GeoSettings};
pub use expressions::NamedExpression;
pub use headers::HeaderEditSettings;
pub use known_clients::KnownClientSettings;
pub use listener::{CertificateSettings, ListenerSection, TlsSettings};
pub use observe::{AccessLogSettings, AdminSettings, LogSettings};
pub use protect::{PresetKind, PresetPosition, PresetUser, ProtectSettings, UserSource};
pub use protect_rules::RuleOverride;
pub use response::{HeaderSetting, ResponseSettings};
pub use route::{ErrorPageSettings, RouteSettings, RouteTargetSettings};
pub use rule::{CandidateSettings, CostSettings, RuleSettings};
pub(super) use rule_checks::check_numbers;
pub use server::{LimitSettings, ServerSettings};
pub use store::{ListItem, ListItems, ListSettings, RedisTableSettings, StoreKind, StoreSettings};
pub use upstream::{OriginTls, UpstreamServerSettings, UpstreamSettings};
pub use written_rule::WrittenSetting;

/// A whole file, including the files that it includes.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// `include`: the included files. Their sections follow the sections of this file.
    pub include: Vec<Text>,
    /// `[server]`.
    pub server: ServerSettings,
    /// `[[listeners]]`, at least one in a file without errors.
    pub listeners: Vec<ListenerSection>,
    /// `[limits]`.
    pub limits: LimitSettings,
    /// `[client_ip]`.
    pub client_ip: ClientIpSettings,
    /// `[geo]`.
    pub geo: GeoSettings,
    /// `[admin]`. `None` for no admin port.
    pub admin: Option<AdminSettings>,
    /// `[log]`.
    pub log: LogSettings,
    /// `[store]`.
    pub store: StoreSettings,
    /// `[lists]`, in file order.
    pub lists: Vec<ListSettings>,
    /// `[expressions]`, in file order: each can use those before it.
    pub expressions: Vec<NamedExpression>,
    /// `[known_clients]`. `None` if no client can become known.
    pub known_clients: Option<KnownClientSettings>,
    /// `[challenge]`. `None` if no rule may challenge.
    pub challenge: Option<ChallengeSettings>,
    /// `[[protect]]`, in file order.
    pub protect: Vec<ProtectSettings>,
    /// What the presets expand to, in the order of their rules.
    pub presets: Vec<Preset>,
    /// `[[upstreams]]`.
    pub upstreams: Vec<UpstreamSettings>,
    /// `[[routes]]`, in file order: the first match wins.
    pub routes: Vec<RouteSettings>,
    /// `[[rules]]`, in file order.
    pub rules: Vec<RuleSettings>,
    /// `[responses]`, in file order.
    pub responses: Vec<ResponseSettings>,
    /// `[errors]`: the responses to errors of the gateway, for all routes.
    pub errors: Vec<ErrorPageSettings>,
}

// === impl ConfigFile ===

impl ConfigFile {
    /// Returns the preset that a rule belongs to. `None` for a rule of `[[rules]]`.
    pub fn preset_of(&self, rule: &RuleSettings) -> Option<&ProtectSettings> {
        let (preset, _) = rule.name.value.split_once('/')?;
        self.protect.iter().find(|one| one.name.value == preset)
    }

    /// Returns the entries of `[[rules]]`.
    pub fn written_rules(&self) -> impl Iterator<Item = &RuleSettings> {
        let rules = self.rules.iter();
        rules.filter(|rule| self.preset_of(rule).is_none())
    }

    /// Returns what makes clients known according to presets, in file order.
    pub fn known_sources(&self) -> impl Iterator<Item = &KnownSource> {
        let mut presets: Vec<&Preset> = self.presets.iter().collect();
        presets.sort_by_key(|preset| preset.index);
        presets
            .into_iter()
            .filter_map(|preset| preset.source.as_ref())
    }

    /// Returns the error pages of all routes and of `[errors]`.
    pub fn error_pages(&self) -> impl Iterator<Item = &ErrorPageSettings> {
        let of_routes = self.routes.iter().flat_map(|route| &route.errors);
        of_routes.chain(&self.errors)
    }

    /// Returns whether a table with this span is implied by a preset.
    pub fn is_implied(&self, span: &Range<usize>) -> bool {
        self.protect.iter().any(|preset| preset.span == *span)
    }

    /// Calls `visit` with every expression except the definitions of named expressions.
    pub(super) fn each_expression(&mut self, visit: &mut impl FnMut(&mut ExprText)) {
        let keys = self.upstreams.iter_mut().map(|one| &mut one.hash_key);
        keys.flatten().for_each(&mut *visit);
        if let Some(known) = &mut self.known_clients {
            known.success.iter_mut().for_each(&mut *visit);
            known.user.iter_mut().for_each(&mut *visit);
        }
        for field in &mut self.log.fields {
            visit(&mut field.text);
        }
        for protect in &mut self.protect {
            protect.each_expression(visit);
        }
        for rule in &mut self.rules {
            rule.count.iter_mut().for_each(&mut *visit);
            rule.mitigate.iter_mut().for_each(&mut *visit);
            rule.total.iter_mut().for_each(&mut *visit);
            rule.key.iter_mut().for_each(&mut *visit);
            if let CostSettings::Expression(text) = &mut rule.cost.value {
                visit(text);
            }
        }
    }
}

/// Replaces a refused address, so that the rest of its section is still checked. It conflicts with
/// no other address, because port 0 is a new port each time.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Reads a file and its included files. Returns a value even after errors:
/// [`Diagnostics::has_errors`] decides whether it is usable.
pub fn read(source: &ConfigSource, diagnostics: &mut Diagnostics) -> Option<ConfigFile> {
    let mut parts = source.parts();
    let mut whole = read_part(&parts.next()?, diagnostics, file);
    for included in parts {
        read_part(&included, diagnostics, |root| include(&mut whole, root));
    }
    named::inline(&mut whole, source, diagnostics);
    whole.presets = presets::expand(&whole, diagnostics);
    presets::apply(&mut whole, diagnostics);
    check::file(&whole, diagnostics);
    Some(whole)
}

/// Reads one file of a source. If it has syntax errors, reads the rest of it.
fn read_part<T>(
    part: &SourceFile<'_>,
    diagnostics: &mut Diagnostics,
    read: impl FnOnce(&mut SectionReader<'_, '_>) -> T,
) -> T {
    let text = syntax::readable(part, diagnostics);
    let (mut root, _) = DeTable::parse_recoverable(&text);
    environment::fill(root.get_mut(), part, diagnostics);
    lint::read_comments(root.get_ref(), part, diagnostics);
    let mut section = SectionReader::root(root.get_ref(), part.start, diagnostics);
    let value = read(&mut section);
    section.finish();
    value
}

/// Describes the settings of a file.
pub(super) fn describe() -> TableSchema {
    SectionReader::describe(file)
}

fn file(root: &mut SectionReader<'_, '_>) -> ConfigFile {
    ConfigFile {
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
        expressions: root
            .table("expressions", expressions::expressions)
            .unwrap_or_default(),
        known_clients: root.table("known_clients", known_clients::known_clients),
        challenge: root.table("challenge", challenge::challenge),
        protect: root.tables("protect", protect::protect),
        presets: Vec::new(),
        upstreams: root.tables("upstreams", upstream::upstream),
        routes: root.tables("routes", route::route),
        rules: root.tables("rules", rule::rule),
        responses: root
            .table("responses", response::responses)
            .unwrap_or_default(),
        errors: root.table("errors", route::error_pages).unwrap_or_default(),
    }
}

/// Appends the sections of an included file to `whole`.
fn include(whole: &mut ConfigFile, root: &mut SectionReader<'_, '_>) {
    let why = "is not allowed in an included file";
    let main_only = [
        "server",
        "listeners",
        "limits",
        "client_ip",
        "geo",
        "admin",
        "log",
        "store",
        "known_clients",
        "challenge",
        "errors",
    ];
    let help = "move it to the main configuration file";
    root.refuse(&main_only, why, help);
    let help = "list all files in the main configuration file";
    root.refuse(&["include"], why, help);
    let lists = root.table("lists", store::lists).unwrap_or_default();
    whole.lists.extend(lists);
    let expressions = root.table("expressions", expressions::expressions);
    whole.expressions.extend(expressions.unwrap_or_default());
    whole
        .upstreams
        .extend(root.tables("upstreams", upstream::upstream));
    whole.routes.extend(root.tables("routes", route::route));
    whole
        .protect
        .extend(root.tables("protect", protect::protect));
    whole.rules.extend(root.tables("rules", rule::rule));
    let responses = root.table("responses", response::responses);
    whole.responses.extend(responses.unwrap_or_default());
}

/// Reads the `name` of a section. Keeps an invalid name, so that references to it cause no errors.
fn name(section: &mut SectionReader<'_, '_>, example: &'static str) -> Text {
    let span = section.span();
    let Some(name) = section.required("name", scalar::name(), example) else {
        return Spanned::new(String::new(), span);
    };
    checked_name(section, name)
}

/// Reads the optional `name` of a section.
fn optional_name(section: &mut SectionReader<'_, '_>) -> Option<Text> {
    let name = section.optional("name", scalar::name())?;
    Some(checked_name(section, name))
}

/// Checks a name that is a table key chosen by the user.
fn checked_name(section: &mut SectionReader<'_, '_>, name: Text) -> Text {
    if let Err(wrong) = check_name(&name.value) {
        section.wrong(name.span.clone(), wrong);
    }
    name
}
