//! `lockgate import cloudflare`: the JSON of a Cloudflare ruleset as `[[rules]]`.
//!
//! Nothing is dropped in silence: what cannot be carried over is a comment above its rule and a
//! line on standard error. Nothing is known here about what the gateway can do: each rule is given
//! to the real configuration, and one that it refuses is written as a comment, so what is written
//! always loads.

mod action;
mod draft;
mod judge;
mod quote;
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

/// No more is read: a pipe may have no end.
const MOST: usize = 16 << 20;

/// What became of a file.
struct Imported {
    /// The configuration.
    toml: String,
    /// A line for each thing that could not be carried over, and the sum.
    said: Vec<String>,
}

/// 0 if there were rules, also if some could only be written as comments; 1 if there were none.
pub fn cloudflare(path: &Path) -> ExitCode {
    match import(path) {
        Ok(imported) => {
            let printed = print(&imported.toml);
            imported.said.iter().for_each(|line| print_error(line));
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
    match bytes.len() > MOST {
        true => Err(format!(
            "{name}: larger than {} MiB, which no export of rules is",
            MOST >> 20
        )),
        false => convert(&name, &bytes),
    }
}

/// How to call the file, and what is in it, as far as a byte past the bound.
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

/// The whole of it, without input and output.
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
            "{file}: the rules do not load together: {}",
            errors.join("; ")
        )),
    }
}

/// A rule, judged.
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
