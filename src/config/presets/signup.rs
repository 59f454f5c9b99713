//! `kind = "signup"`: new accounts that send invitations or messages in bulk.

use super::conditions::{CLEARANCE, CLIENT};
use super::draft::RuleDraft;
use super::draft::Span::{Hours, Minutes};
use crate::config::Spanned;
use crate::config::expr_text::ExprText;
use crate::config::file::ProtectSettings;

/// The share of new devices among all actions above which the alarm starts, unless the preset says
/// otherwise.
const ALARM: f64 = 0.75;

/// Returns the rules of a registration and its actions, in order.
pub fn rules(preset: &ProtectSettings) -> Vec<RuleDraft> {
    let (strict, acts) = (preset.strict.value, !preset.actions.is_empty());
    let mut rules = Vec::new();
    if strict && acts {
        rules.push(RuleDraft::new(preset, "strict", young(preset)).challenge());
    }
    if strict {
        let registration = preset.request().into_text();
        rules.push(RuleDraft::new(preset, "register", registration.clone()).challenge());
        rules.push(registrations(preset, registration));
    }
    if acts {
        rules.push(account(preset));
    }
    if acts && !strict {
        rules.push(new_devices(preset));
    }
    if acts {
        rules.push(clearance(preset));
    }
    rules
}

/// Three registrations per clearance and hour, then the next challenge.
fn registrations(preset: &ProtectSettings, registration: ExprText) -> RuleDraft {
    let rule = RuleDraft::new(preset, "register-clearance", registration);
    let rule = rule.by(CLEARANCE).skip_missing();
    rule.limit(3, Hours(1)).ban(&[Hours(1)]).challenge()
}

/// The actions of one device.
fn account(preset: &ProtectSettings) -> RuleDraft {
    let rule = RuleDraft::new(preset, "account", preset.action().into_text());
    let rule = rule.by(CLIENT).skip_missing();
    rule.limit(20, Hours(1)).ban(&[Hours(1)])
}

/// Most actions suddenly come from new devices.
fn new_devices(preset: &ProtectSettings) -> RuleDraft {
    let own = preset.ratio.clone();
    let ratio = own.unwrap_or_else(|| Spanned::new(ALARM, preset.span.clone()));
    let rule = RuleDraft::new(preset, "new-devices", young(preset)).counting_only();
    let rule = rule.share(ratio, preset.action().into_text());
    let rule = rule.limit(20, Minutes(10)).ban(&[Hours(1), Hours(6)]);
    rule.challenge()
}

/// Five actions per clearance and hour, then the next challenge.
fn clearance(preset: &ProtectSettings) -> RuleDraft {
    let rule = RuleDraft::new(preset, "clearance", young(preset));
    let rule = rule.by(CLEARANCE).skip_missing();
    rule.limit(5, Hours(1)).ban(&[Hours(1)]).challenge()
}

/// The actions of new devices.
fn young(preset: &ProtectSettings) -> ExprText {
    preset.action().and_young(preset).into_text()
}
