//! `[client_ip]` and `[geo]`: who a client is and where it comes from.

use std::path::PathBuf;

use http::HeaderName;
use ipnet::IpNet;

use crate::config::Spanned;

/// `[client_ip]`.
#[derive(Clone, Debug)]
pub struct ClientIp {
    /// Peers whose forwarding header is believed. Default none.
    pub trusted_proxies: Vec<Spanned<IpNet>>,
    /// That header. Default `x-forwarded-for`.
    pub header: Spanned<HeaderName>,
    /// Bits of an IPv4 address that make a counter key, 0 to 32. Default 32.
    pub ipv4_prefix: Spanned<u8>,
    /// Bits of an IPv6 address that make a counter key, 0 to 128. Default 64.
    pub ipv6_prefix: Spanned<u8>,
}

/// `[geo]`.
#[derive(Clone, Debug)]
pub struct Geo {
    /// A database of autonomous systems, of either format.
    pub asn_database: Option<Spanned<PathBuf>>,
    /// A database of countries, of either format; maybe the same file.
    pub country_database: Option<Spanned<PathBuf>>,
    /// What wins over the databases, each network once.
    pub overrides: Vec<Override>,
}

/// One line of `[geo.overrides]`.
#[derive(Clone, Debug)]
pub struct Override {
    /// The network it is about.
    pub network: Spanned<IpNet>,
    /// Its autonomous system.
    pub asn: Option<Spanned<u32>>,
    /// Its country, two capital letters or `T1`.
    pub country: Option<Spanned<String>>,
    /// Its continent, two capital letters.
    pub continent: Option<Spanned<String>>,
}
