//! gateway.toml: read as written, with every mistake found in one go.
//!
//! [`read()`] turns text into [`file::File`], where each value keeps its place in the file. What the
//! values mean to the gateway is not known here, and nothing is opened but the file itself and what
//! it includes.

use std::path::Path;
use std::time::Duration;

use toml::de::DeValue;

use crate::observe::{Format, Level};
use crate::snapshot::{Lasting, Snapshot};

mod compile;
pub mod defaults;
pub mod file;
pub mod schema;

mod check;
mod diagnostics;
mod include;
mod limiter;
mod lookup;
mod read;
mod render;
mod scalar;
mod section;
mod source;
mod spanned;
mod suggest;
mod suspect;
#[cfg(test)]
mod tests;

pub use compile::{Context, compile, fixed, is_secret, secret};
pub use diagnostics::{Diagnostic, Diagnostics, Related, Severity};
pub use lookup::look_up;
pub use read::read;
pub use source::{Part, Position, Source};
pub use spanned::{Spanned, Text};
pub use suggest::nearest;

/// How the gateway's own log is to be kept.
pub fn log(file: &file::File) -> (Level, Format) {
    let level = match file.log.level.value {
        file::Level::Error => Level::Error,
        file::Level::Warn => Level::Warn,
        file::Level::Info => Level::Info,
        file::Level::Debug | file::Level::Trace => Level::Debug,
    };
    let format = match file.log.format.value {
        file::LogFormat::Text => Format::Text,
        file::LogFormat::Json => Format::Json,
    };
    (level, format)
}

/// A duration as it is written in the file, `10s`; the error says what would be right.
pub fn duration(text: &str) -> Result<Duration, String> {
    let value = DeValue::String(text.into());
    let parsed = scalar::duration().parse(&value);
    parsed.map_err(|wrong| match wrong.help {
        Some(help) => format!("{}: {help}", wrong.message),
        None => wrong.message,
    })
}

/// Reads the file at `path` and those that it includes. The source is there in any case, so that what went wrong can be shown.
pub fn load(path: &Path, diagnostics: &mut Diagnostics) -> (Source, Option<file::File>) {
    match Source::load(path, diagnostics) {
        Ok(mut source) => {
            include::include(&mut source, diagnostics);
            let file = read(&source, diagnostics);
            (source, file)
        }
        Err(source) => (source, None),
    }
}

/// Compiles `file` and leaves no trace: nothing is opened for writing.
pub fn rehearse(
    file: &file::File,
    source: &Source,
    lasting: &Lasting,
    diagnostics: &mut Diagnostics,
) -> Option<Snapshot> {
    let mut cx = Context {
        source,
        lasting,
        check_only: true,
        previous: None,
        diagnostics,
    };
    compile(file, &mut cx)
}
