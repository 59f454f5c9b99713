//! Findings → decision: what becomes of the request, and what a client is told.

use std::time::Duration;

use super::{Finding, Findings, Op, Plan, Rule, RuleSet, Standing, Step};
use crate::clock::Timestamp;
use crate::decision::{Action, Credit, Decision, Event, Mark, Quota, RuleIndex, Verdict};

// === impl RuleSet ===

impl RuleSet {
    /// What becomes of the request, from what a store found for its plan.
    pub fn decide(&self, plan: &Plan, findings: &Findings, now: Timestamp) -> Decision {
        let mut decision = Decision {
            quotas: Vec::with_capacity(findings.len()),
            marks: Vec::with_capacity(2 * findings.len()),
            ..Decision::default()
        };
        let mut ended = false;
        for finding in findings {
            let Some(step) = plan.steps.get(usize::from(finding.step)) else {
                continue;
            };
            let Some(rule) = self.get(step.rule) else {
                continue;
            };
            if ended {
                decision.lengthen(finding, now);
            } else {
                ended = decision.take(rule, step, finding, now);
            }
        }
        decision
    }

    /// Takes in the rules that count the response: what a client is told of them is what was
    /// known when the request came.
    pub fn settled(&self, decision: &mut Decision, settled: &Plan) {
        for step in &settled.steps {
            decision.mark(step);
        }
        let counted = |rule| settled.steps.iter().any(|step| step.rule == rule);
        let tentative = std::mem::take(&mut decision.tentative);
        decision
            .quotas
            .extend(tentative.into_iter().filter(|quota| counted(quota.rule)));
        decision.quotas.sort_by_key(|quota| quota.rule);
    }
}

// === impl Decision ===

impl Decision {
    /// Takes in one rule's finding; `true`: the pass ends here.
    fn take(&mut self, rule: &Rule, step: &Step, finding: &Finding, now: Timestamp) -> bool {
        self.mark(step);
        let acted = step.acts && finding.standing != Standing::Within;
        self.tell(rule, step, finding, acted, now);
        if !acted {
            return false;
        }
        let event = match rule.dry_run {
            true => Event::WouldMitigate,
            false => Event::Mitigated,
        };
        self.marks.push(Mark {
            rule: step.rule,
            event,
        });
        let credit = Credit {
            rule: step.rule,
            action: rule.action,
            dry_run: rule.dry_run,
        };
        if rule.dry_run {
            self.credit.get_or_insert(credit);
            return false;
        }
        self.act(credit, finding, now)
    }

    fn mark(&mut self, step: &Step) {
        let rule = step.rule;
        if matches!(step.op, Op::Admit | Op::Charge) {
            self.marks.push(Mark {
                rule,
                event: Event::Counted,
            });
        }
        if step.acts {
            self.marks.push(Mark {
                rule,
                event: Event::Matched,
            });
        }
    }

    fn tell(&mut self, rule: &Rule, step: &Step, finding: &Finding, acted: bool, now: Timestamp) {
        if !rule.tells() || step.op == Op::Always {
            return;
        }
        let Some(quota) = quota(step.rule, finding, acted, now) else {
            return;
        };
        if acted || matches!(step.op, Op::Admit | Op::Charge) {
            self.quotas.push(quota);
        } else if rule.counts_response() {
            self.tentative.push(quota);
        }
    }

    fn act(&mut self, credit: Credit, finding: &Finding, now: Timestamp) -> bool {
        let rule = credit.rule;
        match credit.action {
            Action::Delay | Action::Tag | Action::Log => {
                self.credit.get_or_insert(credit);
                return false;
            }
            // The rule itself was reached: it still counts the answer.
            Action::Allow => self.settle_before = Some(RuleIndex(rule.0.saturating_add(1))),
            Action::Shadow => self.verdict = Verdict::Shadow { rule },
            Action::Divert => self.verdict = Verdict::Divert { rule },
            Action::Close => self.verdict = Verdict::Close { rule },
            Action::Block | Action::Tarpit => {
                let retry_after = wait(finding, now);
                self.verdict = Verdict::Block { rule, retry_after };
            }
        }
        self.credit = Some(credit);
        true
    }

    /// Another rule that would refuse too: the longest wait counts, and none if no wait helps.
    pub(super) fn lengthen(&mut self, finding: &Finding, now: Timestamp) {
        if finding.standing == Standing::Within {
            return;
        }
        if let Verdict::Block { retry_after, .. } = &mut self.verdict {
            let other = wait(finding, now);
            *retry_after = retry_after.zip(other).map(|(one, other)| one.max(other));
        }
    }
}

fn quota(rule: RuleIndex, finding: &Finding, acted: bool, now: Timestamp) -> Option<Quota> {
    let (remaining, reset) = match (finding.standing, finding.reading) {
        (Standing::Banned { until, .. }, _) => (0, until.since(now)),
        (_, Some(reading)) if acted => (reading.remaining, reading.retry_after.unwrap_or_default()),
        (_, Some(reading)) => (reading.remaining, reading.reset_after),
        (_, None) => return None,
    };
    Some(Quota {
        rule,
        remaining,
        reset: match acted {
            true => whole_seconds(reset).max(1),
            false => whole_seconds(reset),
        },
    })
}

/// Whole seconds until a retry is admitted; `None`: waiting does not help.
fn wait(finding: &Finding, now: Timestamp) -> Option<u64> {
    let wait = match finding.standing {
        Standing::Banned { until, .. } => until.since(now),
        Standing::Over => finding.reading?.retry_after?,
        Standing::Within => return None,
    };
    Some(whole_seconds(wait).max(1))
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
