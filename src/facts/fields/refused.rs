//! Names that are known but cannot be used here, with the nearest thing that works.

/// A name, or with a dot or underscore at its end all names that begin so; who could fill it; the nearest thing.
type Row = (&'static str, Filler, &'static str);

#[derive(Clone, Copy)]
enum Filler {
    /// Only Cloudflare's network knows it.
    Cloudflare,
    /// It is in the body, which the gateway passes on unread.
    Body,
    /// No database that the gateway reads holds it.
    Database,
    /// It is about packets, which the gateway never sees.
    Packets,
    /// It can be had, but in another way.
    Otherwise,
}

use Filler::{Body, Cloudflare, Database, Otherwise, Packets};

/// The first row that fits counts.
#[rustfmt::skip] // a row a line
const ROWS: &[Row] = &[
    ("cf.bot_management.score", Cloudflare, "`tls.ja4` in a key, or a list of agents with `http.user_agent`"),
    ("cf.bot_management.verified_bot", Cloudflare, "`ip.src.asnum in {…}` of the bots that you trust"),
    ("cf.bot_management.", Cloudflare, "`tls.ja3` and `tls.ja4`"),
    ("cf.verified_bot_category", Cloudflare, "`ip.src.asnum in {…}` of the bots that you trust"),
    ("cf.client.bot", Cloudflare, "`ip.src.asnum in {…}` of the bots that you trust"),
    ("cf.threat_score", Cloudflare, "a list of addresses with `ip.src in $list`"),
    ("cf.waf.", Cloudflare, "`matches` on `http.request.uri` for what you want to stop"),
    ("cf.llm.", Cloudflare, "a rule on `http.request.uri.path`"),
    ("cf.api_gateway.", Cloudflare, "`http.request.route`"),
    ("cf.edge.client_tcp", Cloudflare, "`ssl`"),
    ("cf.edge.server_", Cloudflare, "`tls.sni` and `http.host`"),
    ("cf.edge.", Cloudflare, "`ip.peer`"),
    ("cf.colo.", Cloudflare, "nothing: a gateway is one place; leave it out"),
    ("cf.metal.id", Cloudflare, "nothing: leave it out"),
    ("cf.ray_id", Cloudflare, "`http.request.id`"),
    ("cf.zone.", Cloudflare, "`http.host`"),
    ("cf.hostname.metadata", Cloudflare, "`http.host`"),
    ("cf.random_seed", Cloudflare, "`http.request.id`"),
    ("cf.response.", Cloudflare, "`upstream.error`"),
    ("cf.timings.", Cloudflare, "`http.response.duration_ms`"),
    ("cf.tls_client_auth.", Cloudflare, "`tls.sni` and `tls.ja4`"),
    ("cf.tls_client_", Cloudflare, "`tls.ja3_raw` and `tls.ja4`"),
    ("cf.tls_ciphers_sha1", Cloudflare, "`tls.ja4`"),
    ("cf.worker.", Cloudflare, "`http.request.headers[\"…\"]`"),
    ("cf.", Cloudflare, "the fields that `lockgate fields` lists"),
    ("http.request.accepted_languages", Otherwise, "`http.request.headers[\"accept-language\"][0]`"),
    ("http.request.jwt.claims", Otherwise, "`jwt_claim(http.request.headers[\"authorization\"][0], \"sub\")`"),
    ("http.request.jwt.claims.", Otherwise, "`jwt_claim(http.request.headers[\"authorization\"][0], \"sub\")`"),
    ("http.request.headers.truncated", Otherwise, "nothing: a request with too many headers is refused"),
    ("http.response.1xxx_code", Cloudflare, "`upstream.error`"),
    ("raw.http.request.uri.args", Otherwise, "`http.request.uri.args` or `raw.http.request.uri.query`"),
    ("raw.http.request.uri.args.", Otherwise, "`http.request.uri.args` or `raw.http.request.uri.query`"),
    ("raw.http.request.method", Otherwise, "`http.request.method`"),
    ("raw.http.request.version", Otherwise, "`http.request.version`"),
    ("raw.http.request.cookies", Otherwise, "`http.request.cookies`"),
    ("icmp", Packets, "`ip.src`"),
    ("icmp.", Packets, "`ip.src`"),
    ("tcp", Packets, "`ip.peer`"),
    ("tcp.", Packets, "`ip.peer`"),
    ("udp", Packets, "`ip.peer`"),
    ("udp.", Packets, "`ip.peer`"),
    ("sip", Packets, "`ip.peer`"),
    ("ip.dst", Packets, "`http.host`"),
    ("ip.dst.", Packets, "`http.host`"),
    ("ip.hdr_len", Packets, "`ip.src`"),
    ("ip.len", Packets, "`http.request.body.size`"),
    ("ip.opt.", Packets, "`ip.src`"),
    ("ip.proto", Packets, "`ip.src`"),
    ("ip.proto.", Packets, "`ip.src`"),
    ("ip.ttl", Packets, "`ip.src`"),
    ("http.request.body.raw", Body, "`http.request.body.size`"),
    ("http.request.body.form", Body, "`http.request.body.size`"),
    ("http.request.body.form.", Body, "`http.request.body.size`"),
    ("http.request.body.multipart", Body, "`http.request.body.size`"),
    ("http.request.body.multipart.", Body, "`http.request.body.size`"),
    ("http.request.body.mime", Body, "`http.request.body.size`"),
    ("http.request.body.truncated", Body, "`http.request.body.size`"),
    ("ip.src.is_in_european_union", Database, "`ip.src.country in {…}`"),
    ("ip.src.city", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.src.lat", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.src.lon", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.src.metro_code", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.src.postal_code", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.src.region", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.src.region_code", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.src.subdivision_", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.src.timezone.", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.geoip.is_in_european_union", Database, "`ip.src.country in {…}`"),
    ("ip.geoip.city", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.geoip.lat", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.geoip.lon", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.geoip.metro_code", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.geoip.postal_code", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.geoip.region", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.geoip.region_code", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.geoip.subdivision_", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
    ("ip.geoip.timezone.", Database, "`ip.src.country`, `ip.src.continent` and `ip.src.asnum`"),
];

/// The rows, for the tests of the table.
#[cfg(test)]
pub fn rows() -> impl Iterator<Item = (&'static str, bool, &'static str)> {
    let rows = ROWS.iter();
    rows.map(|(name, filler, nearest)| (*name, matches!(filler, Cloudflare), *nearest))
}

/// Why `name` cannot be used; `None`: nothing is known about it.
pub fn why(name: &str) -> Option<String> {
    let (_, filler, nearest) = ROWS.iter().find(|(row, ..)| fits(row, name))?;
    Some(match filler {
        Cloudflare => format!("only Cloudflare can fill `{name}`; nearest: {nearest}"),
        Body => format!("`{name}` is in the body, which is passed on unread; nearest: {nearest}"),
        Database => format!("no database here holds `{name}`; nearest: {nearest}"),
        Packets => format!("`{name}` is about packets, and rules see requests; nearest: {nearest}"),
        Otherwise => format!("`{name}` does not exist here; nearest: {nearest}"),
    })
}

fn fits(row: &str, name: &str) -> bool {
    let family = row.ends_with(['.', '_']);
    name == row || (family && name.len() > row.len() && name.starts_with(row))
}
