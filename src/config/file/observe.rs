//! `[admin]` and `[log]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::HeaderName;
use toml::de::DeValue;
use tracing::Level;

use super::UNKNOWN;
use super::expressions::{NamedExpression, expressions};
use super::response::allowed;
use crate::config::scalar::{SettingType, ValueError, choice, filled, header_name, path, socket};
use crate::config::schema::{ExampleValue, HEADER_NAME_OR_EMPTY, ValueSchema};
use crate::config::section::SectionReader;
use crate::config::{Spanned, Text};
use crate::observe::LogOutput;

/// `[admin]` with an address.
#[derive(Clone, Debug)]
pub struct AdminSettings {
    /// The address of the admin port.
    pub address: Spanned<SocketAddr>,
    /// A file with the token. Required if the address is not loopback.
    pub token_file: Option<Spanned<PathBuf>>,
}

/// `[log]`.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// The minimum log level. Default info.
    pub level: Spanned<Level>,
    /// The log format. Default auto.
    pub format: Spanned<LogOutput>,
    /// The destination of the access log. Default standard output.
    pub access: Spanned<AccessLogSettings>,
    /// Headers that are logged only as a keyed hash of their values. Default `authorization`,
    /// `cookie`, `set-cookie`, `x-api-key`.
    pub redact: Vec<Spanned<HeaderName>>,
    /// Key parts that logs and listings show in clear although they come from a redacted header. Default none.
    pub reveal: Vec<Text>,
    /// The response header that carries the id of the request. Default none.
    pub request_id_header: Spanned<Option<HeaderName>>,
    /// Additional fields of the access log, in file order.
    pub fields: Vec<NamedExpression>,
}

/// The destination of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogSettings {
    /// No access log.
    Off,
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

const LEVELS: &[(&str, Level)] = &[
    ("error", Level::ERROR),
    ("warn", Level::WARN),
    ("info", Level::INFO),
    ("debug", Level::DEBUG),
    ("trace", Level::TRACE),
];
const FORMATS: &[(&str, LogOutput)] = &[
    ("auto", LogOutput::Auto),
    ("text", LogOutput::Text),
    ("json", LogOutput::Json),
];

pub(super) fn admin(s: &mut SectionReader<'_, '_>) -> Option<AdminSettings> {
    let address = s.optional("address", socket());
    let token_file = s.optional("token_file", path());
    // A setting that was refused is not absent.
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
    Some(AdminSettings {
        address,
        token_file,
    })
}

pub(super) fn log(s: &mut SectionReader<'_, '_>) -> LogSettings {
    LogSettings {
        level: s.or("level", choice(LEVELS, &[]), Level::INFO),
        format: s.or("format", choice(FORMATS, &[]), LogOutput::Auto),
        access: s.or("access", access(), AccessLogSettings::Stdout),
        redact: s.array_or(
            "redact",
            header_name(),
            ["authorization", "cookie", "set-cookie", "x-api-key"].map(HeaderName::from_static),
        ),
        reveal: s.array_or("reveal", filled(), []),
        request_id_header: s.or("request_id_header", request_id_header(), None),
        fields: s.table("fields", expressions).unwrap_or_default(),
    }
}

/// A response header that the gateway may add. An empty string means none.
fn request_id_header() -> SettingType<Option<HeaderName>> {
    let named = header_name();
    let shape = ValueSchema::string_of_form(HEADER_NAME_OR_EMPTY, &["x-request-id"]);
    let parse = move |value: &DeValue<'_>| {
        if value.as_str() == Some("") {
            return Ok(None);
        }
        let name = named.parse(value)?;
        allowed(&name).map(|()| Some(name))
    };
    let show = |name: &Option<HeaderName>| {
        ExampleValue::Text(name.as_ref().map(HeaderName::to_string).unwrap_or_default())
    };
    SettingType::new(shape, parse).shown(show)
}

/// Words that are probably a mistake and not a file name.
const NO_FILES: &[&str] = &[
    "stderr", "stdin", "on", "true", "yes", "enabled", "false", "no", "none", "disabled", "null",
    "-", "console", "syslog", "journal", "journald",
];

fn access() -> SettingType<AccessLogSettings> {
    let examples = &["stdout", "off", "access.log"];
    let file = path().examples(examples);
    let help = "write \"stdout\", \"off\" or the path of a file";
    let parse = move |value: &DeValue<'_>| match value.as_str() {
        Some("off") => Ok(AccessLogSettings::Off),
        Some("stdout") => Ok(AccessLogSettings::Stdout),
        Some(word) if NO_FILES.contains(&&*word.to_ascii_lowercase()) => {
            let wrong = ValueError::new(format!("the access log cannot go to `{word}`"));
            Err(wrong.help(format!(
                "{help}; for a file of that name, write \"./{word}\""
            )))
        }
        _ => path()
            .parse(value)
            .map(AccessLogSettings::File)
            .map_err(|wrong| wrong.help(help)),
    };
    SettingType::new(file.shape(), parse).shown(show_access)
}

fn show_access(access: &AccessLogSettings) -> ExampleValue {
    ExampleValue::Text(match access {
        AccessLogSettings::Off => "off".to_owned(),
        AccessLogSettings::Stdout => "stdout".to_owned(),
        AccessLogSettings::File(path) => path.display().to_string(),
    })
}
