//! Reads `[admin]` and `[log]`.

use http::HeaderName;
use toml::de::DeValue;

use super::UNKNOWN;
use crate::config::Spanned;
use crate::config::defaults;
use crate::config::file::{Access, Admin, Level, Log, LogFormat};
use crate::config::scalar::{Scalar, Wrong, choice, header_name, path, socket};
use crate::config::schema::Value;
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
    let address = s.optional("address", socket());
    let token_file = s.optional("token_file", path());
    if let (false, Some(span)) = (s.has("address"), s.key_span("token_file")) {
        s.out
            .warning(span, "there is no admin port without `address`")
            .help("add `address = \"127.0.0.1:9901\"`");
    }
    // One that was refused is not absent.
    let refused = s
        .key_span("address")
        .map(|span| Spanned::new(UNKNOWN, span));
    let address = address.or(refused)?;
    if !address.value.ip().is_loopback() && !s.has("token_file") {
        s.out
            .lacks(
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
        access: s.or("access", access(), Access::Stdout),
        redact: s.array_or(
            "redact",
            header_name(),
            defaults::REDACT.map(HeaderName::from_static),
        ),
    }
}

/// Words that nobody means as the name of a file.
const NO_FILES: &[&str] = &[
    "stderr", "stdin", "on", "true", "yes", "enabled", "false", "no", "none", "disabled", "null",
    "-", "console", "syslog", "journal", "journald",
];

fn access() -> Scalar<Access> {
    let examples = &["stdout", "off", "access.log"];
    let file = path().examples(examples);
    let help = "write \"stdout\", \"off\" or the path of a file";
    let parse = move |value: &DeValue<'_>| match value.as_str() {
        Some("off") => Ok(Access::Off),
        Some("stdout") => Ok(Access::Stdout),
        Some(word) if NO_FILES.contains(&&*word.to_ascii_lowercase()) => {
            let wrong = Wrong::new(format!("the access log cannot go to `{word}`"));
            Err(wrong.help(format!("{help}; a file of that name is \"./{word}\"")))
        }
        _ => path()
            .parse(value)
            .map(Access::File)
            .map_err(|wrong| wrong.help(help)),
    };
    Scalar::new(file.shape(), parse).shown(show_access)
}

fn show_access(access: &Access) -> Value {
    Value::Text(match access {
        Access::Off => "off".to_owned(),
        Access::Stdout => "stdout".to_owned(),
        Access::File(path) => path.display().to_string(),
    })
}
