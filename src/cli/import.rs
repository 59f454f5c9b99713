//! `lockgate import cloudflare`: converts the JSON of a Cloudflare ruleset to `[[rules]]`.
//!
//! Nothing is dropped silently: what cannot be converted becomes a comment above its rule and a
//! line on standard error. This module does not know what the gateway supports: it validates each
//! rule with the real configuration loader and writes a refused rule as a comment, so the output
//! always loads.

mod action;
mod draft;
mod judge;
pub(super) mod quote;
mod rule;
mod shape;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::ExitCode;

use draft::{RuleDraft, UsedNames};
use shape::CloudflareRuleset;
use write::TomlWriter;

use super::{print, print_error};

/// The maximum size of the input in bytes, because a pipe may be endless.
const MOST: usize = 16 << 20;

/// The result of an import.
struct Imported {
    /// The configuration as TOML.
    toml: String,
    /// One message for each thing that could not be converted, and the totals.
    messages: Vec<String>,
}

/// Returns exit code 0 if the input has rules, even if some become comments; 1 if it has none.
pub fn cloudflare(path: &Path) -> ExitCode {
    match import(path) {
        Ok(imported) => {
            let printed = print(&imported.toml);
            imported.messages.iter().for_each(|line| print_error(line));
            printed
        }
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

fn import(path: &Path) -> Result<Imported, String> {
    let (name, read) = load(path);
    let bytes = read.map_err(|error| format!("{name}: cannot read: {error}"))?;
    if bytes.len() > MOST {
        Err(format!(
            "{name}: larger than {} MiB, too large for an export of rules",
            MOST >> 20
        ))
    } else {
        convert(&name, &bytes)
    }
}

/// Returns the name of the input for messages, and its content up to one byte above `MOST`.
fn load(path: &Path) -> (String, io::Result<Vec<u8>>) {
    if path.as_os_str() == "-" {
        return ("stdin".to_owned(), bounded(io::stdin().lock()));
    }
    let name = quote::visible(&path.display().to_string());
    (name, File::open(path).and_then(bounded))
}

fn bounded(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Converts the JSON, without I/O.
fn convert(file: &str, json: &[u8]) -> Result<Imported, String> {
    let document = shape::parse(file, json)?;
    let rulesets = shape::rulesets(&document).map_err(|error| format!("{file}: {error}"))?;
    let mut names = UsedNames::default();
    let mut writer = TomlWriter::new(file);
    for ruleset in &rulesets {
        writer.ruleset(ruleset);
        for rule in ruleset.rules {
            writer.rule(drafted(rule, &mut names));
        }
    }
    let imported = writer.finish();
    match judge::errors(&imported.toml).as_slice() {
        [] => Ok(imported),
        errors => Err(format!(
            "{file}: the imported rules are not valid together: {}",
            errors.join("; ")
        )),
    }
}

/// Converts and validates one rule.
fn drafted(rule: &serde_json::Value, names: &mut UsedNames) -> RuleDraft {
    let mut draft = rule::read(rule, names);
    if draft.is_empty() {
        return draft;
    }
    judge::find_lists(&mut draft);
    for error in judge::errors(&draft.fragment()) {
        draft.refuse(error);
    }
    draft
}
