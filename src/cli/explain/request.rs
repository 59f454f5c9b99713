//! Builds the simulated request from the arguments: the listener that would receive it, and the
//! head that a client would send.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};

use super::parse::{self, ParsedUrl};
use crate::config;
use crate::expr::FieldId;
use crate::facts::body::FORM;
use crate::facts::{
    ClientConnection, HelloFacts, MalformedRequest, TlsFacts, fields, version_name,
};
use crate::pipeline::simulate::{SimulatedClient, Simulation};
use crate::rules::{FixedKeys, Rule};
use crate::snapshot::{ListenerConfig, Snapshot};

/// The simulated request and the response of its origin server.
#[derive(Args, Debug)]
pub struct RequestOptions {
    /// The method, such as `GET`.
    #[arg(value_parser = parse::method)]
    pub method: Method,
    /// The URL; a path or `*` alone means `localhost` at the first listener.
    #[arg(value_parser = parse::url)]
    pub url: ParsedUrl,
    /// A header of the request. Repeatable.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = parse::header)]
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// A field of an urlencoded form in the body. Repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse::form_field)]
    pub form: Vec<(String, String)>,
    /// The client's address, `ip.src`, regardless of the headers.
    #[arg(long, value_name = "ADDRESS", value_parser = parse::address)]
    pub ip: Option<IpAddr>,
    /// The address of the TCP peer [default: that of --ip, else 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", value_parser = parse::address)]
    pub peer: Option<IpAddr>,
    /// The client's autonomous system number, regardless of the databases.
    #[arg(long, value_name = "NUMBER")]
    pub asn: Option<u32>,
    /// The client's country, regardless of the databases.
    #[arg(long, value_name = "CODE", value_parser = parse::country)]
    pub country: Option<[u8; 2]>,
    /// The JA3 fingerprint of the client.
    #[arg(long, value_name = "HASH", value_parser = parse::ja3)]
    pub ja3: Option<String>,
    /// The JA4 fingerprint of the client.
    #[arg(long, value_name = "FINGERPRINT", value_parser = parse::ja4)]
    pub ja4: Option<String>,
    /// The HTTP version [default: 2 over TLS if the listener supports it, else 1.1].
    #[arg(long, value_name = "VERSION", value_parser = parse::version)]
    pub http: Option<http::Version>,
    /// The status of the origin server's response [default: that of the route, else 200].
    #[arg(long, value_name = "CODE", value_parser = parse::status)]
    pub status: Option<StatusCode>,
    /// A header of the origin server's response. Repeatable.
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse::header)]
    pub response_header: Vec<(HeaderName, HeaderValue)>,
    /// The client is known [default: as its cookies say]. USER has succeeded with its cookie.
    #[arg(long, value_name = "USER", num_args = 0..=1)]
    pub known: Option<Option<String>>,
    /// The time since the first success of the known client, such as `2d` [default: 0s].
    #[arg(long, value_name = "DURATION", requires = "known", value_parser = config::duration)]
    pub age: Option<Duration>,
    /// The client has a clearance: it has solved a challenge.
    #[arg(long)]
    pub clearance: bool,
}

/// Returns the request and notes for the user. The error says why the options contradict the configuration.
pub fn simulation(
    args: &RequestOptions,
    snapshot: &Snapshot,
) -> Result<(Simulation, Vec<String>), &'static str> {
    let (listener, mut notes) = listener(args, snapshot);
    let secure = listener.is_some_and(|listener| listener.settings.tls.is_some());
    if !secure && (args.ja3.is_some() || args.ja4.is_some()) {
        return Err(
            "--ja3 and --ja4 need TLS: write an https:// URL, and check that a listener of the \
             configuration has [listeners.tls]",
        );
    }
    if secure {
        notes.extend(unknown_fingerprints(args, snapshot));
    }
    let version = args.http.unwrap_or(match listener {
        Some(listener) if listener.settings.h2 && (secure || !listener.settings.h1) => {
            Version::HTTP_2
        }
        _ => Version::HTTP_11,
    });
    let mut request = Request::new(());
    *request.method_mut() = args.method.clone();
    *request.version_mut() = version;
    request.headers_mut().extend(args.headers.iter().cloned());
    let body = form(&args.form, request.headers_mut());
    let unreadable = address(&mut request, args, secure).err();
    let peer = args
        .peer
        .or(args.ip)
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let simulation = Simulation {
        parts: request.into_parts().0,
        unreadable,
        connection: ClientConnection {
            peer: SocketAddr::new(peer, 0),
            listener: listener.map_or_else(|| "".into(), |listener| listener.label.clone()),
            tls: secure.then(|| tls(args, version)),
        },
        body,
        client: args.ip,
        asn: args.asn,
        country: args.country,
        status: args.status,
        response_headers: args.response_header.iter().cloned().collect(),
        known: args.known.as_ref().map(|user| SimulatedClient {
            user: user.clone(),
            age: args.age.unwrap_or_default(),
        }),
        has_clearance: args.clearance,
        keys: FixedKeys::default(),
    };
    Ok((simulation, notes))
}

/// Returns notes about options that the configuration has no use for.
pub fn unused_credentials(args: &RequestOptions, snapshot: &Snapshot) -> Vec<String> {
    let credentials = snapshot.credentials.as_ref();
    let has_known = credentials.is_some_and(|all| all.known.is_some());
    let has_clearance = credentials.is_some_and(|all| all.clearance_lifetime.is_some());
    let unused = [
        (
            args.known.is_some() && !has_known,
            "--known",
            "known_clients",
        ),
        (args.clearance && !has_clearance, "--clearance", "challenge"),
    ];
    let unused = unused.into_iter().filter(|(is_unused, ..)| *is_unused);
    let note =
        |(_, option, table)| format!("{option} has no effect: the configuration has no [{table}]");
    unused.map(note).collect()
}

/// Returns the fields as an urlencoded form and declares it in `headers`, as a browser would.
fn form(fields: &[(String, String)], headers: &mut HeaderMap) -> Bytes {
    if fields.is_empty() {
        return Bytes::new();
    }
    let pair = |(name, value): &(String, String)| format!("{}={}", escape(name), escape(value));
    let form = fields.iter().map(pair).collect::<Vec<_>>().join("&");
    let media_type = HeaderValue::from_static(FORM);
    headers.entry(CONTENT_TYPE).or_insert(media_type);
    if !headers.contains_key(TRANSFER_ENCODING) {
        let length = HeaderValue::from(form.len());
        headers.entry(CONTENT_LENGTH).or_insert(length);
    }
    form.into()
}

/// Percent-encodes everything but letters and digits.
fn escape(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Describes the request in one line.
pub fn words(args: &RequestOptions, simulation: &Simulation) -> String {
    let client = match (&simulation.known, simulation.has_clearance) {
        (Some(_), true) => ", from a known client with a clearance",
        (Some(_), false) => ", from a known client",
        (None, true) => ", with a clearance",
        (None, false) => "",
    };
    sent(args, simulation) + client
}

fn sent(args: &RequestOptions, simulation: &Simulation) -> String {
    let scheme = match simulation.connection.tls {
        Some(_) => "https",
        None => "http",
    };
    let (method, url) = (&args.method, &args.url);
    let version = version_name(simulation.parts.version);
    match url.target.as_str() {
        // RFC 9110, section 7.1: the asterisk form addresses the server itself.
        "*" => format!("{method} * of {scheme}://{} over {version}", url.authority),
        target => format!(
            "{method} {scheme}://{}{target} over {version}",
            url.authority
        ),
    }
}

/// Returns the listener that matches the URL's scheme and port, or else the first listener.
fn listener<'s>(
    args: &RequestOptions,
    snapshot: &'s Snapshot,
) -> (Option<&'s ListenerConfig>, Vec<String>) {
    let all = || snapshot.listeners.iter().map(|listener| &**listener);
    let Some(secure) = args.url.secure else {
        return (all().next(), Vec::new());
    };
    let port = args.url.authority.port_u16();
    let fits = |listener: &&ListenerConfig| listener.settings.tls.is_some() == secure;
    let exact = all().find(|l| fits(l) && Some(l.settings.address.port()) == port);
    match exact.or_else(|| all().find(fits)) {
        Some(listener) => (Some(listener), Vec::new()),
        None => {
            let note = if secure {
                "no listener has TLS: the request is treated as plain HTTP"
            } else {
                "every listener has TLS: the request is treated as HTTPS"
            };
            (all().next(), vec![note.to_owned()])
        }
    }
}

/// Returns notes about fingerprints that a rule reads but no option sets. Every real TLS client has fingerprints.
fn unknown_fingerprints(args: &RequestOptions, snapshot: &Snapshot) -> Vec<String> {
    let given = [
        (fields::JA3, "--ja3", args.ja3.is_some()),
        (fields::JA4, "--ja4", args.ja4.is_some()),
    ];
    let unknown = given.into_iter().filter(|(field, _, given)| {
        !given && snapshot.rules.iter().any(|(_, rule)| reads(rule, *field))
    });
    unknown
        .map(|(field, option, _)| {
            let name = fields::by_id(field).name;
            format!("{name} is missing here; a real client has one: set {option}")
        })
        .collect()
}

fn reads(rule: &Rule, field: FieldId) -> bool {
    let parts = rule.key.parts.iter().map(|part| part.scalar.reads());
    let mut all = parts.chain(rule.expressions().map(|expression| expression.reads()));
    all.any(|reads| reads.contains(&field))
}

/// Writes target and host as the HTTP version requires (RFC 9112, section 3.2; RFC 9113, 8.3.1).
fn address(
    request: &mut Request<()>,
    args: &RequestOptions,
    secure: bool,
) -> Result<(), MalformedRequest> {
    let (authority, target) = (&args.url.authority, args.url.target.as_str());
    if request.version() < Version::HTTP_2 {
        *request.uri_mut() = target.parse().map_err(|_| MalformedRequest::Target)?;
        if !request.headers().contains_key(HOST) {
            let value = authority
                .as_str()
                .parse()
                .map_err(|_| MalformedRequest::Host)?;
            request.headers_mut().insert(HOST, value);
        }
        return Ok(());
    }
    // Like curl, use the `Host` header as the authority.
    let named = request.headers_mut().remove(HOST);
    let authority = match &named {
        Some(host) => Authority::try_from(host.as_bytes()).map_err(|_| MalformedRequest::Host)?,
        None => authority.clone(),
    };
    let uri = Uri::builder().scheme(if secure { "https" } else { "http" });
    let uri = uri.authority(authority).path_and_query(target).build();
    *request.uri_mut() = uri.map_err(|_| MalformedRequest::Target)?;
    Ok(())
}

fn tls(args: &RequestOptions, version: Version) -> TlsFacts {
    let host = args.url.authority.host();
    let is_name = !host.starts_with('[') && host.parse::<IpAddr>().is_err();
    TlsFacts {
        version: "TLSv1.3",
        cipher: "",
        sni: is_name.then(|| host.into()),
        alpn: Some(if version == Version::HTTP_2 {
            "h2"
        } else {
            "http/1.1"
        }),
        client: None,
        hello: HelloFacts {
            ja3: args.ja3.as_deref().unwrap_or_default().into(),
            ja4: args.ja4.as_deref().unwrap_or_default().into(),
            ..HelloFacts::default()
        },
    }
}
