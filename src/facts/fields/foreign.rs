//! What users of other gateways call our fields: nginx's variables with and without their `$`,
//! HAProxy's fetches, and what comes to mind.

/// What is written, and the field.
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
    ("ssl_fc https is_https tls", "ssl"),
    ("ja3 ja3_hash", "tls.ja3"),
    ("ja4 ja4_hash", "tls.ja4"),
    ("geoip_country_code geoip2_data_country_code country country_code ip.country geo.country geoip.country geoip_country", "ip.src.country"),
    ("asn geoip_asn as_number ip.asn geo.asn ip.src.asn", "ip.src.asnum"),
    ("continent", "ip.src.continent"),
    ("request_id unique_id", "http.request.id"),
    ("route location", "http.request.route"),
];

/// Beginnings of nginx's variables, and what the rest of the name is the name of.
const BEGINNINGS: &[(&str, &str)] = &[
    ("upstream_http_", "http.response.headers"),
    ("sent_http_", "http.response.headers"),
    ("http_", "http.request.headers"),
    ("cookie_", "http.request.cookies"),
    ("arg_", "http.request.uri.args"),
];

/// Fields with entries, whose names stand in brackets.
const MAPS: [&str; 4] = [
    "http.request.headers",
    "http.request.cookies",
    "http.request.uri.args",
    "http.response.headers",
];

/// What to write instead of `name`.
pub(super) fn meant(name: &str) -> Option<String> {
    let bare = name.strip_prefix('$').unwrap_or(name).to_ascii_lowercase();
    let row = ROWS
        .iter()
        .find(|(words, _)| words.split(' ').any(|word| word == bare));
    if let Some((_, field)) = row {
        return Some((*field).to_owned());
    }
    let entry = |map: &&str| bare.strip_prefix(map)?.strip_prefix('.');
    if let Some((map, entry)) = MAPS.iter().find_map(|map| Some((map, entry(map)?))) {
        return Some(format!("{map}[\"{entry}\"][0]"));
    }
    let begins = |row: &&(&str, &str)| bare.starts_with(row.0) && !bare.contains('.');
    let (beginning, map) = BEGINNINGS.iter().find(begins)?;
    let entry = bare
        .strip_prefix(beginning)
        .filter(|rest| !rest.is_empty())?;
    let entry = match map.ends_with("headers") {
        true => entry.replace('_', "-"),
        false => entry.to_owned(),
    };
    Some(format!("{map}[\"{entry}\"][0]"))
}

#[cfg(test)]
mod tests {
    use super::super::Fields;
    use super::{BEGINNINGS, ROWS, meant};
    use crate::expr::Scheme as _;

    #[test]
    fn what_is_meant_exists_and_what_is_written_does_not() {
        for (words, field) in ROWS {
            assert!(Fields.field(field).is_some(), "{field}");
            for word in words.split(' ') {
                assert!(Fields.field(word).is_none(), "{word} is a field");
                assert_eq!(
                    meant(word).as_deref(),
                    Some(*field),
                    "{word} stands there twice"
                );
                assert_eq!(meant(&format!("${word}")), meant(word));
            }
        }
        for (_, map) in BEGINNINGS {
            assert!(Fields.field(map).is_some(), "{map}");
        }
    }

    #[test]
    fn the_rest_of_a_variable_is_the_name_of_an_entry() {
        let header = "http.request.headers[\"x-api-key\"][0]";
        assert_eq!(meant("$http_x_api_key").as_deref(), Some(header));
        let cookie = "http.request.cookies[\"session_id\"][0]";
        assert_eq!(meant("cookie_session_id").as_deref(), Some(cookie));
        let host = "http.request.headers[\"host\"][0]";
        assert_eq!(meant("http.request.headers.host").as_deref(), Some(host));
        assert_eq!(meant("arg_"), None);
        assert_eq!(meant("flavour"), None);
    }
}
