//! Reads `[admin]` and `[log]`.

use std::path::PathBuf;

use http::HeaderName;
use toml::de::DeValue;

use crate::config::Spanned;
use crate::config::defaults;
use crate::config::file::{Access, Admin, Level, Log, LogFormat};
use crate::config::scalar::{Parsed, choice, header_name, path, socket};
use crate::config::section::Section;

const LEVELS: &[(&str, Level)] = &[
    ("error", Level::Error),
    ("warn", Level::Warn),
    ("info", Level::Info),
    ("debug", Level::Debug),
    ("trace", Level::Trace),
];
const FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

pub(super) fn admin(s: &mut Section<'_, '_>) -> Option<Admin> {
    let address = s.optional("address", socket);
    let token_file = s.optional("token_file", path);
    let address = address?;
    if !address.value.ip().is_loopback() && !s.has("token_file") {
        s.out
            .error(
                address.span.clone(),
                "`token_file` is required when the address is not loopback",
            )
            .help("add `token_file = \"admin.token\"`, or listen on \"127.0.0.1:9901\"");
    }
    Some(Admin {
        address,
        token_file,
    })
}

pub(super) fn log(s: &mut Section<'_, '_>) -> Log {
    Log {
        level: s.or("level", choice(LEVELS, &[]), defaults::LOG_LEVEL),
        format: s.or("format", choice(FORMATS, &[]), defaults::LOG_FORMAT),
        access: s.or("access", access, Access::Stdout),
        redact: redact(s),
    }
}

fn access(value: &DeValue<'_>) -> Parsed<Access> {
    let written: PathBuf = path(value)?;
    Ok(match written.to_str() {
        Some("off") => Access::Off,
        Some("stdout") => Access::Stdout,
        _ => Access::File(written),
    })
}

fn redact(s: &mut Section<'_, '_>) -> Vec<Spanned<HeaderName>> {
    let span = s.span();
    let default = |name| Spanned::new(HeaderName::from_static(name), span.clone());
    s.array("redact", header_name)
        .unwrap_or_else(|| defaults::REDACT.into_iter().map(default).collect())
}
