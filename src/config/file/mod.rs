//! gateway.toml as written: a struct a section, plain data, each value with its place. Keys that
//! were left out hold their default, at the place of their section. No behaviour.

mod client_ip;
mod listener;
mod observe;
mod response;
mod route;
mod rule;
mod server;
mod store;
mod upstream;

use super::Text;
pub use client_ip::{ClientIp, Geo, Override};
pub use listener::{Certificate, ClientAuth, Listener, Protocol, Tls, TlsVersion};
pub use observe::{Access, Admin, Level, Log, LogFormat};
pub use response::{Header, Response};
pub use route::{HeaderEdits, PathForm, Respond, Route, Target};
pub use rule::{Candidate, Cost, CountHeaders, Missing, Rule};
pub use server::{Limits, Server};
pub use store::{Item, Items, List, Store, StoreKind};
pub use upstream::{
    Address, Balance, CircuitBreaker, Health, Member, OriginProtocol, OriginTls, Upstream,
};

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

/// What an included file may hold.
#[derive(Clone, Debug)]
pub struct More {
    /// `[lists]`.
    pub lists: Vec<List>,
    /// `[[upstreams]]`.
    pub upstreams: Vec<Upstream>,
    /// `[[routes]]`.
    pub routes: Vec<Route>,
    /// `[[rules]]`.
    pub rules: Vec<Rule>,
    /// `[responses]`.
    pub responses: Vec<Response>,
}

// === impl File ===

impl File {
    /// The same with the sections of an included file at the end.
    pub fn with(mut self, more: More) -> Self {
        self.lists.extend(more.lists);
        self.upstreams.extend(more.upstreams);
        self.routes.extend(more.routes);
        self.rules.extend(more.rules);
        self.responses.extend(more.responses);
        self
    }
}
