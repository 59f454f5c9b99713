//! The line that a gateway logs once it serves: where to open it, and what it uses.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use tracing::info;

use crate::config::file::ConfigFile;
use crate::observe::LogHandle;
use crate::snapshot::{ListenerConfig, Snapshot};

/// The lines are those of the command, for filters in `LOCKGATE_LOG`.
const TARGET: &str = "lockgate::cli";

/// What a gateway serves after its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupSummary {
    /// The URL that a browser on this machine can open.
    url: String,
    /// The addresses of the listeners.
    addresses: Vec<SocketAddr>,
    /// The address of the admin port. `None` without an admin port.
    admin: Option<SocketAddr>,
    rules: usize,
    /// Where the counters are: `memory` or `redis`.
    store: &'static str,
    /// The number of warnings about the configuration.
    warnings: usize,
}

// === impl StartupSummary ===

impl StartupSummary {
    /// Creates the summary of `snapshot`. `host` is that of [`host_of`].
    pub(super) fn new(
        snapshot: &Snapshot,
        host: Option<&str>,
        addresses: Vec<SocketAddr>,
        admin: Option<SocketAddr>,
        warnings: usize,
    ) -> Self {
        let is_shared = snapshot.settings.startup.shared_store.is_some();
        Self {
            url: url(&snapshot.listeners, &addresses, host),
            addresses,
            admin,
            rules: snapshot.rules.len(),
            store: if is_shared { "redis" } else { "memory" },
            warnings,
        }
    }

    /// Logs the summary: a sentence on a terminal, otherwise one line for each address and one with all fields.
    pub fn log(&self, log: &LogHandle) {
        if log.is_for_people() {
            info!(target: TARGET, "{}", self.sentence());
            return;
        }
        for address in &self.addresses {
            info!(target: TARGET, %address, "listening");
        }
        if let Some(address) = &self.admin {
            info!(target: TARGET, %address, "admin port");
        }
        info!(
            target: TARGET,
            url = self.url,
            listeners = self.listeners(),
            admin = self.admin.map(|address| address.to_string()),
            rules = self.rules,
            store = self.store,
            warnings = self.warnings,
            "serving"
        );
    }

    fn sentence(&self) -> String {
        let mut text = format!("serving {} (listening on {})", self.url, self.listeners());
        if let Some(admin) = self.admin {
            let _ = write!(
                text,
                ", dashboard http://{}/",
                authority(admin, None, "http")
            );
        }
        let _ = write!(
            text,
            ", {}, counters in {}",
            count(self.rules, "rule"),
            self.store
        );
        if self.warnings > 0 {
            let warnings = count(self.warnings, "warning");
            let _ = write!(text, ", {warnings} above; `lockgate check` explains them");
        }
        text
    }

    fn listeners(&self) -> String {
        let addresses: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        addresses.join(" ")
    }
}

/// Returns the host that a URL needs: the first one of the routes without a wildcard. `None` if a route serves any host.
pub(super) fn host_of(file: &ConfigFile) -> Option<String> {
    let mut routes = file.routes.iter();
    if routes.any(|route| route.hosts.is_empty()) {
        return None;
    }
    let mut hosts = file.routes.iter().flat_map(|route| &route.hosts);
    let host = hosts.find(|host| !host.value.contains('*'))?;
    let name = host.value.split(':').next().unwrap_or_default();
    Some(name.to_owned())
}

/// Returns the URL of the first listener that browsers can use, preferably with TLS.
fn url(
    listeners: &[std::sync::Arc<ListenerConfig>],
    addresses: &[SocketAddr],
    host: Option<&str>,
) -> String {
    let open = || {
        let all = listeners.iter().zip(addresses);
        all.filter(|(listener, _)| !listener.settings.proxy_protocol)
    };
    let with_tls = open().find(|(listener, _)| listener.settings.tls.is_some());
    let first = with_tls.or_else(|| open().next());
    let first = first.or_else(|| listeners.iter().zip(addresses).next());
    let Some((listener, address)) = first else {
        return String::new();
    };
    let scheme = if listener.settings.tls.is_some() {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{}/", authority(*address, host, scheme))
}

/// Returns host and port. An address that a browser cannot open or that is loopback becomes `localhost`.
fn authority(address: SocketAddr, host: Option<&str>, scheme: &str) -> String {
    let ip = address.ip();
    let host = match (host, ip) {
        (Some(host), _) => host.to_owned(),
        (None, ip) if ip.is_unspecified() || ip.is_loopback() => "localhost".to_owned(),
        (None, IpAddr::V4(ip)) => ip.to_string(),
        (None, IpAddr::V6(ip)) => format!("[{ip}]"),
    };
    match (scheme, address.port()) {
        ("https", 443) | ("http", 80) => host,
        (_, port) => format!("{host}:{port}"),
    }
}

fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigSource, Diagnostics, read};

    #[test]
    fn a_url_has_the_host_that_a_browser_can_use() {
        for (address, host, scheme, expected) in [
            ("0.0.0.0:8443", None, "https", "localhost:8443"),
            ("[::]:443", None, "https", "localhost"),
            ("127.0.0.2:80", None, "http", "localhost"),
            ("203.0.113.7:80", None, "https", "203.0.113.7:80"),
            ("[2001:db8::1]:81", None, "http", "[2001:db8::1]:81"),
            ("0.0.0.0:443", Some("example.com"), "https", "example.com"),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(authority(address, host, scheme), expected);
        }
    }

    #[test]
    fn a_route_for_any_host_needs_no_host() {
        for (routes, expected) in [
            (
                "[[routes]]\nhosts = [\"*.a.test\", \"b.test:81\"]\n",
                Some("b.test"),
            ),
            ("[[routes]]\nhosts = [\"*.a.test\"]\n", None),
            ("[[routes]]\nhosts = [\"a.test\"]\n[[routes]]\n", None),
        ] {
            let source = ConfigSource::new("gateway.toml", routes);
            let file = read(&source, &mut Diagnostics::new()).unwrap();
            assert_eq!(host_of(&file).as_deref(), expected, "{routes}");
        }
    }

    #[test]
    fn a_terminal_gets_a_sentence() {
        let summary = StartupSummary {
            url: "https://localhost:8443/".to_owned(),
            addresses: vec!["0.0.0.0:8443".parse().unwrap(), "[::1]:80".parse().unwrap()],
            admin: Some("127.0.0.1:9901".parse().unwrap()),
            rules: 1,
            store: "memory",
            warnings: 2,
        };
        assert_eq!(
            summary.sentence(),
            "serving https://localhost:8443/ (listening on 0.0.0.0:8443 [::1]:80), dashboard \
             http://localhost:9901/, 1 rule, counters in memory, 2 warnings above; `lockgate check` \
             explains them"
        );
    }
}
