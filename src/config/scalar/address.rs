//! Addresses: of the gateway, of origins, of networks.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use toml::de::DeValue;

use super::{Parsed, Scalar, Wrong, string};
use crate::config::schema::{NETWORK, SOCKET, Shape, Value};

/// An address and a port.
pub(in crate::config) fn socket() -> Scalar<SocketAddr> {
    let examples = &["127.0.0.1:8443", "0.0.0.0:8443", "[::]:8443"];
    Scalar::new(Shape::like(SOCKET, examples), parse_socket)
}

fn parse_socket(value: &DeValue<'_>) -> Parsed<SocketAddr> {
    let written = string(value, "an address and a port")?;
    written.parse().map_err(|_| {
        Wrong::new(format!("`{written}` is not an address and a port"))
            .help("for example \"0.0.0.0:8443\" or \"[::]:8443\"")
    })
}

/// The address of an origin.
pub(in crate::config) fn server() -> Scalar<SocketAddr> {
    let shape = Shape::like(SOCKET, &["127.0.0.1:9000"]);
    Scalar::new(shape, |value| {
        let help = "for example \"127.0.0.1:9000\"";
        if value.is_table() {
            return Err(Wrong::later("a server with weight or backup").help(help));
        }
        let written = string(value, "an address and a port")?;
        if written.starts_with("unix:") {
            return Err(Wrong::later("a `unix:` socket").help(help));
        }
        parse_socket(value).map_err(|wrong| match host_and_port(written) {
            true => Wrong::later("a server given by its host name").help(help),
            false => wrong.help(help),
        })
    })
}

fn host_and_port(written: &str) -> bool {
    let host_char = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let numeric = |host: &str| host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    written.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && host.bytes().all(host_char)
            && !numeric(host)
            && port.parse::<u16>().is_ok()
    })
}

/// A network; a bare address is a network of one.
pub(in crate::config) fn network() -> Scalar<IpNet> {
    let examples = &["192.0.2.0/24", "2001:db8::/48"];
    Scalar::new(Shape::like(NETWORK, examples), |value| {
        parse_network(string(value, "a network")?)
    })
    .shown(|network| Value::Text(network.to_string()))
}

/// A network as text, also where it stands as a key. Bits past the prefix are dropped.
pub(in crate::config) fn parse_network(written: &str) -> Parsed<IpNet> {
    let net = written.parse::<IpNet>().map(|net| net.trunc());
    net.or_else(|_| written.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| {
            Wrong::new(format!("`{written}` is not a network"))
                .help("for example \"192.0.2.0/24\", \"2001:db8::/48\" or a single address")
        })
}
