//! Setting types for addresses, networks, header names, header values and statuses.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::Path;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use ipnet::IpNet;
use toml::de::DeValue;

use super::{Parsed, SettingType, ValueError, string, whole};
use crate::config::schema::{
    ExampleValue, HEADER_NAME, HEADER_VALUE, HOST_OR_NONE, METHOD, NETWORK, SERVER, SOCKET,
    STATUS_RANGE, TARGET, ValueSchema,
};
use crate::config::{Diagnostic, Diagnostics, LintCode};
use crate::facts::host;
use crate::upstream::{HostPort, ServerEndpoint, ServerLocation, StatusRange};

/// An IP address and a port.
pub(in crate::config) fn socket() -> SettingType<SocketAddr> {
    let examples = &["127.0.0.1:8443", "0.0.0.0:8443", "[::]:8443"];
    SettingType::new(ValueSchema::string_of_form(SOCKET, examples), parse_socket)
}

fn parse_socket(value: &DeValue<'_>) -> Parsed<SocketAddr> {
    let example = "for example \"0.0.0.0:8443\" or \"[::]:8443\"";
    let written = string(value, "an address and a port");
    let written = written.map_err(|wrong| wrong.help(example))?;
    written.parse().map_err(|_| {
        let wrong = ValueError::new(format!("`{written}` is not an address and a port"));
        let port = written.rsplit_once(':').unwrap_or(("", written)).1;
        match port.parse::<u16>() {
            Ok(port) => wrong.help(format!(
                "write an IP address instead of a name: \"0.0.0.0:{port}\", \"127.0.0.1:{port}\" or \"[::]:{port}\""
            )),
            Err(_) => wrong.help(example),
        }
    })
}

/// The address of a server: an IP address or a name with a port, or a Unix socket.
pub(in crate::config) fn server() -> SettingType<ServerLocation> {
    let examples = &["127.0.0.1:9000", "app.internal:9001", "unix:/run/app.sock"];
    SettingType::new(ValueSchema::string_of_form(SERVER, examples), |value| {
        let written = string(value, "an address and a port");
        written.and_then(parse_server).map_err(|wrong| {
            let example =
                "for example \"127.0.0.1:9000\", \"app.internal:9001\" or \"unix:/run/app.sock\"";
            match wrong.help {
                Some(_) => wrong,
                None => wrong.help(example),
            }
        })
    })
}

fn parse_server(written: &str) -> Parsed<ServerLocation> {
    if let Some(path) = written.strip_prefix("unix:") {
        return match path {
            "" => Err(ValueError::new("`unix:` requires a path")),
            path if path.bytes().any(|b| b.is_ascii_control()) => {
                Err(ValueError::new("this path contains a control character"))
            }
            path => Ok(ServerLocation::Endpoint(ServerEndpoint::Unix(
                Path::new(path).into(),
            ))),
        };
    }
    if let Ok(address) = written.parse() {
        return Ok(ServerLocation::Endpoint(ServerEndpoint::Tcp(address)));
    }
    if let Some((scheme @ ("http" | "https"), rest)) = written.split_once("://") {
        let wrong = ValueError::new(format!(
            "a server address must not start with `{scheme}://`"
        ));
        return Err(match without_scheme(scheme, rest) {
            Some(help) => wrong.help(help),
            None => wrong,
        });
    }
    let name = written.rsplit_once(':').filter(|(host, _)| is_host(host));
    let name = name.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = name.ok_or_else(|| {
        let wrong = ValueError::new(format!(
            "`{written}` is not an address or a name with a port"
        ));
        match with_port(written, 80) {
            Some(whole) => wrong.help(format!("add the port: \"{whole}\"")),
            None => wrong,
        }
    })?;
    let host = host.to_owned();
    Ok(ServerLocation::Name(HostPort { host, port }))
}

/// Returns the suggestion for a server that is written as a URL.
fn without_scheme(scheme: &str, rest: &str) -> Option<String> {
    let authority = rest.split('/').next()?;
    let port = if scheme == "https" { 443 } else { 80 };
    let whole = with_port(authority, port).or_else(|| {
        let right = parse_server(authority).is_ok();
        right.then(|| authority.to_owned())
    })?;
    Some(match scheme {
        "https" => format!("write \"{whole}\", and `tls = true` for the upstream"),
        _ => format!("write \"{whole}\""),
    })
}

/// Adds a port to an address or a name without one.
fn with_port(host: &str, port: u16) -> Option<String> {
    match host.parse::<IpAddr>() {
        Ok(address) => Some(SocketAddr::new(address, port).to_string()),
        Err(_) => is_host(host).then(|| format!("{host}:{port}")),
    }
}

/// Returns whether a host name can be resolved: RFC 1123, section 2.1, plus underscores, which some networks use.
fn is_host(host: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(legal);
    let mut labels = host.strip_suffix('.').unwrap_or(host).split('.').rev();
    let numeric = |label: &str| label.bytes().all(|b| b.is_ascii_digit());
    let last = labels
        .next()
        .is_some_and(|last| label(last) && !numeric(last));
    last && labels.all(label) && host.len() <= 254
}

/// A value of `Host`: a name or an address, with or without a port. An empty string means none.
pub(in crate::config) fn host_or_none() -> SettingType<Option<String>> {
    let shape = ValueSchema::string_of_form(HOST_OR_NONE, &["shop.example.com"]);
    SettingType::new(shape, |value| {
        let written = string(value, "a host")?;
        if written.is_empty() {
            return Ok(None);
        }
        // No scheme has port 0 as its default.
        if host::parse(written, 0).is_none_or(|host| host.name.is_empty()) {
            let wrong = ValueError::new(format!("`{written}` is not a host"));
            return Err(wrong.help("for example \"shop.example.com\" or \"app.internal:8080\""));
        }
        Ok(Some(written.to_owned()))
    })
    .shown(|host| ExampleValue::Text(host.clone().unwrap_or_default()))
}

/// The target of a request: a path with an optional query.
pub(in crate::config) fn target_path() -> SettingType<String> {
    SettingType::new(
        ValueSchema::string_of_form(TARGET, &["/healthz"]),
        |value| {
            let written = string(value, "a path")?;
            let plain = |b: u8| b.is_ascii_graphic() && b != b'#';
            if written.starts_with('/') && written.bytes().all(plain) {
                Ok(written.to_owned())
            } else {
                Err(ValueError::new(format!("`{written}` is not a path")).help(
                    "a path starts with `/` and contains no spaces, for example \"/healthz\"",
                ))
            }
        },
    )
}

/// A network; an address without a prefix is a network of one address.
pub(in crate::config) fn network() -> SettingType<IpNet> {
    let examples = &["192.0.2.0/24", "2001:db8::/48"];
    SettingType::new(ValueSchema::string_of_form(NETWORK, examples), |value| {
        parse_network(string(value, "a network")?)
    })
    .shown(|network| ExampleValue::Text(network.to_string()))
}

/// Parses a network, also from a table key. Keeps the bits after the prefix.
pub(in crate::config) fn parse_network(written: &str) -> Parsed<IpNet> {
    let net = written.parse::<IpNet>();
    net.or_else(|_| written.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| {
            ValueError::new(format!("`{written}` is not a network"))
                .help("for example \"192.0.2.0/24\", \"2001:db8::/48\" or a single address")
        })
}

/// Warns of a network that is written with the address of one of its hosts.
pub(in crate::config) fn warn_of_host_bits<'d>(
    network: IpNet,
    span: &Range<usize>,
    out: &'d mut Diagnostics,
) -> Option<&'d mut Diagnostic> {
    let (meant, host) = (network.trunc(), network.addr());
    let message = format!("`{network}` means the whole network `{meant}`");
    let help = format!("write `{meant}`, or `{host}` for this address only");
    let warn = || out.warning(LintCode::HostBits, span.clone(), message);
    (meant != network)
        .then(warn)
        .map(|warning| warning.help(help))
}

/// The name of a header, in lower case.
pub(in crate::config) fn header_name() -> SettingType<HeaderName> {
    SettingType::new(ValueSchema::string_of_form(HEADER_NAME, &[]), |value| {
        parse_header_name(string(value, "a header name")?)
    })
    .shown(|name| ExampleValue::Text(name.to_string()))
}

/// Parses a header name, also from a table key.
pub(in crate::config) fn parse_header_name(written: &str) -> Parsed<HeaderName> {
    HeaderName::from_bytes(written.as_bytes()).map_err(|_| {
        ValueError::new(format!("`{written}` is not a header name"))
            .help("for example \"x-forwarded-for\"")
    })
}

/// The value of a header.
pub(in crate::config) fn header_value() -> SettingType<HeaderValue> {
    SettingType::new(ValueSchema::string_of_form(HEADER_VALUE, &[]), |value| {
        let written = string(value, "a header value")?;
        HeaderValue::from_str(written).map_err(|_| {
            ValueError::new("a header value cannot contain control characters")
                .help("write one line of text")
        })
    })
    .shown(|value| ExampleValue::Text(String::from_utf8_lossy(value.as_bytes()).into_owned()))
}

/// The method of a request.
pub(in crate::config) fn method() -> SettingType<Method> {
    let shape = ValueSchema::string_of_form(METHOD, &[]);
    SettingType::new(shape, |value| {
        let written = string(value, "a method")?;
        let is_upper = !written.is_empty() && written.bytes().all(|b| b.is_ascii_uppercase());
        let method = Method::from_bytes(written.as_bytes()).ok();
        method.filter(|_| is_upper).ok_or_else(|| {
            ValueError::new(format!("`{written}` is not a method"))
                .help("write it in upper case, for example \"POST\"")
        })
    })
    .shown(|method| ExampleValue::Text(method.to_string()))
}

/// The status of a redirect.
pub(in crate::config) fn redirect_status() -> SettingType<StatusCode> {
    const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];
    let parse = |value: &DeValue<'_>| {
        let number = whole(value)?;
        let code = REDIRECTS
            .into_iter()
            .find(|code| i128::from(*code) == number);
        code.and_then(|code| StatusCode::from_u16(code).ok())
            .ok_or_else(|| {
                ValueError::new(format!("{number} is not the status of a redirect"))
                    .help("write 301, 302, 303, 307 or 308")
            })
    };
    let between = |low, high| ValueSchema::Integer { low, high };
    let shape = ValueSchema::Either(vec![between(301, 303), between(307, 308)]);
    SettingType::new(shape, parse).shown(|status| ExampleValue::Integer(status.as_u16().into()))
}

/// The status of a final response.
pub(in crate::config) fn status() -> SettingType<StatusCode> {
    let (low, high) = (200, 599);
    let parse = move |value: &DeValue<'_>| {
        let number = whole(value)?;
        let code = u16::try_from(number).ok();
        let status = code.filter(|code| (low..=high).contains(code));
        status
            .and_then(|code| StatusCode::from_u16(code).ok())
            .ok_or_else(|| {
                ValueError::new(format!("{number} is not a status between {low} and {high}"))
                    .help("for example `status = 200`")
            })
    };
    let shape = ValueSchema::Integer {
        low: low.into(),
        high: high.into(),
    };
    SettingType::new(shape, parse).shown(|status| ExampleValue::Integer(status.as_u16().into()))
}

/// A status, as a number or a string, or a range of statuses such as `"200-399"`.
pub(in crate::config) fn status_range() -> SettingType<StatusRange> {
    let shape = ValueSchema::Either(vec![
        ValueSchema::string_of_form(STATUS_RANGE, &["200-399", "204"]),
        ValueSchema::Integer {
            low: 200,
            high: 599,
        },
    ]);
    SettingType::new(shape, |value| {
        if value.as_integer().is_some() {
            let status = status().parse(value)?.as_u16();
            let (low, high) = (status, status);
            return Ok(StatusRange { low, high });
        }
        let written = string(value, "a status or a range of statuses")?;
        parse_status_range(written).ok_or_else(|| {
            let message = format!("`{written}` is not a status or a range of statuses");
            ValueError::new(message)
                .help("statuses are 200 to 599, for example \"200-399\" or \"204\"")
        })
    })
    .shown(|range| ExampleValue::Text(range.to_string()))
}

fn parse_status_range(written: &str) -> Option<StatusRange> {
    let status = |text: &str| {
        let is_plain = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
        let code: u16 = text.parse().ok().filter(|_| is_plain)?;
        (200..=599).contains(&code).then_some(code)
    };
    let (low, high) = written.split_once('-').unwrap_or((written, written));
    let (low, high) = (status(low)?, status(high)?);
    (low <= high).then_some(StatusRange { low, high })
}
