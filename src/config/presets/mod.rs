//! Presets: a `[[protect]]` table expands to rules, one file per kind.
//!
//! The rules keep the spans of the preset, so that errors and warnings point into its table.
//! Nothing after loading knows presets: the engine, stores and metrics see ordinary rules.

mod conditions;
mod draft;
mod implied;
mod login;
mod overrides;
mod pages;
mod position;
mod signup;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::time::Duration;

use super::Diagnostics;
use super::expr_text::ExprText;
use super::file::{ConfigFile, PresetKind, ProtectSettings};
pub use draft::RuleDraft;

/// A preset and what it expands to.
#[derive(Clone, Debug)]
pub struct Preset {
    /// The preset's number in the file.
    pub index: usize,
    /// The rules, in order.
    pub rules: Vec<RuleDraft>,
    /// How clients become known. `None` if the preset says nothing about it.
    pub source: Option<KnownSource>,
    /// The position of its first rule among the `[[rules]]` of the file.
    pub slot: usize,
}

/// What makes clients known.
#[derive(Clone, Debug)]
pub struct KnownSource {
    /// Selects the requests whose user `user` reads.
    pub request: ExprText,
    /// Selects the responses that make a client known.
    pub success: ExprText,
    /// The user of a request. `None` if the preset does not know it.
    pub user: Option<ExprText>,
}

/// Expands the presets of a file, in the order in which their rules stand. Reports the errors that
/// concern several settings or the other rules.
pub(super) fn expand(file: &ConfigFile, out: &mut Diagnostics) -> Vec<Preset> {
    names_are_free(file, out);
    lifetimes_agree(file, out);
    let mut presets = Vec::new();
    for (index, preset) in file.protect.iter().enumerate() {
        if let Some(kind) = preset.kind {
            let mut rules = rules_of(preset, kind);
            overrides::apply(preset, &mut rules, out);
            presets.push(Preset {
                index,
                rules,
                source: source(preset, kind),
                slot: 0,
            });
        }
    }
    position::place(file, &mut presets, out);
    presets
}

/// Inserts the rules of the presets of a file, and the tables that the presets imply.
pub(super) fn apply(file: &mut ConfigFile, out: &mut Diagnostics) {
    // The slots count the rules that are written: the last preset comes first.
    for at in (0..file.presets.len()).rev() {
        let Some(preset) = file.presets.get(at) else {
            continue;
        };
        let is_free = |rule: &&RuleDraft| {
            let mut others = file.rules.iter();
            !others.any(|other| other.name.value == rule.settings.name.value)
        };
        // Names that are not free have errors already.
        let rules: Vec<_> = preset.rules.iter().filter(is_free).collect();
        let rules: Vec<_> = rules
            .into_iter()
            .map(|rule| rule.settings.clone())
            .collect();
        let slot = preset.slot.min(file.rules.len());
        file.rules.splice(slot..slot, rules);
    }
    implied::tables(file, out);
}

fn rules_of(preset: &ProtectSettings, kind: PresetKind) -> Vec<RuleDraft> {
    match kind {
        PresetKind::Login => login::rules(preset),
        PresetKind::Pages => pages::rules(preset),
        PresetKind::Signup => signup::rules(preset),
    }
}

fn source(preset: &ProtectSettings, kind: PresetKind) -> Option<KnownSource> {
    let is_login = match kind {
        PresetKind::Login => true,
        PresetKind::Signup => false,
        PresetKind::Pages => return None,
    };
    Some(KnownSource {
        request: preset.source_request().into_text(),
        success: preset.source_success(is_login).into_text(),
        user: preset.user_key(),
    })
}

/// Reports presets of one name, and rules whose name could be that of a preset's rule.
fn names_are_free(file: &ConfigFile, out: &mut Diagnostics) {
    let mut seen: Vec<&ProtectSettings> = Vec::new();
    for preset in file.protect.iter().filter(|one| !one.name.value.is_empty()) {
        match seen.iter().find(|one| one.name.value == preset.name.value) {
            None => seen.push(preset),
            Some(first) => {
                let name = &preset.name;
                let message = format!("two presets are named `{}`", name.value);
                out.error(name.span.clone(), message)
                    .related(first.name.span.clone(), "the first one")
                    .help("set `name`: it is the first part of the names of the rules");
            }
        }
    }
    for rule in &file.rules {
        let first = rule.name.value.split_once('/').map(|(first, _)| first);
        let preset = seen.iter().find(|one| Some(&*one.name.value) == first);
        if let Some(preset) = preset {
            let message = format!(
                "`{}` is the name of a rule of the preset `{}`",
                rule.name.value, preset.name.value
            );
            out.error(rule.name.span.clone(), message)
                .related(preset.name.span.clone(), "the preset")
                .help("rename the rule, or remove the preset that it replaces");
        }
    }
}

/// Reports presets with different lifetimes of the one known-client cookie.
fn lifetimes_agree(file: &ConfigFile, out: &mut Diagnostics) {
    let written = file.protect.iter().filter_map(|one| one.known.as_ref());
    let mut first: Option<(Duration, Range<usize>)> = None;
    for known in written {
        match &first {
            None => first = Some((known.value, known.span.clone())),
            Some((lifetime, span)) if *lifetime != known.value => {
                let message = "two presets set different lifetimes of the known-client cookie";
                out.error(known.span.clone(), message)
                    .related(span.clone(), "the other lifetime")
                    .help("the cookie has one lifetime: set `known` in one preset only");
            }
            Some(_) => {}
        }
    }
}
