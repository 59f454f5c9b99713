//! `[challenge]`.

use std::ops::Range;
use std::time::Duration;

use toml::de::DeValue;

use crate::config::scalar::{SettingType, ValueError, between, duration, integer, string};
use crate::config::schema::{self, ExampleValue, ValueSchema};
use crate::config::section::SectionReader;
use crate::config::{Spanned, Text};

/// `[challenge]`.
#[derive(Clone, Debug)]
pub struct ChallengeSettings {
    /// The header of the section.
    pub span: Range<usize>,
    /// The difficulty, 1 to 6; each step doubles the work. Default 1.
    pub difficulty: Spanned<u8>,
    /// The lifetime of a clearance, 15 minutes to 24 hours. Default 1 h.
    pub lifetime: Spanned<Duration>,
    /// The path that the gateway serves itself. Default `/.lockgate/`.
    pub path: Text,
    /// The other origins whose pages may read challenges, as browsers write them. Default none.
    pub origins: Vec<Text>,
}

// === impl ChallengeSettings ===

impl ChallengeSettings {
    /// The table that presets imply: all settings have their defaults.
    pub(in crate::config) fn implied(span: Range<usize>) -> Self {
        SectionReader::read_defaults(span, challenge)
    }
}

const SHORTEST: Duration = Duration::from_secs(900);
const HTTPS_PORT: u16 = 443;
const LONGEST: Duration = Duration::from_secs(86_400);

pub(super) fn challenge(s: &mut SectionReader<'_, '_>) -> ChallengeSettings {
    let lifetime = between(SHORTEST, LONGEST, duration());
    ChallengeSettings {
        span: s.span(),
        difficulty: s.or("difficulty", integer(1..=6), 1u8),
        lifetime: s.or("lifetime", lifetime, Duration::from_secs(3_600)),
        path: s.or("path", reserved_path(), "/.lockgate/".to_owned()),
        origins: s.array_or("origins", origin(), []),
    }
}

/// A path prefix in normal form.
fn reserved_path() -> SettingType<String> {
    let shape = ValueSchema::string_of_form(schema::RESERVED_PATH, &[]);
    SettingType::new(shape, |value: &DeValue<'_>| {
        let path = string(value, "a path")?;
        let inner = path.strip_prefix('/').and_then(|path| path.strip_suffix('/'));
        if inner.is_some_and(|inner| inner.split('/').all(is_segment)) {
            return Ok(path.to_owned());
        }
        let message = format!("`{path}` is not a path that can be reserved");
        Err(ValueError::new(message)
            .help("write segments of letters, digits, `.`, `_`, `~` and `-` between slashes, as in \"/.lockgate/\""))
    })
    .shown(|path| ExampleValue::Text(path.clone()))
}

/// Whether a segment has only unreserved characters, and not only dots.
fn is_segment(segment: &str) -> bool {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    segment.bytes().all(is_unreserved) && segment.bytes().any(|byte| byte != b'.')
}

/// An origin with https, in the form of the `Origin` header: in lower case and without the default port.
fn origin() -> SettingType<String> {
    let shape = ValueSchema::string_of_form(schema::ORIGIN, &["https://app.example.com"]);
    SettingType::new(shape, |value: &DeValue<'_>| {
        let written = string(value, "an origin")?;
        serialized(written).ok_or_else(|| {
            ValueError::new(format!("`{written}` is not an origin with https"))
                .help("write the scheme, the host and any port: \"https://app.example.com\"")
        })
    })
    .shown(|origin| ExampleValue::Text(origin.clone()))
}

fn serialized(written: &str) -> Option<String> {
    let lower = written.to_ascii_lowercase();
    let authority = written
        .strip_prefix("https://")
        .and(lower.strip_prefix("https://"))?;
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0.len() + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at_checked(host)?;
    let port = match port.strip_prefix(':') {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().ok()?,
        None if port.is_empty() => HTTPS_PORT,
        _ => return None,
    };
    is_host(host).then(|| {
        if port == HTTPS_PORT {
            format!("https://{host}")
        } else {
            format!("https://{host}:{port}")
        }
    })
}

fn is_host(host: &str) -> bool {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let is_v6_part = |byte: u8| byte.is_ascii_hexdigit() || b".:".contains(&byte);
    match inner {
        Some(v6) => !v6.is_empty() && v6.bytes().all(is_v6_part),
        None => !host.is_empty() && host.bytes().all(is_part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        let accepted = |written| serialized(written).unwrap();
        assert_eq!(
            accepted("https://App.Example.com"),
            "https://app.example.com"
        );
        assert_eq!(accepted("https://a.example:443"), "https://a.example");
        assert_eq!(accepted("https://a.example:8443"), "https://a.example:8443");
        assert_eq!(accepted("https://[::1]:8443"), "https://[::1]:8443");
        for wrong in [
            "http://a.example",
            "https://",
            "https://a.example/",
            "https://a.example:",
            "https://a.example:port",
            "https://u@a.example",
            "https://*.example",
            "a.example",
            "*",
            "null",
        ] {
            assert_eq!(serialized(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_segment_is_unreserved_and_not_a_dot_segment() {
        assert!([".lockgate", "a-b_c~1"].into_iter().all(is_segment));
        assert!(
            !["", ".", "..", "a%20b", "a b", "ä", "{id}", "*"]
                .into_iter()
                .any(is_segment)
        );
    }
}
