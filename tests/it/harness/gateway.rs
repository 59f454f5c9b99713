//! A gateway in this process, on a clock that a test sets.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use lockgate::clock::{Clock, ManualClock, Timestamp};
use lockgate::gateway::{Gateway, InheritedSockets, RejectedConfig, ReloadTrigger};
use lockgate::observe::LogHandle;

use super::{Client, Folder, Origin};

/// What every test's configuration begins with. `{origin}` is the origin's address.
const BEGINNING: &str = r#"
[server]
workers = 2
drain_timeout = "5s"
[log]
access = "off"
[client_ip]
trusted_proxies = ["127.0.0.1/32"]
[[listeners]]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[listeners.tls]
[[upstreams]]
name = "origin"
servers = ["{origin}"]
[[routes]]
upstream = "origin"
"#;

/// A running gateway with its origin.
pub struct Running {
    /// The origin behind it.
    pub origin: Origin,
    /// Its clock: it stands still until a test moves it.
    pub clock: ManualClock,
    /// Where its configuration is.
    pub folder: Folder,
    gateway: Option<Gateway>,
}

impl Running {
    /// A gateway with the usual listeners and route, and `rules` added.
    pub fn with(rules: &str) -> Self {
        Self::on(&format!("{BEGINNING}\n{rules}"))
    }

    /// The same with an access log.
    pub fn with_access_log(log: &Path, rules: &str) -> Self {
        let beginning = BEGINNING.replace("\"off\"", &format!("{log:?}"));
        Self::on(&format!("{beginning}\n{rules}"))
    }

    /// The same before this origin.
    pub fn with_origin(origin: Origin, rules: &str) -> Self {
        Self::before(origin, &format!("{BEGINNING}\n{rules}"))
    }

    /// A gateway on a whole configuration.
    pub fn on(config: &str) -> Self {
        Self::before(Origin::start(), config)
    }

    /// A gateway on a whole configuration, before this origin.
    pub fn before(origin: Origin, config: &str) -> Self {
        let folder = Folder::new();
        let path = folder.write("gateway.toml", fill(config, &origin));
        let clock = ManualClock::at(Timestamp::from_secs(1_700_000_040));
        let started = Gateway::start(
            &path,
            Clock::Manual(clock.clone()),
            LogHandle::off(),
            InheritedSockets::default(),
        );
        let gateway = started.unwrap_or_else(|error| panic!("{error:#}"));
        Self {
            origin,
            clock,
            folder,
            gateway: Some(gateway),
        }
    }

    /// A client that speaks plain HTTP/1.1.
    pub fn client(&self) -> Client {
        Client::plain(self.address(0))
    }

    /// A client that speaks HTTP/1.1 over TLS.
    pub fn tls_client(&self) -> Client {
        Client::tls(self.address(1))
    }

    /// The address of a listener.
    pub fn address(&self, listener: usize) -> SocketAddr {
        self.gateway().addresses()[listener]
    }

    /// The gateway itself.
    pub fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }

    /// Puts other rules in place of those it began with, and reloads.
    pub fn reload(&self, rules: &str) -> Result<(), RejectedConfig> {
        self.reload_whole(&format!("{BEGINNING}\n{rules}"))
    }

    /// Puts another whole configuration in place of the one it began with, and reloads.
    pub fn reload_whole(&self, config: &str) -> Result<(), RejectedConfig> {
        let config = fill(config, &self.origin);
        self.folder.write("gateway.toml", config);
        let reloader = self.gateway().reloader();
        reloader.reload(ReloadTrigger::Signal).map(drop)
    }

    /// Moves the clock forward.
    pub fn wait(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    /// The metrics as text.
    pub fn metrics(&self) -> String {
        self.gateway().live().scrape()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop();
        }
    }
}

fn fill(config: &str, origin: &Origin) -> String {
    config.replace("{origin}", &origin.address.to_string())
}
