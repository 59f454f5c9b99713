//! Says in the log that a key was banned: once, when the ban begins.

use super::Core;
use crate::clock::Rfc3339;
use crate::observe::Field::{Flag, Text};
use crate::rules::{Findings, Plan, Standing};
use crate::snapshot::Snapshot;

/// Writes a line for each ban that began in `findings`.
pub fn tell(core: &Core, snapshot: &Snapshot, plan: &Plan, findings: &Findings) {
    for finding in findings {
        let Standing::Banned {
            until,
            started: true,
        } = finding.standing
        else {
            continue;
        };
        let Some(step) = plan.steps.get(usize::from(finding.step)) else {
            continue;
        };
        let Some(rule) = snapshot.rules.get(step.rule).filter(|_| !step.candidate) else {
            continue;
        };
        let hash = |bytes: &[u8]| snapshot.redactor.hash(bytes).to_string();
        let key = rule.key.describe(plan.key(step), &hash);
        core.live.lasting.log.info(
            "banned",
            &[
                Text("rule", &rule.name),
                Text("key", &key),
                Text("action", &rule.action.name()),
                Flag("dry_run", rule.dry_run),
                Text("until", &Rfc3339(until)),
            ],
        );
    }
}
