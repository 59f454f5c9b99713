//! Suggestions for names that are not fields here: the names that other gateways use (nginx's
//! variables with and without `$`, HAProxy's fetches and other likely guesses), and known fields
//! that are not available here, each with the nearest alternative.

use super::all;
use crate::expr::ValueType;

/// The foreign name, and the field.
#[rustfmt::skip] // a field a line
const ROWS: &[(&str, &str)] = &[
    ("remote_addr binary_remote_addr realip_remote_addr http_x_real_ip proxy_protocol_addr client_ip clientip client.ip remote_ip remoteip source_ip src_ip srcip src ip ip_address client req.ip request.ip request.remote_ip ip.addr ip.client ip.source", "ip.src"),
    ("http_user_agent user_agent useragent ua http.request.user_agent request.user_agent req.user_agent", "http.user_agent"),
    ("http_referer referer referrer http.referrer", "http.referer"),
    ("http_cookie", "http.cookie"),
    ("http_x_forwarded_for proxy_add_x_forwarded_for x_forwarded_for xff", "http.x_forwarded_for"),
    ("http_host host server_name hostname domain request.host req.host http.request.host http.server_name", "http.host"),
    ("uri document_uri path request.path req.path request_path http.path http.request.path url.path pathname", "http.request.uri.path"),
    ("request_uri url request.uri req.url http.request.url http.uri", "http.request.uri"),
    ("args query_string query querystring request.query http.query http.request.query", "http.request.uri.query"),
    ("request_method method request.method req.method http.method verb", "http.request.method"),
    ("server_protocol http_version request.version", "http.request.version"),
    ("content_length http_content_length body_size", "http.request.body.size"),
    ("status status_code response_code upstream_status response.status response.code http.status http.status_code http.response.status http.response.status_code", "http.response.code"),
    ("request_time upstream_response_time response_time", "http.response.duration_ms"),
    ("ssl_protocol tls_version", "tls.version"),
    ("ssl_cipher", "tls.cipher"),
    ("ssl_server_name ssl_fc_sni ssl_preread_server_name sni", "tls.sni"),
    ("ssl_client_verify ssl_c_verify ssl_client_verified", "tls.client.verified"),
    ("ssl_client_s_dn ssl_c_s_dn ssl_client_subject", "tls.client.subject"),
    ("ssl_client_serial ssl_c_serial", "tls.client.serial"),
    ("ssl_client_fingerprint ssl_c_sha1 ssl_c_der", "tls.client.fingerprint"),
    ("ssl_fc https is_https tls", "ssl"),
    ("ja3 ja3_hash", "tls.ja3"),
    ("ja4 ja4_hash", "tls.ja4"),
    ("geoip_country_code geoip2_data_country_code country country_code ip.country geo.country geoip.country geoip_country", "ip.src.country"),
    ("asn geoip_asn as_number ip.asn geo.asn ip.src.asn", "ip.src.asnum"),
    ("continent", "ip.src.continent"),
    ("request_id unique_id", "http.request.id"),
    ("route location", "http.request.route"),
];

/// Prefixes of nginx's variables, and the map in which the rest of the name is an entry.
const BEGINNINGS: &[(&str, &str)] = &[
    ("upstream_http_", "http.response.headers"),
    ("sent_http_", "http.response.headers"),
    ("http_", "http.request.headers"),
    ("cookie_", "http.request.cookies"),
    ("arg_", "http.request.uri.args"),
];

/// Kinds of key parts in other gateways, such as `header:x`, and what comes before and after the name.
#[rustfmt::skip] // a kind a line
const KINDS: &[(&str, &str, &str)] = &[
    ("header headers hdr http_header req.hdr request_header request.header", "http.request.headers[\"", "\"]"),
    ("cookie cookies req.cook", "http.request.cookies[\"", "\"]"),
    ("arg args query param params query_param url_param urlp", "http.request.uri.args[\"", "\"]"),
    ("form body post post_param field", "http.request.body.form[\"", "\"]"),
    ("json", "lookup_json_string(http.request.body.raw, \"", "\")"),
    ("jwt claim token jwt_claim", "jwt_claim(http.request.headers[\"authorization\"][0], \"", "\")"),
];

/// The text to write instead of a key part such as `header:x`.
fn suggest_of_kind(part: &str) -> Option<String> {
    let (kind, name) = part.split_once(':')?;
    let (kind, name) = (kind.trim().to_ascii_lowercase(), name.trim());
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let kinds = KINDS
        .iter()
        .filter(|_| !name.is_empty() && name.chars().all(is_word));
    let mut found = kinds.filter(|(words, ..)| words.split(' ').any(|word| word == kind));
    found
        .next()
        .map(|(_, before, after)| format!("{before}{name}{after}"))
}

/// The reason why a part of the raw body, such as `http.request.body.raw["user"]`, does not exist.
fn why_no_part_of_body(name: &str) -> Option<String> {
    let part = name.strip_prefix("http.request.body.raw")?;
    let part = part.strip_prefix(['[', '.'])?;
    let part = part.trim_matches(['"', ']', '[', '*']);
    let part = if part.is_empty() { "name" } else { part };
    Some(format!(
        "`http.request.body.raw` is the start of the body as one string; write \
         `http.request.body.form[\"{part}\"]` for a form, or \
         `lookup_json_string(http.request.body.raw, \"{part}\")` for JSON"
    ))
}

/// The text to write instead of `name`. `None` if nothing is known about it.
pub(super) fn suggest_field(name: &str) -> Option<String> {
    if let Some(suggested) = suggest_of_kind(name) {
        return Some(suggested);
    }
    let bare = name.strip_prefix('$').unwrap_or(name).to_ascii_lowercase();
    let row = ROWS
        .iter()
        .find(|(words, _)| words.split(' ').any(|word| word == bare));
    if let Some((_, field)) = row {
        return Some((*field).to_owned());
    }
    // The names of a map's entries are written in brackets.
    let entry = |map: &str| bare.strip_prefix(map)?.strip_prefix('.');
    let mut maps = all().iter().filter(|field| field.ty() == ValueType::Map);
    if let Some((map, entry)) = maps.find_map(|map| Some((map.name, entry(map.name)?))) {
        return Some(format!("{map}[\"{entry}\"][0]"));
    }
    let begins = |row: &&(&str, &str)| bare.starts_with(row.0) && !bare.contains('.');
    let (beginning, map) = BEGINNINGS.iter().find(begins)?;
    let entry = bare
        .strip_prefix(beginning)
        .filter(|rest| !rest.is_empty())?;
    let entry = if map.ends_with("headers") {
        entry.replace('_', "-")
    } else {
        entry.to_owned()
    };
    Some(format!("{map}[\"{entry}\"][0]"))
}

/// A name (with a dot or underscore at its end: all names with this prefix; with `.*` at its end:
/// the name and all names below it), the reason, and the nearest alternative.
type Row = (&'static str, Filler, &'static str);

#[derive(Clone, Copy)]
enum Filler {
    /// Only Cloudflare's network has the value.
    Cloudflare,
    /// The value is in a part of a multipart body, which the gateway does not parse.
    Multipart,
    /// No database that the gateway reads has the value.
    Database,
    /// The value is a property of packets, which the gateway never sees.
    Packets,
    /// The value is available by another means.
    Otherwise,
}

use Filler::{Cloudflare, Database, Multipart, Otherwise, Packets};

/// The first matching row applies.
#[rustfmt::skip] // a row a line
const REFUSED: &[Row] = &[
    ("cf.bot_management.score", Cloudflare, "`tls.ja4` in a key, or a list of agents with `http.user_agent`"),
    ("cf.bot_management.verified_bot", Cloudflare, "`ip.src.asnum in {…}` of the bots that you trust"),
    ("cf.bot_management.", Cloudflare, "`tls.ja3` and `tls.ja4`"),
    ("cf.verified_bot_category", Cloudflare, "`ip.src.asnum in {…}` of the bots that you trust"),
    ("cf.client.bot", Cloudflare, "`ip.src.asnum in {…}` of the bots that you trust"),
    ("cf.threat_score", Cloudflare, "a list of addresses with `ip.src in $list`"),
    ("cf.waf.", Cloudflare, "`matches` on `http.request.uri` for the requests to stop"),
    ("cf.llm.", Cloudflare, "a rule on `http.request.uri.path`"),
    ("cf.api_gateway.", Cloudflare, "`http.request.route`"),
    ("cf.edge.client_tcp", Cloudflare, "`ssl`"),
    ("cf.edge.server_", Cloudflare, "`tls.sni` and `http.host`"),
    ("cf.edge.", Cloudflare, "`ip.peer`"),
    ("cf.colo.", Cloudflare, "nothing; remove it: a gateway does not count per data center"),
    ("cf.metal.id", Cloudflare, "nothing; remove it"),
    ("cf.ray_id", Cloudflare, "`http.request.id`"),
    ("cf.zone.", Cloudflare, "`http.host`"),
    ("cf.hostname.metadata", Cloudflare, "`http.host`"),
    ("cf.random_seed", Cloudflare, "`http.request.id`"),
    ("cf.response.", Cloudflare, "`upstream.error`"),
    ("cf.timings.", Cloudflare, "`http.response.duration_ms`"),
    ("cf.tls_client_auth.", Cloudflare, "`tls.client.verified` and `tls.client.subject`"),
    ("cf.tls_client_", Cloudflare, "`tls.ja3_raw` and `tls.ja4`"),
    ("cf.tls_ciphers_sha1", Cloudflare, "`tls.ja4`"),
    ("cf.worker.", Cloudflare, "`http.request.headers[\"…\"]`"),
    ("cf.", Cloudflare, "the fields that `lockgate fields` lists"),
    ("http.request.accepted_languages", Otherwise, "`http.request.headers[\"accept-language\"][0]`"),
    ("http.request.jwt.claims.*", Otherwise, "`jwt_claim(http.request.headers[\"authorization\"][0], \"sub\")`"),
    ("http.request.headers.truncated", Otherwise, "nothing: a request with too many headers is refused"),
    ("http.response.1xxx_code", Cloudflare, "`upstream.error`"),
    ("raw.http.request.uri.args.*", Otherwise, "`http.request.uri.args` or `raw.http.request.uri.query`"),
    ("raw.http.request.method", Otherwise, "`http.request.method`"),
    ("raw.http.request.version", Otherwise, "`http.request.version`"),
    ("raw.http.request.cookies", Otherwise, "`http.request.cookies`"),
    ("icmp.*", Packets, "`ip.src`"),
    ("tcp.*", Packets, "`ip.peer`"),
    ("udp.*", Packets, "`ip.peer`"),
    ("sip", Packets, "`ip.peer`"),
    ("ip.dst.*", Packets, "`http.host`"),
    ("ip.hdr_len", Packets, "`ip.src`"),
    ("ip.len", Packets, "`http.request.body.size`"),
    ("ip.opt.", Packets, "`ip.src`"),
    ("ip.proto.*", Packets, "`ip.src`"),
    ("ip.ttl", Packets, "`ip.src`"),
    ("http.request.body.multipart.*", Multipart, "`http.request.body.form` for an urlencoded form"),
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
];

/// The nearest alternatives, for the tests of the table.
#[cfg(test)]
pub(super) fn nearest() -> impl Iterator<Item = &'static str> {
    REFUSED.iter().map(|(_, _, nearest)| *nearest)
}

/// The reason why `name` cannot be used. `None` if nothing is known about it.
pub(super) fn why_refused(name: &str) -> Option<String> {
    if let Some(reason) = why_no_part_of_body(name) {
        return Some(reason);
    }
    // An older spelling of Cloudflare's fields.
    let geo = name
        .strip_prefix("ip.geoip.")
        .map(|rest| format!("ip.src.{rest}"));
    let looked_up = geo.as_deref().unwrap_or(name);
    let (_, filler, nearest) = REFUSED.iter().find(|(row, ..)| fits(row, looked_up))?;
    Some(match filler {
        Cloudflare => format!("only Cloudflare provides `{name}`; nearest: {nearest}"),
        Multipart => {
            format!("the gateway does not parse multipart bodies for `{name}`; nearest: {nearest}")
        }
        Database => format!("no database of the gateway has `{name}`; nearest: {nearest}"),
        Packets => format!("`{name}` is about packets, but rules see requests; nearest: {nearest}"),
        Otherwise => format!("`{name}` does not exist in lockgate; nearest: {nearest}"),
    })
}

fn fits(row: &str, name: &str) -> bool {
    if let Some(stem) = row.strip_suffix(".*") {
        let rest = name.strip_prefix(stem);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && rest != ".");
    }
    let family = row.ends_with(['.', '_']);
    name == row || (family && name.len() > row.len() && name.starts_with(row))
}

#[cfg(test)]
mod tests {
    use super::super::FieldTable;
    use super::{BEGINNINGS, ROWS, suggest_field};
    use crate::expr::FieldScheme as _;

    #[test]
    fn suggested_fields_exist_and_foreign_names_do_not() {
        for (words, field) in ROWS {
            assert!(FieldTable.field(field).is_some(), "{field}");
            for word in words.split(' ') {
                assert!(FieldTable.field(word).is_none(), "{word} is a field");
                assert_eq!(
                    suggest_field(word).as_deref(),
                    Some(*field),
                    "{word} stands there twice"
                );
                assert_eq!(suggest_field(&format!("${word}")), suggest_field(word));
            }
        }
        for (_, map) in BEGINNINGS {
            assert!(FieldTable.field(map).is_some(), "{map}");
        }
    }

    #[test]
    fn the_suffix_of_a_variable_is_the_name_of_an_entry() {
        let header = "http.request.headers[\"x-api-key\"][0]";
        assert_eq!(suggest_field("$http_x_api_key").as_deref(), Some(header));
        let cookie = "http.request.cookies[\"session_id\"][0]";
        assert_eq!(suggest_field("cookie_session_id").as_deref(), Some(cookie));
        let host = "http.request.headers[\"host\"][0]";
        assert_eq!(
            suggest_field("http.request.headers.host").as_deref(),
            Some(host)
        );
        assert_eq!(suggest_field("arg_"), None);
        assert_eq!(suggest_field("flavour"), None);
    }
}
