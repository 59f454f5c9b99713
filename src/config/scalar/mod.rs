//! Single values: what a string or number in the file may say. Each function turns one value into
//! its type or says what is wrong with an example of what would be right.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use ipnet::IpNet;
use toml::de::DeValue;

use super::suggest::{did_you_mean, either};

mod units;
pub(super) use units::{duration, duration_or_seconds, size};

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// What is wrong, in one sentence without a full stop.
    pub(super) message: String,
    /// What would be right.
    pub(super) help: Option<String>,
}

/// What reading a value gives.
pub(super) type Parsed<T> = Result<T, Wrong>;

// === impl Wrong ===

impl Wrong {
    /// A reason.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
        }
    }

    /// The reason with what would be right.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// A word of the contract that has no effect yet.
    pub(super) fn later(what: &str) -> Self {
        Self::new(format!("{what} does not work yet"))
    }
}

/// A value of the wrong kind.
pub(super) fn kind(expected: &str, found: &DeValue<'_>) -> Wrong {
    let found = match found {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    };
    Wrong::new(format!("expected {expected}, found {found}"))
}

/// Any string.
pub(super) fn text(value: &DeValue<'_>) -> Parsed<String> {
    string(value, "a string").map(str::to_owned)
}

/// A string that says something.
pub(super) fn filled(value: &DeValue<'_>) -> Parsed<String> {
    match string(value, "a string")? {
        "" => Err(Wrong::new("this string must not be empty")),
        text => Ok(text.to_owned()),
    }
}

/// A path to a file; relative ones are the caller's business.
pub(super) fn path(value: &DeValue<'_>) -> Parsed<PathBuf> {
    match string(value, "a path")? {
        "" => Err(Wrong::new("this path is empty").help("name a file, or remove the key")),
        path => Ok(PathBuf::from(path)),
    }
}

/// True or false.
pub(super) fn boolean(value: &DeValue<'_>) -> Parsed<bool> {
    let help = "write `true` or `false`, without quotes";
    value
        .as_bool()
        .ok_or_else(|| kind("a boolean", value).help(help))
}

/// An integer within bounds.
pub(super) fn integer<T>(bounds: RangeInclusive<T>) -> impl Fn(&DeValue<'_>) -> Parsed<T>
where
    T: TryFrom<i128> + Into<i128> + PartialOrd + Copy + std::fmt::Display,
{
    move |value| {
        let number = whole(value)?;
        let fits = T::try_from(number).ok().filter(|n| bounds.contains(n));
        fits.ok_or_else(|| {
            let (low, high) = (bounds.start(), bounds.end());
            Wrong::new(format!("{number} is not between {low} and {high}"))
        })
    }
}

/// One word out of a few. `later` are words of the contract that have no effect yet.
pub(super) fn choice<T: Copy>(
    words: &'static [(&'static str, T)],
    later: &'static [&'static str],
) -> impl Fn(&DeValue<'_>) -> Parsed<T> {
    move |value| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let help = format!("write {}", either(&known));
        let Some(written) = value.as_str() else {
            return Err(kind("a string", value).help(help));
        };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == written) {
            return Ok(*meaning);
        }
        if later.contains(&written) {
            return Err(Wrong::later(&format!("`{written}`")).help(help));
        }
        let all = known.iter().chain(later).copied();
        let guess = did_you_mean(written, all);
        Err(Wrong::new(format!("unknown value `{written}`{guess}")).help(help))
    }
}

/// Whether a string can name a rule, list, upstream or response: `[A-Za-z0-9_-]{1,64}`.
pub(super) fn check_name(written: &str) -> Parsed<()> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if (1..=64).contains(&written.len()) && written.bytes().all(legal) {
        return Ok(());
    }
    Err(Wrong::new(format!("`{written}` is not a name"))
        .help("a name has 1 to 64 letters, digits, `_` and `-`, for example `login-stuffing`"))
}

/// An address and a port.
pub(super) fn socket(value: &DeValue<'_>) -> Parsed<SocketAddr> {
    let written = string(value, "an address and a port")?;
    written.parse().map_err(|_| {
        Wrong::new(format!("`{written}` is not an address and a port"))
            .help("for example \"0.0.0.0:8443\" or \"[::]:8443\"")
    })
}

/// The address of an origin.
pub(super) fn server(value: &DeValue<'_>) -> Parsed<SocketAddr> {
    let help = "for example \"127.0.0.1:9000\"";
    if value.is_table() {
        return Err(Wrong::later("a server with weight or backup").help(help));
    }
    let written = string(value, "an address and a port")?;
    if written.starts_with("unix:") {
        return Err(Wrong::later("a `unix:` socket").help(help));
    }
    socket(value).map_err(|wrong| match host_and_port(written) {
        true => Wrong::later("a server given by its host name").help(help),
        false => wrong.help(help),
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
pub(super) fn network(value: &DeValue<'_>) -> Parsed<IpNet> {
    parse_network(string(value, "a network")?)
}

/// A network as text, also where it stands as a key. Bits past the prefix are dropped.
pub(super) fn parse_network(written: &str) -> Parsed<IpNet> {
    let net = written.parse::<IpNet>().map(|net| net.trunc());
    net.or_else(|_| written.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| {
            Wrong::new(format!("`{written}` is not a network"))
                .help("for example \"192.0.2.0/24\", \"2001:db8::/48\" or a single address")
        })
}

/// The name of a header, in lower case.
pub(super) fn header_name(value: &DeValue<'_>) -> Parsed<HeaderName> {
    parse_header_name(string(value, "a header name")?)
}

/// A header name as text, also where it stands as a key.
pub(super) fn parse_header_name(written: &str) -> Parsed<HeaderName> {
    HeaderName::from_bytes(written.as_bytes()).map_err(|_| {
        Wrong::new(format!("`{written}` is not a header name"))
            .help("for example \"x-forwarded-for\"")
    })
}

/// The value of a header.
pub(super) fn header_value(value: &DeValue<'_>) -> Parsed<HeaderValue> {
    let written = string(value, "a header value")?;
    HeaderValue::from_str(written).map_err(|_| {
        Wrong::new("a header value cannot hold control characters").help("use one line of text")
    })
}

/// The status of a final response.
pub(super) fn status(value: &DeValue<'_>) -> Parsed<u16> {
    let number = whole(value)?;
    let status = u16::try_from(number).ok();
    status.filter(|s| (200..=599).contains(s)).ok_or_else(|| {
        Wrong::new(format!("{number} is not a status between 200 and 599"))
            .help("for example `status = 200`")
    })
}

/// A country: two capital letters (ISO 3166-1 alpha-2).
pub(super) fn country(value: &DeValue<'_>) -> Parsed<String> {
    let written = string(value, "a country")?;
    if written.len() == 2 && written.bytes().all(|b| b.is_ascii_uppercase()) {
        return Ok(written.to_owned());
    }
    Err(Wrong::new(format!("`{written}` is not a country")).help("two capital letters, as \"DE\""))
}

/// A duration within bounds.
pub(super) fn between(
    low: Duration,
    high: Duration,
    parse: impl Fn(&DeValue<'_>) -> Parsed<Duration>,
) -> impl Fn(&DeValue<'_>) -> Parsed<Duration> {
    move |value| {
        let duration = parse(value)?;
        if (low..=high).contains(&duration) {
            return Ok(duration);
        }
        let (low, high) = (units::show(low), units::show(high));
        Err(Wrong::new(format!(
            "this duration is not between {low} and {high}"
        )))
    }
}

/// A size within bounds, in bytes.
pub(super) fn size_between(low: u64, high: u64) -> impl Fn(&DeValue<'_>) -> Parsed<u64> {
    move |value| {
        let bytes = size(value)?;
        if (low..=high).contains(&bytes) {
            return Ok(bytes);
        }
        Err(Wrong::new(format!(
            "this size is not between {low} and {high} bytes"
        )))
    }
}

/// A whole number of any size that TOML can write.
fn whole(value: &DeValue<'_>) -> Parsed<i128> {
    let Some(integer) = value.as_integer() else {
        let wrong = kind("an integer", value);
        return Err(match value.as_str() {
            Some(_) => wrong.help("write the number without quotes"),
            None => wrong,
        });
    };
    i128::from_str_radix(integer.as_str(), integer.radix())
        .map_err(|_| Wrong::new("this number is too large"))
}

fn string<'v>(value: &'v DeValue<'_>, expected: &str) -> Parsed<&'v str> {
    value.as_str().ok_or_else(|| kind(expected, value))
}
