//! Written values that a field never has: `"de"` for a country, `"login"` for a path.

use super::{Said, Warnings};
use crate::config::scalar::host_bits;
use crate::expr::{GivenValue, Leaf, Relation, Scheme};
use crate::facts::fields::{self, Fields};
use crate::facts::path;

/// Why a field never has this value, and what it may be instead.
type Fault = (&'static str, Option<String>);

/// What a field's values look like.
enum Domain {
    Text(fn(&str) -> Option<Fault>),
    Int(i64, i64),
}

/// Fields that are one header: empty on Cloudflare where there is none, missing here.
const HEADERS: [&str; 4] = [
    "http.cookie",
    "http.referer",
    "http.user_agent",
    "http.x_forwarded_for",
];

/// Warns of comparisons with values that never come.
pub(super) fn warn(said: &Said<'_>, warnings: &mut Warnings<'_>) {
    for leaf in said.outline.leaves() {
        networks(leaf, said, warnings);
        let Some(field) = leaf.subject.plain_each().and_then(canonical) else {
            continue;
        };
        match domain(field) {
            Some(Domain::Text(fault)) => texts(field, leaf, fault, said, warnings),
            Some(Domain::Int(low, high)) => ints(field, leaf, (low, high), said, warnings),
            None if HEADERS.contains(&field) => empty(field, leaf, said, warnings),
            None => {}
        }
    }
}

/// Networks that are written as one of their hosts.
fn networks(leaf: &Leaf, said: &Said<'_>, warnings: &mut Warnings<'_>) {
    for given in &leaf.values {
        let written = said.text.value.get(given.span.clone());
        let network = written.and_then(|text| text.trim().parse().ok());
        if let Some(wrong) = network.and_then(host_bits) {
            let warning = warnings.within(said.text, given.span.clone(), wrong.message);
            warning.help.extend(wrong.help);
        }
    }
}

fn texts(
    field: &str,
    leaf: &Leaf,
    fault: fn(&str) -> Option<Fault>,
    said: &Said<'_>,
    warnings: &mut Warnings<'_>,
) {
    let path = field == "http.request.uri.path";
    let fault = match leaf.relation {
        Relation::Eq | Relation::Ne | Relation::In => fault,
        Relation::StartsWith if path => beginning,
        Relation::Wildcard | Relation::StrictWildcard if path => pattern,
        Relation::Contains | Relation::EndsWith if path => piece,
        _ => return,
    };
    for given in &leaf.values {
        let GivenValue::Text(bytes) = &given.value else {
            continue;
        };
        let text = String::from_utf8_lossy(bytes);
        let Some((what, instead)) = fault(&text) else {
            continue;
        };
        let message = format!("`{field}` is never this: {what}");
        let warning = warnings.within(said.text, given.span.clone(), message);
        if let Some(instead) = instead {
            warning.help(format!("write `\"{instead}\"`"));
        }
    }
}

fn ints(
    field: &str,
    leaf: &Leaf,
    (low, high): (i64, i64),
    said: &Said<'_>,
    warnings: &mut Warnings<'_>,
) {
    if !matches!(leaf.relation, Relation::Eq | Relation::Ne | Relation::In) {
        return;
    }
    for given in &leaf.values {
        if let GivenValue::Ints(from, to) = given.value
            && (to < low || high < from)
        {
            let message = format!("`{field}` is never this: it is from {low} to {high}");
            warnings.within(said.text, given.span.clone(), message);
        }
    }
}

/// Who asks whether a header is empty most often means that there is none.
fn empty(field: &str, leaf: &Leaf, said: &Said<'_>, warnings: &mut Warnings<'_>) {
    if !matches!(leaf.relation, Relation::Eq | Relation::In) {
        return;
    }
    let is_empty = |value: &GivenValue| matches!(value, GivenValue::Text(text) if text.is_empty());
    for given in leaf.values.iter().filter(|given| is_empty(&given.value)) {
        let message = format!("`{field}` is missing, not empty, where the header was not sent");
        let warning = warnings.within(said.text, given.span.clone(), message);
        warning.help(format!("`not len({field}) gt 0` holds for both"));
    }
}

fn canonical(name: &str) -> Option<&'static str> {
    fields::by_id(Fields.field(name)?.id).map(|field| field.name)
}

fn domain(field: &str) -> Option<Domain> {
    Some(match field {
        "http.request.method" => Domain::Text(method),
        "http.request.version" => Domain::Text(version),
        "http.request.uri.path" => Domain::Text(whole_path),
        "http.request.uri" => Domain::Text(uri),
        "http.request.full_uri" => Domain::Text(full_uri),
        "http.request.uri.path.extension" => Domain::Text(extension),
        "http.request.headers.names" | "http.response.headers.names" => Domain::Text(header_name),
        "http.response.content_type.media_type" => Domain::Text(media_type),
        "http.host" | "tls.sni" => Domain::Text(host),
        "ip.src.country" => Domain::Text(country),
        "ip.src.continent" => Domain::Text(continent),
        "tls.version" => Domain::Text(tls_version),
        "tls.cipher" => Domain::Text(cipher),
        "tls.alpn" => Domain::Text(alpn),
        "tls.ja3" => Domain::Text(ja3),
        "tls.ja4" => Domain::Text(ja4),
        "http.response.code" => Domain::Int(100, 599),
        "ip.src.asnum" => Domain::Int(0, u32::MAX.into()),
        _ => return None,
    })
}

fn method(text: &str) -> Option<Fault> {
    let upper = text.to_ascii_uppercase();
    (text != upper).then_some(("methods are in capitals", Some(upper)))
}

fn version(text: &str) -> Option<Fault> {
    let known = ["HTTP/1.0", "HTTP/1.1", "HTTP/2"];
    let what = "it is `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`";
    let near = known.iter().find(|known| {
        let number = known.trim_start_matches("HTTP/");
        text.trim_start_matches("HTTP/").trim_end_matches(".0") == number.trim_end_matches(".0")
    });
    (!known.contains(&text)).then(|| (what, near.map(ToString::to_string)))
}

fn whole_path(text: &str) -> Option<Fault> {
    if let Some((path, _)) = text.split_once('?') {
        return Some(("the query is not part of it", Some(path.to_owned())));
    }
    if text == "*" {
        return None;
    }
    if !text.starts_with('/') {
        return Some(("a path starts with `/`", Some(format!("/{text}"))));
    }
    match path::normalise(text) {
        Ok(normal) if normal == text => None,
        Ok(normal) => Some((
            "paths are compared in normal form",
            Some(normal.into_owned()),
        )),
        Err(_) => Some(("such a path is refused with 400", None)),
    }
}

/// The start of a path: what follows may make `/a/.` a `/a/.b`.
fn beginning(text: &str) -> Option<Fault> {
    if text.contains('?') {
        return whole_path(text);
    }
    if !text.is_empty() && !text.starts_with('/') {
        return Some(("a path starts with `/`", Some(format!("/{text}"))));
    }
    let what = "paths are compared in normal form";
    if text.contains("//") || text.contains("/./") || text.contains("/../") {
        return Some((what, None));
    }
    // An escape that is cut off may go on in the path.
    let normal = path::normalise(text).ok().filter(|_| text.contains('%'))?;
    (normal != text).then(|| (what, Some(normal.into_owned())))
}

/// A wildcard for paths.
fn pattern(text: &str) -> Option<Fault> {
    match text.starts_with(['/', '*', '\\']) || text.is_empty() {
        true => piece(text),
        false => Some(("a path starts with `/`", Some(format!("/{text}")))),
    }
}

/// A part of a path.
fn piece(text: &str) -> Option<Fault> {
    let what = "the query is not part of it; `http.request.uri` has both";
    text.contains('?').then_some((what, None))
}

fn uri(text: &str) -> Option<Fault> {
    let path = text.split('?').next().unwrap_or_default();
    whole_path(path).map(|(what, _)| (what, None))
}

fn full_uri(text: &str) -> Option<Fault> {
    let known = text.starts_with("https://") || text.starts_with("http://");
    (!known).then_some(("it starts with `https://` or `http://`", None))
}

fn extension(text: &str) -> Option<Fault> {
    let last = text.rsplit('.').next().unwrap_or_default();
    let clean = last.to_ascii_lowercase();
    (text != clean).then_some(("it has no dot and is in lower case", Some(clean)))
}

fn header_name(text: &str) -> Option<Fault> {
    let lower = text.to_ascii_lowercase();
    (text != lower).then_some(("header names are in lower case", Some(lower)))
}

fn media_type(text: &str) -> Option<Fault> {
    let bare = text.split(';').next().unwrap_or_default().trim();
    let clean = bare.to_ascii_lowercase();
    (text != clean).then_some(("it is in lower case, without parameters", Some(clean)))
}

fn host(text: &str) -> Option<Fault> {
    if text.contains('*') {
        return Some(("`*` is a pattern only after `wildcard`", None));
    }
    let bare = text.split("://").last().unwrap_or(text);
    let bare = bare.split('/').next().unwrap_or(bare);
    let port = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let bare = match bare.rsplit_once(':') {
        Some((name, rest)) if port(rest) && !name.ends_with(':') => name,
        _ => bare,
    };
    let clean = bare.trim_end_matches('.').to_ascii_lowercase();
    let what = "a host is in lower case, without scheme, port and last dot";
    (text != clean).then_some((what, Some(clean)))
}

fn country(text: &str) -> Option<Fault> {
    let upper = text.to_ascii_uppercase();
    let two = text.len() == 2 && text.bytes().all(|b| b.is_ascii_alphanumeric());
    let what = "a country is two capital letters (ISO 3166-1)";
    (text != upper || !two).then(|| (what, Some(upper).filter(|_| two)))
}

fn continent(text: &str) -> Option<Fault> {
    let known = ["AF", "AN", "AS", "EU", "NA", "OC", "SA"];
    let upper = text.to_ascii_uppercase();
    let near = known.contains(&&*upper).then_some(upper);
    let what = "a continent is AF, AN, AS, EU, NA, OC or SA";
    (!known.contains(&text)).then_some((what, near))
}

fn tls_version(text: &str) -> Option<Fault> {
    let known = ["TLSv1.2", "TLSv1.3"];
    let near = known
        .iter()
        .find(|known| text.ends_with(known.trim_start_matches("TLSv")));
    let what = "it is `TLSv1.2` or `TLSv1.3`";
    (!known.contains(&text)).then(|| (what, near.map(ToString::to_string)))
}

/// Cloudflare has the names of OpenSSL.
fn cipher(text: &str) -> Option<Fault> {
    let what = "ciphers have the names of IANA, as `TLS_AES_128_GCM_SHA256`";
    (!text.starts_with("TLS")).then_some((what, None))
}

fn alpn(text: &str) -> Option<Fault> {
    (!["h2", "http/1.1"].contains(&text)).then_some(("it is `h2` or `http/1.1`", None))
}

fn ja3(text: &str) -> Option<Fault> {
    let lower = text.to_ascii_lowercase();
    let hash = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let what = "a JA3 is 32 hexadecimal digits in lower case";
    (text != lower || !hash).then(|| (what, Some(lower).filter(|_| hash)))
}

fn ja4(text: &str) -> Option<Fault> {
    let parts: Vec<&str> = text.split('_').collect();
    let hash = |part: &str| part.len() == 12 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let shaped = match parts.as_slice() {
        [a, b, c] => a.len() == 10 && a.starts_with('t') && hash(b) && hash(c),
        _ => false,
    };
    let what = "a JA4 over TCP looks like `t13d1516h2_8daaf6152771_02713d6af862`";
    (!shaped).then_some((what, None))
}
