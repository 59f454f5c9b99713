//! `[admin]` and `[log]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::HeaderName;

use crate::config::Spanned;

/// `[admin]` with an address.
#[derive(Clone, Debug)]
pub struct Admin {
    /// Where the admin port listens.
    pub address: Spanned<SocketAddr>,
    /// A file with the token; there in a file without errors if the address is not loopback.
    pub token_file: Option<Spanned<PathBuf>>,
}

/// `[log]`.
#[derive(Clone, Debug)]
pub struct Log {
    /// What is worth a line. Default info.
    pub level: Spanned<Level>,
    /// How a line looks. Default text.
    pub format: Spanned<LogFormat>,
    /// Where the access log goes. Default standard output.
    pub access: Spanned<Access>,
    /// Headers whose values appear only as a keyed hash. Default `authorization`, `cookie`,
    /// `set-cookie`, `x-api-key`.
    pub redact: Vec<Spanned<HeaderName>>,
}

/// What is worth a log line, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something is odd.
    Warn,
    /// What an operator wants to know.
    Info,
    /// What a developer wants to know.
    Debug,
    /// Everything.
    Trace,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}
