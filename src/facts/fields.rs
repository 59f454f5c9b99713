//! THE field table: name, aliases, phase, getter and doc line of every field, a row each.
//!
//! The parser, `lockgate fields`, the docs and `explain` all read it. A new field is a new row.

use std::borrow::Cow;
use std::net::IpAddr;

use super::View;
use super::get::{self, Source};
use crate::expr::{FieldId, FieldSpec, Phase, Scheme, Type};

mod foreign;
mod price;
mod refused;

pub use price::price;

/// A row of the table.
pub struct Field {
    /// The name in expressions.
    pub name: &'static str,
    /// Other names for the same field.
    pub aliases: &'static [&'static str],
    /// When it can be read.
    pub phase: Phase,
    /// What it is, in one line.
    pub doc: &'static str,
    pub(super) getter: Getter,
}

/// How a field is read, and so its type.
#[derive(Clone, Copy)]
pub(super) enum Getter {
    /// A string.
    Bytes(for<'a, 'r> fn(View<'a, 'r>) -> Option<Cow<'a, [u8]>>),
    /// An integer.
    Int(for<'a, 'r> fn(View<'a, 'r>) -> Option<i64>),
    /// An address.
    Ip(for<'a, 'r> fn(View<'a, 'r>) -> Option<IpAddr>),
    /// A boolean.
    Bool(for<'a, 'r> fn(View<'a, 'r>) -> Option<bool>),
    /// Names and their values.
    Map(Source),
    /// The names of a map.
    Names(Source),
    /// The values of a map.
    Values(Source),
}

/// The fields that expressions may name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields;

/// Every field, in the order of its number.
pub fn all() -> &'static [Field] {
    TABLE
}

/// The field with this number.
pub fn by_id(id: FieldId) -> Option<&'static Field> {
    TABLE.get(usize::from(id.0))
}

/// How the field with this number is read.
pub(super) fn getter(id: FieldId) -> Option<Getter> {
    by_id(id).map(|field| field.getter)
}

// === impl Field ===

impl Field {
    /// Its type.
    pub fn ty(&self) -> Type {
        match self.getter {
            Getter::Bytes(_) => Type::Bytes,
            Getter::Int(_) => Type::Int,
            Getter::Ip(_) => Type::Ip,
            Getter::Bool(_) => Type::Bool,
            Getter::Map(_) => Type::Map,
            Getter::Names(_) | Getter::Values(_) => Type::Array,
        }
    }

    /// Whether names under it ignore case.
    pub fn names_ignore_case(&self) -> bool {
        matches!(
            self.getter,
            Getter::Map(Source::Headers | Source::ResponseHeaders)
        )
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn after_response(mut self) -> Self {
        self.phase = Phase::Response;
        self
    }
}

// === impl Fields ===

impl Scheme for Fields {
    fn field(&self, name: &str) -> Option<FieldSpec> {
        let at = TABLE.iter().position(|field| field.is_called(name))?;
        let field = TABLE.get(at)?;
        Some(FieldSpec {
            id: FieldId(u16::try_from(at).ok()?),
            ty: field.ty(),
            phase: field.phase,
            names_ignore_case: field.names_ignore_case(),
        })
    }

    fn names(&self) -> Vec<&'static str> {
        let names = |field: &'static Field| {
            [field.name]
                .into_iter()
                .chain(field.aliases.iter().copied())
        };
        TABLE.iter().flat_map(names).collect()
    }

    fn refusal(&self, name: &str) -> Option<String> {
        let meant = || foreign::meant(name);
        let unknown = |meant| format!("unknown field `{name}`; did you mean `{meant}`?");
        refused::why(name).or_else(|| meant().map(unknown))
    }

    fn price(&self, field: FieldId) -> usize {
        price(field).map_or(0, |(cost, _)| cost)
    }
}

const fn row(name: &'static str, getter: Getter, doc: &'static str) -> Field {
    Field {
        name,
        aliases: &[],
        phase: Phase::Request,
        doc,
        getter,
    }
}

use Getter::{Bool, Bytes, Int, Ip, Map, Names, Values};

#[rustfmt::skip] // a row a line
static TABLE: &[Field] = &[
    // The request.
    row("http.request.method", Bytes(get::method), "the method, `GET`"),
    row("http.request.version", Bytes(get::version), "`HTTP/1.0`, `HTTP/1.1` or `HTTP/2`"),
    row("http.request.full_uri", Bytes(get::full_uri), "scheme, host, port unless it is the default one, path in normal form and query"),
    row("http.request.uri", Bytes(get::uri), "the path in normal form and the query"),
    row("http.request.uri.path", Bytes(get::path), "the path in normal form"),
    row("http.request.uri.path.extension", Bytes(get::extension), "the extension of the last segment, in lower case and without the dot; empty where there is none"),
    row("http.request.uri.query", Bytes(get::query), "the query as sent, without `?`; empty where there is none"),
    row("http.request.uri.args", Map(Source::Arguments), "query arguments, names and values decoded"),
    row("http.request.uri.args.names", Names(Source::Arguments), "names of the query arguments"),
    row("http.request.uri.args.values", Values(Source::Arguments), "values of the query arguments"),
    row("http.request.headers", Map(Source::Headers), "header fields; names ignore case").also(&["raw.http.request.headers"]),
    row("http.request.headers.names", Names(Source::Headers), "names of the header fields, in lower case").also(&["raw.http.request.headers.names"]),
    row("http.request.headers.values", Values(Source::Headers), "values of the header fields").also(&["raw.http.request.headers.values"]),
    row("http.request.cookies", Map(Source::Cookies), "cookies; values are decoded"),
    row("http.host", Bytes(get::host), "the host in lower case, without trailing dot and port"),
    row("http.referer", Bytes(get::referer), "the `Referer` header"),
    row("http.user_agent", Bytes(get::user_agent), "the `User-Agent` header"),
    row("http.cookie", Bytes(get::cookie), "the whole `Cookie` header"),
    row("http.x_forwarded_for", Bytes(get::x_forwarded_for), "the whole `X-Forwarded-For` header as sent; a client can write anything into it"),
    row("http.request.timestamp.sec", Int(get::timestamp), "when the request came, in seconds since 1970"),
    row("http.request.timestamp.msec", Int(get::timestamp_msec), "the milliseconds of that second, 0 to 999"),
    row("http.request.body.size", Int(get::body_size), "the declared size of the body in bytes; missing where none is declared"),
    row("raw.http.request.full_uri", Bytes(get::raw_full_uri), "scheme, host, port unless it is the default one, path and query as sent"),
    row("raw.http.request.uri", Bytes(get::raw_uri), "the path and the query as sent"),
    row("raw.http.request.uri.path", Bytes(get::raw_path), "the path as sent"),
    row("raw.http.request.uri.path.extension", Bytes(get::raw_extension), "the extension as sent"),
    row("raw.http.request.uri.query", Bytes(get::query), "the query as sent"),
    row("http.request.route", Bytes(get::route), "the template of the route that matched"),
    row("http.request.id", Bytes(get::id), "the gateway's identifier of the request"),
    // The client.
    row("ip.src", Ip(get::client), "the client's address"),
    row("ip.src.asnum", Int(get::asn), "the number of the client's autonomous system").also(&["ip.geoip.asnum"]),
    row("ip.src.country", Bytes(get::country), "the client's country, `DE`").also(&["ip.geoip.country"]),
    row("ip.src.continent", Bytes(get::continent), "the client's continent, `EU`").also(&["ip.geoip.continent"]),
    row("ip.peer", Ip(get::peer), "the TCP peer: the client or the last proxy"),
    // TLS.
    row("ssl", Bool(get::ssl), "came over TLS"),
    row("tls.version", Bytes(get::tls_version), "`TLSv1.2` or `TLSv1.3`").also(&["cf.tls_version"]),
    row("tls.cipher", Bytes(get::tls_cipher), "the IANA name of the cipher suite").also(&["cf.tls_cipher"]),
    row("tls.sni", Bytes(get::sni), "the server name that the client asked for"),
    row("tls.alpn", Bytes(get::alpn), "the agreed protocol, `h2` or `http/1.1`"),
    row("tls.ja3", Bytes(get::ja3), "the JA3 fingerprint of the client, 32 hexadecimal digits").also(&["cf.bot_management.ja3_hash"]),
    row("tls.ja3_raw", Bytes(get::ja3_raw), "the string that the JA3 fingerprint is a hash of"),
    row("tls.ja4", Bytes(get::ja4), "the JA4 fingerprint of the client; the better key, as browsers shuffle what JA3 reads").also(&["cf.bot_management.ja4"]),
    row("tls.client_hello_length", Int(get::hello_length), "bytes of the ClientHello").also(&["cf.tls_client_hello_length"]),
    // The response.
    row("http.response.code", Int(get::status), "the status").after_response(),
    row("http.response.headers", Map(Source::ResponseHeaders), "header fields of the response; names ignore case").also(&["raw.http.response.headers"]).after_response(),
    row("http.response.headers.names", Names(Source::ResponseHeaders), "names of the response's header fields, in lower case").also(&["raw.http.response.headers.names"]).after_response(),
    row("http.response.headers.values", Values(Source::ResponseHeaders), "values of the response's header fields").also(&["raw.http.response.headers.values"]).after_response(),
    row("http.response.content_type.media_type", Bytes(get::media_type), "the media type in lower case, without parameters").after_response(),
    row("http.response.duration_ms", Int(get::duration), "milliseconds from the end of the request, once nothing held it, to the head of the response").after_response(),
    row("http.response.body.size", Int(get::response_size), "bytes of the response's body, where known").after_response(),
    row("upstream.name", Bytes(get::upstream), "the upstream that answered or failed").after_response(),
    row("upstream.error", Bytes(get::upstream_error), "how the upstream failed; missing where it did not").after_response(),
];

#[cfg(test)]
mod tests;
