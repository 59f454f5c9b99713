//! Reads gateway.toml and reports all errors in one run.
//!
//! [`file::read`] turns text into [`file::ConfigFile`], in which each value keeps its span. It does
//! not interpret the values and opens only the file itself and its included files.

use std::path::Path;
use std::time::Duration;

use toml::de::DeValue;

pub mod blueprint;
mod compile;
pub mod file;
pub mod schema;

mod check;
mod check_challenge;
mod diagnostics;
mod environment;
mod expr_text;
mod expressions;
mod include;
mod limiter;
pub mod lint;
mod located_error;
mod lookup;
pub mod presets;
mod render;
mod scalar;
mod section;
mod source;
mod spanned;
mod suggest;
mod syntax;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use compile::{compile, is_secret, report_unopened, startup_settings};
pub use diagnostics::{Diagnostic, Diagnostics, RelatedSpan, Severity};
pub use environment::{FilledReference, restored};
pub use expr_text::{ExprText, ExprUse, TextOrigin};
pub use file::read;
pub use lint::LintCode;
pub use located_error::LocatedError;
pub use lookup::warn_unresolved_names;
pub use source::{ConfigSource, SourceFile, TextPosition};
pub use spanned::{Spanned, Text};
pub use suggest::nearest;

/// Parses a duration as written in the file, such as `10s`. The error contains a correct example.
pub fn duration(text: &str) -> Result<Duration, String> {
    let value = DeValue::String(text.into());
    let parsed = scalar::duration().parse(&value);
    parsed.map_err(|wrong| match wrong.help {
        Some(help) => format!("{}: {help}", wrong.message),
        None => wrong.message,
    })
}

/// Renders a duration as a user would write it, such as `10s`.
pub fn duration_text(duration: Duration) -> String {
    scalar::duration_text(duration)
}

/// Reads the file at `path` and its included files. Always returns the source, so that errors can be shown.
pub fn load(
    path: &Path,
    diagnostics: &mut Diagnostics,
) -> (ConfigSource, Option<file::ConfigFile>) {
    match ConfigSource::load(path, diagnostics) {
        Ok(mut source) => {
            include::include(&mut source, diagnostics);
            let file = read(&source, diagnostics);
            (source, file)
        }
        Err(source) => (source, None),
    }
}
