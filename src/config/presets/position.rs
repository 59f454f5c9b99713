//! Where presets stand among `[[rules]]`: all together after the last rule with `action = "allow"`,
//! or next to the rule that `before` or `after` names.

use super::Preset;
use crate::config::file::{ConfigFile, PresetPosition};
use crate::config::suggest::did_you_mean;
use crate::config::{Diagnostics, Text};
use crate::decision::Action;

/// The order of presets between two rules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    AfterRule,
    Block,
    BeforeRule,
}

/// Sets the slots of the presets, and sorts the presets by position. Reports unknown rules.
pub fn place(file: &ConfigFile, presets: &mut [Preset], out: &mut Diagnostics) {
    let is_allow = |rule: &crate::config::file::RuleSettings| rule.action.value == Action::Allow;
    let block = file.rules.iter().rposition(is_allow).map_or(0, |at| at + 1);
    let mut ranks = vec![Rank::Block; file.protect.len()];
    for preset in presets.iter_mut() {
        let Some(protect) = file.protect.get(preset.index) else {
            continue;
        };
        let (slot, rank) = match &protect.position {
            None => (block, Rank::Block),
            Some(PresetPosition::Before(name)) => match rule(file, name, out) {
                Some(at) => (at, Rank::BeforeRule),
                None => (block, Rank::Block),
            },
            Some(PresetPosition::After(name)) => match rule(file, name, out) {
                Some(at) => (at + 1, Rank::AfterRule),
                None => (block, Rank::Block),
            },
        };
        preset.slot = slot;
        if let Some(own) = ranks.get_mut(preset.index) {
            *own = rank;
        }
    }
    presets.sort_by_key(|preset| (preset.slot, ranks.get(preset.index).copied(), preset.index));
}

/// Returns the number of the rule with this name. Reports an unknown name.
fn rule(file: &ConfigFile, name: &Text, out: &mut Diagnostics) -> Option<usize> {
    let mut names = file.rules.iter().map(|rule| &*rule.name.value);
    let found = names.clone().position(|own| own == name.value);
    if found.is_none() && !names.any(str::is_empty) {
        let names = file.rules.iter().map(|rule| &*rule.name.value);
        let near = did_you_mean(&name.value, names);
        let message = format!("unknown rule `{}`{near}", name.value);
        let unknown = out.unknown(name.span.clone(), message);
        unknown.help("name an entry of `[[rules]]`");
    }
    found
}
