//! THE field table: every field of the rule language and all its properties.
//!
//! The parser, `lockgate fields`, the docs, `explain`, the rule index, the access log and the
//! lints read its columns; no other file lists fields by name (`tests/it/tidy.rs` checks this).
//! A new field is a new row, and a row without a value in each column does not compile.

use std::borrow::Cow;
use std::net::IpAddr;

use http::header::{COOKIE, REFERER};

use super::FactsView;
use super::body::request_media_type;
use super::getters::{
    self, absolute, certificate, extension_of, first, joined, known, lower, number, text, tls,
    version_name,
};
use super::maps::MapSource;
use crate::expr::{FieldId, FieldScheme, FieldSpec, Phase, ValueType};

mod columns;
mod foreign;
mod head_fields;

pub use columns::{
    ClientChoice, FieldPresence, FieldSecrecy, FieldSpread, LogFormat, ReadCost, ValueFormat,
};
pub use head_fields::HeadFields;

/// A row of the table.
pub struct FieldRow {
    /// The name in expressions.
    pub name: &'static str,
    /// Other names of the field.
    pub aliases: &'static [&'static str],
    /// The phase from which it can be read.
    pub phase: Phase,
    /// Whether its value follows from the request head, whatever the phase.
    pub is_known_from_head: bool,
    /// Whether requests have a value.
    pub presence: FieldPresence,
    /// The cost of reading it.
    pub read_cost: ReadCost,
    /// Whether logs and metrics must hide its values.
    pub secret: FieldSecrecy,
    /// How many clients share one value.
    pub spread: FieldSpread,
    /// Whether a client can change its value at will.
    pub chosen: ClientChoice,
    /// How the access log shows it.
    pub logged: LogFormat,
    /// What its values look like.
    pub format: ValueFormat,
    /// A one-line description.
    pub doc: &'static str,
    pub(super) getter: FieldGetter,
}

/// The function that reads a field. It determines the field's type.
#[derive(Clone, Copy)]
pub(super) enum FieldGetter {
    /// A string.
    Bytes(for<'a, 'r> fn(FactsView<'a, 'r>) -> Option<Cow<'a, [u8]>>),
    /// An integer.
    Int(for<'a, 'r> fn(FactsView<'a, 'r>) -> Option<i64>),
    /// An address.
    Ip(for<'a, 'r> fn(FactsView<'a, 'r>) -> Option<IpAddr>),
    /// A boolean.
    Bool(for<'a, 'r> fn(FactsView<'a, 'r>) -> Option<bool>),
    /// Strings.
    List(for<'a, 'r> fn(FactsView<'a, 'r>) -> &'a [Box<str>]),
    /// Names and their values.
    Map(MapSource),
    /// The names of a map.
    Names(MapSource),
    /// The values of a map.
    Values(MapSource),
}

/// The fields that expressions may name.
#[derive(Clone, Copy, Debug, Default)]
pub struct FieldTable;

/// The field for the method.
pub const METHOD: FieldId = number_of("http.request.method");
/// The field for the client's address.
pub const CLIENT_ADDRESS: FieldId = number_of("ip.src");
/// The field for the TCP peer's address.
pub const PEER_ADDRESS: FieldId = number_of("ip.peer");
/// The field for the method.
pub const REQUEST_METHOD: FieldId = number_of("http.request.method");
/// The field for the path in normal form.
pub const REQUEST_PATH: FieldId = number_of("http.request.uri.path");
/// The field for all request headers.
pub const REQUEST_HEADERS: FieldId = number_of("http.request.headers");
/// The field for the path as sent.
pub const RAW_PATH: FieldId = number_of("raw.http.request.uri.path");
/// The field for the query arguments.
pub const ARGUMENTS: FieldId = number_of("http.request.uri.args");
/// The field for the `X-Forwarded-For` header.
pub const FORWARDED_FOR: FieldId = number_of("http.x_forwarded_for");
/// The field for the time of the request in seconds.
pub const TIMESTAMP: FieldId = number_of("http.request.timestamp.sec");
/// The field for the declared size of the request body.
pub const BODY_SIZE: FieldId = number_of("http.request.body.size");
/// The fields for the form in the body: its map, names and values.
pub const FORM_FIELDS: [FieldId; 3] = [
    number_of("http.request.body.form"),
    number_of("http.request.body.form.names"),
    number_of("http.request.body.form.values"),
];
/// The field for the first bytes of the body.
pub const BODY_RAW: FieldId = number_of("http.request.body.raw");
/// The field for whether the body is longer than what is read of it.
pub const BODY_TRUNCATED: FieldId = number_of("http.request.body.truncated");
/// The field for whether the request uses TLS.
pub const OVER_TLS: FieldId = number_of("ssl");
/// The field for whether the client has a verified certificate.
pub const CLIENT_VERIFIED: FieldId = number_of("tls.client.verified");
/// The field for the JA3 fingerprint.
pub const JA3: FieldId = number_of("tls.ja3");
/// The field for the JA4 fingerprint.
pub const JA4: FieldId = number_of("tls.ja4");
/// The field for whether the client is known.
pub const CLIENT_KNOWN: FieldId = number_of("client.known");
/// The field for whether the user of the request has succeeded with the client's cookie.
pub const CLIENT_KNOWN_USER: FieldId = number_of("client.known_user");
/// The field that identifies the cookie of a known client.
pub const CLIENT_ID: FieldId = number_of("client.id");
/// The field for the time since the first success of a known client.
pub const CLIENT_AGE: FieldId = number_of("client.age");
/// The field that identifies a clearance.
pub const CLIENT_CLEARANCE: FieldId = number_of("client.clearance");
/// The field for the response headers.
pub const RESPONSE_CODE: FieldId = number_of("http.response.code");
/// The headers of the response.
pub const RESPONSE_HEADERS: FieldId = number_of("http.response.headers");

/// All fields, ordered by number.
pub fn all() -> &'static [FieldRow] {
    TABLE
}

/// The field with this number.
pub fn by_id(id: FieldId) -> &'static FieldRow {
    let row = TABLE.get(usize::from(id.0));
    row.expect("the numbers of fields come from this table")
}

/// The number of the field with this name or alias. `None` if there is none.
pub fn find(name: &str) -> Option<FieldId> {
    let at = TABLE.iter().position(|field| field.is_called(name))?;
    Some(FieldId(u16::try_from(at).ok()?))
}

/// The field with the names of a map's entries. `None` if `map` is not a map.
pub fn names_of(map: FieldId) -> Option<FieldId> {
    let FieldGetter::Map(map) = getter(map)? else {
        return None;
    };
    let names =
        |field: &FieldRow| matches!(field.getter, FieldGetter::Names(source) if source == map);
    let at = TABLE.iter().position(names)?;
    Some(FieldId(u16::try_from(at).ok()?))
}

/// The getter of the field with this number.
pub(super) fn getter(id: FieldId) -> Option<FieldGetter> {
    TABLE.get(usize::from(id.0)).map(|field| field.getter)
}

/// The number of a field that code names. A name without a row is a compile error.
#[expect(clippy::panic, reason = "it runs in the compiler alone")]
const fn number_of(name: &str) -> FieldId {
    let (mut rows, mut number) = (TABLE, 0);
    while let [field, rest @ ..] = rows {
        if is_same(field.name.as_bytes(), name.as_bytes()) {
            return FieldId(number);
        }
        (rows, number) = (rest, number + 1);
    }
    panic!("no row has this name")
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([a, rest @ ..], [b, others @ ..]) = (one, other) {
        if *a != *b {
            return false;
        }
        (one, other) = (rest, others);
    }
    one.is_empty() && other.is_empty()
}

// === impl FieldRow ===

impl FieldRow {
    /// The field's type.
    pub fn ty(&self) -> ValueType {
        match self.getter {
            FieldGetter::Bytes(_) => ValueType::Bytes,
            FieldGetter::Int(_) => ValueType::Int,
            FieldGetter::Ip(_) => ValueType::Ip,
            FieldGetter::Bool(_) => ValueType::Bool,
            FieldGetter::Map(_) => ValueType::Map,
            FieldGetter::List(_) | FieldGetter::Names(_) | FieldGetter::Values(_) => {
                ValueType::Array
            }
        }
    }

    /// Whether entry names ignore case.
    pub fn names_ignore_case(&self) -> bool {
        matches!(
            self.getter,
            FieldGetter::Map(MapSource::Headers | MapSource::ResponseHeaders)
        )
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Whether an entry of a map without an index is a string.
    pub fn entries_are_strings(&self) -> bool {
        matches!(self.getter, FieldGetter::Map(MapSource::Form))
    }

    const fn known_from_head(mut self) -> Self {
        self.is_known_from_head = true;
        self
    }

    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
}

// === impl FieldTable ===

impl FieldScheme for FieldTable {
    fn field(&self, name: &str) -> Option<FieldSpec> {
        let id = find(name)?;
        let field = by_id(id);
        Some(FieldSpec {
            id,
            ty: field.ty(),
            phase: field.phase,
            names_ignore_case: field.names_ignore_case(),
            entries_are_strings: field.entries_are_strings(),
        })
    }

    fn names(&self) -> Vec<&'static str> {
        let names = |field: &'static FieldRow| [&[field.name], field.aliases].concat();
        TABLE.iter().flat_map(names).collect()
    }

    fn refusal(&self, name: &str) -> Option<String> {
        let meant = || foreign::suggest_field(name);
        let unknown = |meant| format!("unknown field `{name}`; did you mean `{meant}`?");
        foreign::why_refused(name).or_else(|| meant().map(unknown))
    }

    fn read_cost(&self, field: FieldId) -> usize {
        by_id(field).read_cost.first()
    }

    fn is_known_from_head(&self, field: FieldId) -> bool {
        by_id(field).is_known_from_head
    }
}

#[expect(clippy::too_many_arguments, reason = "one for each column")]
const fn row(
    name: &'static str,
    phase: Phase,
    presence: FieldPresence,
    read_cost: ReadCost,
    secret: FieldSecrecy,
    spread: FieldSpread,
    chosen: ClientChoice,
    logged: LogFormat,
    format: ValueFormat,
    getter: FieldGetter,
    doc: &'static str,
) -> FieldRow {
    FieldRow {
        name,
        aliases: &[],
        phase,
        is_known_from_head: matches!(phase, Phase::Request),
        presence,
        read_cost,
        secret,
        spread,
        chosen,
        logged,
        format,
        doc,
        getter,
    }
}

use ClientChoice::{Fixed, Freely, IfUnrouted, IfUntested};
use FieldGetter::{Bool, Bytes, Int, Ip, List, Map, Names, Values};
use FieldPresence::{
    Always, AsnDatabase, ClientCertificate, ContinentDatabase, CountryDatabase, MaybeEmpty,
    Sometimes, SometimesTls, Tls,
};
use FieldSecrecy::{Private, PrivateAs, PrivateEntries, Public};
use FieldSpread::{PerClient, PerRequest, Shared, Varied};
use LogFormat::{IfRead, Never, OwnEntry};
use Phase::{Body, Request, Response};
use ReadCost::{EachRead, FirstRead, Free};

#[rustfmt::skip] // a row a line
static TABLE: &[FieldRow] = &[
    // name, phase, presence, read cost, secret, spread, chosen, logged, format, getter, doc
    // The request.
    row("http.request.method",                   Request,  Always,            Free,           Public,                       Shared,     IfUntested, OwnEntry, ValueFormat::Method,                     Bytes(|v| text(v.request.head.method.as_str())), "the method, such as `GET`"),
    row("http.request.version",                  Request,  Always,            Free,           Public,                       Shared,     Fixed,      OwnEntry, ValueFormat::Version,                    Bytes(|v| text(version_name(v.request.head.version))), "`HTTP/1.0`, `HTTP/1.1` or `HTTP/2`"),
    row("http.request.full_uri",                 Request,  Always,            EachRead(300),  Public,                       Varied,     Freely,     OwnEntry, ValueFormat::FullUri,                    Bytes(|v| absolute(v.request.head, &v.request.head.uri())), "scheme, host, port unless it is the default one, path in normal form and query"),
    row("http.request.uri",                      Request,  Always,            EachRead(150),  Public,                       Varied,     Freely,     OwnEntry, ValueFormat::Uri,                        Bytes(getters::uri), "the path in normal form and the query"),
    row("http.request.uri.path",                 Request,  Always,            Free,           Public,                       Shared,     Fixed,      OwnEntry, ValueFormat::Path,                       Bytes(|v| text(&v.request.head.path)), "the path in normal form"),
    row("http.request.uri.path.extension",       Request,  MaybeEmpty,        Free,           Public,                       Shared,     Fixed,      OwnEntry, ValueFormat::Extension,                  Bytes(|v| lower(extension_of(&v.request.head.path).as_bytes())), "the extension of the last segment, in lower case and without the dot; empty if there is none"),
    row("http.request.uri.query",                Request,  MaybeEmpty,        Free,           Public,                       Varied,     Freely,     OwnEntry, ValueFormat::Any,                        Bytes(|v| text(v.request.head.query.unwrap_or_default())), "the query as sent, without `?`; empty if there is none"),
    row("http.request.uri.args",                 Request,  Sometimes,         FirstRead(400), Public,                       Varied,     Freely,     OwnEntry, ValueFormat::Any,                        Map(MapSource::Arguments), "query arguments, names and values decoded"),
    row("http.request.uri.args.names",           Request,  MaybeEmpty,        FirstRead(400), Public,                       Varied,     Freely,     OwnEntry, ValueFormat::Any,                        Names(MapSource::Arguments), "names of the query arguments"),
    row("http.request.uri.args.values",          Request,  MaybeEmpty,        FirstRead(400), Public,                       Varied,     Freely,     OwnEntry, ValueFormat::Any,                        Values(MapSource::Arguments), "values of the query arguments"),
    row("http.request.headers",                  Request,  Sometimes,         Free,           PrivateEntries,               Varied,     Freely,     IfRead,   ValueFormat::Any,                        Map(MapSource::Headers), "headers; names are case-insensitive").also(&["raw.http.request.headers"]),
    row("http.request.headers.names",            Request,  MaybeEmpty,        EachRead(600),  Public,                       Varied,     Freely,     IfRead,   ValueFormat::HeaderName,                 Names(MapSource::Headers), "names of the headers, in lower case").also(&["raw.http.request.headers.names"]),
    row("http.request.headers.values",           Request,  MaybeEmpty,        EachRead(600),  PrivateEntries,               Varied,     Freely,     IfRead,   ValueFormat::Any,                        Values(MapSource::Headers), "values of the headers").also(&["raw.http.request.headers.values"]),
    row("http.request.cookies",                  Request,  Sometimes,         FirstRead(400), Private,                      Varied,     Freely,     IfRead,   ValueFormat::Any,                        Map(MapSource::Cookies), "cookies; values are decoded"),
    row("http.host",                             Request,  Always,            Free,           Public,                       Shared,     IfUnrouted, OwnEntry, ValueFormat::Host,                       Bytes(|v| known(&v.request.head.host)), "the host in lower case, without trailing dot and port"),
    row("http.referer",                          Request,  Sometimes,         Free,           PrivateAs("referer"),         Varied,     Freely,     OwnEntry, ValueFormat::Header,                     Bytes(|v| first(v.request.headers, &REFERER)), "the `Referer` header"),
    row("http.user_agent",                       Request,  Sometimes,         Free,           PrivateAs("user-agent"),      Shared,     Freely,     OwnEntry, ValueFormat::Header,                     Bytes(|v| Some(Cow::Borrowed(v.request.head.agent?.as_bytes()))), "the `User-Agent` header"),
    row("http.cookie",                           Request,  Sometimes,         EachRead(150),  Private,                      Varied,     Freely,     IfRead,   ValueFormat::Header,                     Bytes(|v| joined(v.request.headers, &COOKIE, b"; ")), "the whole `Cookie` header"),
    row("http.x_forwarded_for",                  Request,  Sometimes,         EachRead(150),  PrivateAs("x-forwarded-for"), Varied,     Freely,     IfRead,   ValueFormat::Header,                     Bytes(getters::x_forwarded_for), "the whole `X-Forwarded-For` header as sent; a client can write anything into it"),
    row("http.request.timestamp.sec",            Request,  Always,            Free,           Public,                       PerRequest, Fixed,      OwnEntry, ValueFormat::Any,                        Int(|v| number(v.request.now.as_secs())), "when the request arrived, in seconds since 1970"),
    row("http.request.timestamp.msec",           Request,  Always,            Free,           Public,                       PerRequest, Fixed,      IfRead,   ValueFormat::Any,                        Int(|v| number(v.request.now.as_millis() % 1000)), "the milliseconds of the arrival time, 0 to 999"),
    row("http.request.body.size",                Request,  Sometimes,         Free,           Public,                       Varied,     Freely,     IfRead,   ValueFormat::Any,                        Int(|v| number(v.request.head.body_size()?)), "the declared size of the body in bytes; missing if none is declared"),
    row("raw.http.request.full_uri",             Request,  Always,            EachRead(300),  Public,                       Varied,     Freely,     IfRead,   ValueFormat::Any,                        Bytes(|v| absolute(v.request.head, v.request.head.raw_uri())), "scheme, host, port unless it is the default one, path and query as sent"),
    row("raw.http.request.uri",                  Request,  Always,            Free,           Public,                       Varied,     Freely,     IfRead,   ValueFormat::Any,                        Bytes(|v| text(v.request.head.raw_uri())), "the path and the query as sent"),
    row("raw.http.request.uri.path",             Request,  Always,            Free,           Public,                       Shared,     Freely,     IfRead,   ValueFormat::Any,                        Bytes(|v| text(v.request.head.raw_path)), "the path as sent"),
    row("raw.http.request.uri.path.extension",   Request,  MaybeEmpty,        Free,           Public,                       Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Bytes(|v| text(extension_of(v.request.head.raw_path))), "the extension as sent"),
    row("raw.http.request.uri.query",            Request,  MaybeEmpty,        Free,           Public,                       Varied,     Freely,     IfRead,   ValueFormat::Any,                        Bytes(|v| text(v.request.head.query.unwrap_or_default())), "the query as sent"),
    row("http.request.route",                    Request,  Always,            Free,           Public,                       Shared,     Fixed,      OwnEntry, ValueFormat::Any,                        Bytes(|v| text(v.request.route?)), "the template of the route that matched"),
    row("http.request.id",                       Request,  Always,            Free,           Public,                       PerRequest, Fixed,      OwnEntry, ValueFormat::Any,                        Bytes(|v| text(v.request.id)), "the id of the request, as in the access log"),
    // The body. Only a rule that may need it makes the gateway read it.
    row("http.request.body.form",                Body,     Sometimes,         FirstRead(400), Private,                      Varied,     Freely,     IfRead,   ValueFormat::Any,                        Map(MapSource::Form), "fields of a complete urlencoded form, names and values decoded; `[\"name\"]` is a string, missing if the name occurs twice"),
    row("http.request.body.form.names",          Body,     Sometimes,         FirstRead(400), Public,                       Varied,     Freely,     IfRead,   ValueFormat::Any,                        Names(MapSource::Form), "names of the form fields"),
    row("http.request.body.form.values",         Body,     Sometimes,         FirstRead(400), Private,                      Varied,     Freely,     Never,    ValueFormat::Any,                        Values(MapSource::Form), "values of the form fields"),
    row("http.request.body.raw",                 Body,     Sometimes,         Free,           Private,                      Varied,     Freely,     Never,    ValueFormat::Any,                        Bytes(|v| Some(Cow::Borrowed(v.request.body()?.raw()?))), "the first `limits.inspect_body` bytes; missing for a multipart or content-encoded body"),
    row("http.request.body.mime",                Body,     Sometimes,         Free,           Public,                       Varied,     Freely,     IfRead,   ValueFormat::MediaType,                  Bytes(|v| request_media_type(v.request.headers)), "the media type of the body in lower case, without parameters").known_from_head(),
    row("http.request.body.truncated",           Body,     Sometimes,         Free,           Public,                       Shared,     Freely,     IfRead,   ValueFormat::Any,                        Bool(|v| Some(!v.request.body()?.is_complete())), "whether the body is longer than `limits.inspect_body`"),
    // The client.
    row("ip.src",                                Request,  Always,            Free,           Public,                       PerClient,  Fixed,      OwnEntry, ValueFormat::Any,                        Ip(|v| Some(v.request.client)), "the client's address"),
    row("ip.src.asnum",                          Request,  AsnDatabase,       FirstRead(750), Public,                       Shared,     Fixed,      OwnEntry, ValueFormat::Number(0, u32::MAX as i64), Int(|v| v.request.asn().map(i64::from)), "the client's autonomous system number (ASN)").also(&["ip.geoip.asnum"]),
    row("ip.src.country",                        Request,  CountryDatabase,   FirstRead(750), Public,                       Shared,     Fixed,      OwnEntry, ValueFormat::Country,                    Bytes(|v| Some(Cow::Borrowed(v.request.country()?.as_slice()))), "the client's country, such as `DE`").also(&["ip.geoip.country"]),
    row("ip.src.continent",                      Request,  ContinentDatabase, FirstRead(750), Public,                       Shared,     Fixed,      IfRead,   ValueFormat::Continent,                  Bytes(|v| Some(Cow::Borrowed(v.request.continent()?.as_slice()))), "the client's continent, such as `EU`").also(&["ip.geoip.continent"]),
    row("ip.peer",                               Request,  Always,            Free,           Public,                       PerClient,  Fixed,      OwnEntry, ValueFormat::Any,                        Ip(|v| Some(v.request.connection.peer.ip().to_canonical())), "the TCP peer: the client or the last proxy"),
    // TLS.
    row("ssl",                                   Request,  Always,            Free,           Public,                       Shared,     Fixed,      OwnEntry, ValueFormat::Any,                        Bool(|v| Some(v.request.connection.tls.is_some())), "whether the connection uses TLS"),
    row("tls.version",                           Request,  Tls,               Free,           Public,                       Shared,     Fixed,      OwnEntry, ValueFormat::TlsVersion,                 Bytes(|v| known(tls(v)?.version)), "`TLSv1.2` or `TLSv1.3`").also(&["cf.tls_version"]),
    row("tls.cipher",                            Request,  Tls,               Free,           Public,                       Shared,     Fixed,      IfRead,   ValueFormat::Cipher,                     Bytes(|v| known(tls(v)?.cipher)), "the IANA name of the cipher suite").also(&["cf.tls_cipher"]),
    row("tls.sni",                               Request,  SometimesTls,      Free,           Public,                       Shared,     Freely,     IfRead,   ValueFormat::Host,                       Bytes(|v| text(tls(v)?.sni.as_deref()?)), "the server name that the client requested (SNI)"),
    row("tls.alpn",                              Request,  SometimesTls,      Free,           Public,                       Shared,     Fixed,      IfRead,   ValueFormat::Alpn,                       Bytes(|v| text(tls(v)?.alpn?)), "the negotiated protocol (ALPN): `h2`, `http/1.1` or `http/1.0`"),
    row("tls.ja3",                               Request,  Tls,               Free,           Public,                       Shared,     Freely,     OwnEntry, ValueFormat::Ja3,                        Bytes(|v| known(&tls(v)?.hello.ja3)), "the JA3 fingerprint of the client, 32 hexadecimal digits").also(&["cf.bot_management.ja3_hash"]),
    row("tls.ja3_raw",                           Request,  Tls,               Free,           Public,                       Shared,     Freely,     IfRead,   ValueFormat::Any,                        Bytes(|v| known(&tls(v)?.hello.ja3_raw)), "the string whose hash is the JA3 fingerprint"),
    row("tls.ja4",                               Request,  Tls,               Free,           Public,                       Shared,     Fixed,      OwnEntry, ValueFormat::Ja4,                        Bytes(|v| known(&tls(v)?.hello.ja4)), "the JA4 fingerprint of the client; better in a key, because browsers shuffle what JA3 reads").also(&["cf.bot_management.ja4"]),
    row("tls.client_hello_length",               Request,  Tls,               Free,           Public,                       Shared,     Freely,     IfRead,   ValueFormat::Any,                        Int(|v| i64::try_from(tls(v)?.hello.length).ok()), "the size of the ClientHello in bytes").also(&["cf.tls_client_hello_length"]),
    // The client certificate.
    row("tls.client.verified",                   Request,  Always,            Free,           Public,                       Shared,     Fixed,      IfRead,   ValueFormat::Any,                        Bool(|v| Some(certificate(v).is_some())), "whether the client presented a certificate, which the listener verified (`client_ca`)"),
    row("tls.client.subject",                    Request,  ClientCertificate, FirstRead(3_000),Public,                       Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Bytes(|v| known(&certificate(v)?.subject)), "the subject of the client certificate as in RFC 4514, such as `CN=billing,O=Example`"),
    row("tls.client.san",                        Request,  ClientCertificate, FirstRead(3_000),Public,                       Varied,     Fixed,      IfRead,   ValueFormat::Any,                        List(|v| certificate(v).map_or(&[], |fields| &fields.names)), "the subject alternative names of the client certificate, each with its kind: `DNS:…`, `IP:…`, `URI:…`, `email:…`"),
    row("tls.client.serial",                     Request,  ClientCertificate, FirstRead(3_000),Public,                       Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Bytes(|v| known(&certificate(v)?.serial)), "the serial number of the client certificate, in lower-case hexadecimal digits"),
    row("tls.client.fingerprint",                Request,  ClientCertificate, FirstRead(3_000),Public,                       Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Bytes(|v| known(&certificate(v)?.fingerprint)), "the SHA-256 of the client certificate, 64 lower-case hexadecimal digits"),
    // Cookies of the gateway.
    row("client.known",                          Request,  Always,            FirstRead(8_000), Public,                     Shared,     Fixed,      OwnEntry, ValueFormat::Any,                        Bool(|v| Some(v.request.known_cookie().is_some())), "whether the client has a valid known-client cookie"),
    row("client.known_user",                     Body,     Always,            FirstRead(14_000), Public,                    Shared,     Fixed,      IfRead,   ValueFormat::Any,                        Bool(|v| Some(v.request.has_known_user())), "whether the user of this request has succeeded with the client's cookie"),
    row("client.id",                             Request,  Sometimes,         FirstRead(10_000), Public,                    Varied,     Fixed,      OwnEntry, ValueFormat::Any,                        Bytes(|v| Some(Cow::Borrowed(v.request.client_id()?.as_bytes()))), "identifies the known-client cookie, 16 hexadecimal digits; missing without a valid one"),
    row("client.age",                            Request,  Sometimes,         FirstRead(8_000), Public,                     Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Int(|v| v.request.client_age().map(i64::from)), "the seconds since the first success of a known client; missing without a valid cookie"),
    row("client.clearance",                      Request,  Sometimes,         FirstRead(8_000), Public,                     Varied,     Fixed,      OwnEntry, ValueFormat::Any,                        Bytes(|v| Some(Cow::Borrowed(v.request.clearance()?.as_bytes()))), "identifies the clearance of a solved challenge, 16 hexadecimal digits; missing without a valid one"),
    // The response.
    row("http.response.code",                    Response, Always,            Free,           Public,                       Varied,     Fixed,      OwnEntry, ValueFormat::Number(100, 599),           Int(|v| Some(v.response?.status.into())), "the status code"),
    row("http.response.headers",                 Response, Sometimes,         Free,           PrivateEntries,               Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Map(MapSource::ResponseHeaders), "headers of the response; names are case-insensitive").also(&["raw.http.response.headers"]),
    row("http.response.headers.names",           Response, MaybeEmpty,        EachRead(600),  Public,                       Varied,     Fixed,      IfRead,   ValueFormat::HeaderName,                 Names(MapSource::ResponseHeaders), "names of the response headers, in lower case").also(&["raw.http.response.headers.names"]),
    row("http.response.headers.values",          Response, MaybeEmpty,        EachRead(600),  PrivateEntries,               Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Values(MapSource::ResponseHeaders), "values of the response headers").also(&["raw.http.response.headers.values"]),
    row("http.response.content_type.media_type", Response, Sometimes,         Free,           Public,                       Varied,     Fixed,      IfRead,   ValueFormat::MediaType,                  Bytes(getters::media_type), "the media type in lower case, without parameters"),
    row("http.response.duration_ms",             Response, Always,            Free,           Public,                       Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Int(|v| number(v.response?.duration_ms)), "milliseconds from the end of the request to the response head, without the time for which rules held the request"),
    row("http.response.body.size",               Response, Sometimes,         Free,           Public,                       Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Int(|v| number(v.response?.body_size?)), "the size of the response body in bytes; missing if unknown"),
    row("upstream.name",                         Response, Sometimes,         Free,           Public,                       Varied,     Fixed,      OwnEntry, ValueFormat::Any,                        Bytes(|v| text(v.response?.upstream?)), "the upstream that responded or failed"),
    row("upstream.error",                        Response, Sometimes,         Free,           Public,                       Varied,     Fixed,      IfRead,   ValueFormat::Any,                        Bytes(|v| text(v.response?.upstream_error?)), "how the upstream failed; missing if it did not"),
];

#[cfg(test)]
mod tests;
