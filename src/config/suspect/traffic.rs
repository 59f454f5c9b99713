//! Who is believed about where a client is.

use ipnet::IpNet;

use super::Warnings;
use crate::config::file::File;

/// Networks wider than this hold strangers.
const WIDEST: u8 = 8;

/// Warns of trusted proxies that are everybody, or nobody where only they may connect.
pub(super) fn warn(file: &File, warnings: &mut Warnings<'_>) {
    warn_of_nobody(file, warnings);
    let trusted = file.client_ip.trusted_proxies.iter();
    for network in trusted.filter(|network| holds_strangers(&network.value)) {
        let message = format!(
            "everybody in {} is believed about who the client is",
            network.value
        );
        warnings
            .at(network.span.clone(), message)
            .help("name the addresses of your proxies only");
    }
}

fn warn_of_nobody(file: &File, warnings: &mut Warnings<'_>) {
    if !file.client_ip.trusted_proxies.is_empty() {
        return;
    }
    let listeners = file.listeners.iter();
    for listener in listeners.filter(|listener| listener.proxy_protocol.value) {
        let message = "nobody can connect: a PROXY header is taken from trusted proxies alone";
        warnings
            .at(listener.proxy_protocol.span.clone(), message)
            .help("name your proxies in `client_ip.trusted_proxies`");
    }
}

/// `fc00::/7` is wide, but nobody's on the Internet (RFC 4193).
fn holds_strangers(network: &IpNet) -> bool {
    let private = match network {
        IpNet::V4(_) => false,
        IpNet::V6(v6) => v6.network().is_unique_local() && v6.broadcast().is_unique_local(),
    };
    network.prefix_len() < WIDEST && !private
}
