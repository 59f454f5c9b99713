//! Findings → decision: what becomes of the request, and what a client is told.

use std::time::Duration;

use super::course::Course;
use super::quota::{rest, turn};
use super::{Finding, Findings, Op, Plan, Rule, RuleSet, Standing, Step};
use crate::clock::Timestamp;
use crate::decision::{Action, Credit, Decision, Event, Mark, RuleIndex, Verdict};

// === impl RuleSet ===

impl RuleSet {
    /// What becomes of the request, from what a store found for its plan.
    pub fn decide(&self, plan: &Plan, findings: &Findings, now: Timestamp) -> Decision {
        let mut decision = Decision::default();
        self.decide_into(plan, findings, now, &mut decision);
        decision
    }

    /// [`RuleSet::decide`], into a decision that says nothing yet: a request has it copied nowhere.
    pub fn decide_into(
        &self,
        plan: &Plan,
        findings: &Findings,
        now: Timestamp,
        decision: &mut Decision,
    ) {
        let mut ended = false;
        let mut candidate = None;
        let steps = plan.steps.as_slice();
        for finding in findings {
            let Some(step) = steps.get(usize::from(finding.step)) else {
                continue;
            };
            let Some(course) = self.course(step.rule) else {
                continue;
            };
            if step.candidate {
                candidate = Some(acted(step, finding));
            } else if ended {
                decision.take_after_end(plan, &course.rule, (step, finding), now);
            } else {
                if let Some(candidate) = candidate.take() {
                    decision.compare(step, finding, candidate);
                }
                ended = decision.take(course, step, finding, now);
            }
        }
    }

    /// Takes in the rules that count the response: what a client is told of them is what was
    /// known when the request came.
    pub fn settled(&self, decision: &mut Decision, settled: &Plan) {
        for step in settled.steps.iter().filter(|step| !step.candidate) {
            decision.mark(step);
        }
        decision.tell_settled(settled);
    }
}

// === impl Decision ===

impl Decision {
    /// Takes in one rule's finding; `true`: the pass ends here.
    #[inline(always)]
    fn take(&mut self, course: &Course, step: &Step, finding: &Finding, now: Timestamp) -> bool {
        self.mark(step);
        if course.tells {
            self.tell(&course.rule, step, finding, now);
        }
        if acted(step, finding) {
            return self.take_acted(&course.rule, step, finding, now);
        }
        if finding.reading.is_some_and(|reading| reading.waits()) {
            self.queue(&course.rule, step, finding);
        }
        false
    }

    /// Takes in a rule that acts, or would; `true`: the pass ends here.
    #[inline(never)]
    fn take_acted(&mut self, rule: &Rule, step: &Step, finding: &Finding, now: Timestamp) -> bool {
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
        let ends = self.act(credit);
        self.hold_for(rule, (step, finding), now);
        ends
    }

    /// A rule that is only looked at: how long it would refuse, or what it would tell.
    #[inline(never)]
    fn take_after_end(
        &mut self,
        plan: &Plan,
        rule: &Rule,
        (step, finding): (&Step, &Finding),
        now: Timestamp,
    ) {
        let stops = matches!(self.verdict, Verdict::Block { .. } | Verdict::Shadow { .. });
        if stops && rule.refuses() && acted(step, finding) && !plan.is_cut_before(finding) {
            self.lengthen(rest(finding, now));
        }
        if self.verdict.pretends() {
            self.tell_unreached(rule, step, finding, now);
        }
    }

    /// Notes where a rule and its candidate differ.
    #[cold]
    fn compare(&mut self, step: &Step, finding: &Finding, candidate: bool) {
        let event = match (acted(step, finding), candidate) {
            (false, true) => Event::CandidateActs,
            (true, false) => Event::CandidatePasses,
            _ => return,
        };
        self.marks.push(Mark {
            rule: step.rule,
            event,
        });
    }

    #[inline]
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

    /// What an action makes of the request; `true`: the pass ends here.
    pub(super) fn act(&mut self, credit: Credit) -> bool {
        let rule = credit.rule;
        match credit.action {
            Action::Delay | Action::Log => {}
            Action::Tag => self.tags.push(rule),
            Action::Allow => {
                self.verdict = Verdict::Forward;
                // The rule itself was reached: it still counts the answer.
                self.settle_before = Some(RuleIndex(rule.0.saturating_add(1)));
            }
            Action::Shadow => self.verdict = Verdict::Shadow { rule },
            Action::Divert => self.verdict = Verdict::Divert { rule },
            Action::Close => self.verdict = Verdict::Close { rule },
            Action::Block | Action::Tarpit => {
                let retry_after = None;
                self.verdict = Verdict::Block { rule, retry_after };
            }
        }
        match credit.action.is_terminal() {
            true => self.credit = Some(credit),
            false => _ = self.credit.get_or_insert(credit),
        }
        credit.action.is_terminal()
    }

    /// How long an action holds the request, or keeps its client away. One that stops it at once
    /// leaves nothing to wait for.
    fn hold_for(&mut self, rule: &Rule, (step, finding): (&Step, &Finding), now: Timestamp) {
        match rule.action {
            Action::Delay => self.delay(rule, turn(step, finding, now)),
            Action::Close => self.drop_waits(),
            Action::Block | Action::Tarpit => {
                let waits = self.hold;
                self.drop_waits();
                if rule.action == Action::Tarpit {
                    self.hold = waits.max(rule.max_delay);
                }
                self.refuse_for(rest(finding, now));
            }
            // For those who are refused instead.
            Action::Shadow => self.refused_for = rest(finding, now),
            Action::Divert | Action::Tag | Action::Log | Action::Allow => {}
        }
    }

    /// Another rule that would refuse too: the longest wait counts, and none if no wait helps.
    pub(super) fn lengthen(&mut self, wait: Option<Duration>) {
        let both = self.refused_for.zip(wait);
        self.refuse_for(both.map(|(one, other)| one.max(other)));
    }
}

// === impl Plan ===

impl Plan {
    /// Whether a request that comes again would not get as far as this finding's rule, however
    /// long it waits.
    fn is_cut_before(&self, finding: &Finding) -> bool {
        let before = self.steps.iter().take(usize::from(finding.step));
        let cuts = |step: &Step| step.op == Op::Always && step.ends_pass;
        before.filter(|step| step.acts).any(cuts)
    }
}

/// Whether the rule acts on the request, or would.
#[inline]
pub(super) fn acted(step: &Step, finding: &Finding) -> bool {
    step.acts && finding.standing != Standing::Within
}
