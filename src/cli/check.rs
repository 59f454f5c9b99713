//! `lockgate check`: loads everything that `lockgate run` would load and reports errors and warnings.

mod presets;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{OutputFormat, print};
use crate::clock::Clock;
use crate::config::file::ConfigFile;
use crate::config::{self, ConfigSource, Diagnostics, LintCode};

/// Returns exit code 0 if the file is usable and 1 if not. `allow` silences warnings; with
/// `deny_warnings`, the remaining warnings also cause exit code 1.
pub fn check(
    path: &Path,
    format: OutputFormat,
    allow: &[LintCode],
    deny_warnings: bool,
) -> ExitCode {
    let mut diagnostics = Diagnostics::new();
    for code in allow {
        diagnostics.allow(*code, 0..usize::MAX);
    }
    let (source, file) = config::load(path, &mut diagnostics);
    if let Some(file) = &file {
        let clock = Clock::System;
        config::compile(file, &source, clock.now(), None, &mut diagnostics);
        config::warn_unresolved_names(file, &clock, &mut diagnostics);
    }
    let printed = print_report(&diagnostics, &source, file.as_ref(), format);
    let denied = deny_warnings && diagnostics.has_warnings();
    if denied || diagnostics.has_errors() {
        return ExitCode::FAILURE;
    }
    printed
}

/// Prints the diagnostics. Returns exit code 1 if printing fails.
pub fn print_findings(
    diagnostics: &Diagnostics,
    source: &ConfigSource,
    format: OutputFormat,
) -> ExitCode {
    print_report(diagnostics, source, None, format)
}

/// Prints the diagnostics and, for a file without errors, what its presets do.
fn print_report(
    diagnostics: &Diagnostics,
    source: &ConfigSource,
    file: Option<&ConfigFile>,
    format: OutputFormat,
) -> ExitCode {
    let file = file.filter(|_| !diagnostics.has_errors());
    match format {
        OutputFormat::Human => human(diagnostics, source, file),
        OutputFormat::Json => print(&format!("{:#}\n", report(diagnostics, source, file))),
    }
}

fn human(diagnostics: &Diagnostics, source: &ConfigSource, file: Option<&ConfigFile>) -> ExitCode {
    let color = std::io::stdout().is_terminal();
    let mut text = diagnostics.render(source, color);
    if !diagnostics.has_errors() {
        text.push_str(&format!("{}: ok\n", source.path));
        for included in source.parts().skip(1) {
            text.push_str(&format!("{}: ok, included\n", included.path));
        }
    }
    text.extend(file.map(|file| presets::human(file, source)));
    print(&text)
}

fn report(diagnostics: &Diagnostics, source: &ConfigSource, file: Option<&ConfigFile>) -> Value {
    let list = diagnostics.sorted().into_iter().map(|diagnostic| {
        let at = source.position(diagnostic.span.start);
        json!({
            "severity": diagnostic.severity.name(),
            "code": diagnostic.code.map(LintCode::name),
            "file": source.part(diagnostic.span.start).path,
            "line": at.line,
            "column": at.column,
            "message": diagnostic.message,
            "help": diagnostic.help,
        })
    });
    json!({
        "ok": !diagnostics.has_errors(),
        "files": source.parts().map(|part| part.path).collect::<Vec<_>>(),
        "diagnostics": list.collect::<Vec<_>>(),
        "presets": file.map_or(json!([]), |file| presets::json(file, source)),
    })
}
