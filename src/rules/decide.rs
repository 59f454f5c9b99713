//! Plan result → decision: what happens to the request, and which quota headers its client gets.

use std::time::Duration;

use super::compiled_rule::CompiledRule;
use super::quota::{retry_wait, turn_wait};
use super::{KeyStatus, Plan, PlanResult, Rule, RuleSet, Step, StepOp, StepResult};
use crate::decision::{Action, DecidedBy, Decision, RuleEvent, RuleEventKind, RuleIndex, Verdict};

// === impl RuleSet ===

impl RuleSet {
    /// Returns what happens to the request, from the store's result for its plan.
    pub fn decide(&self, plan: &Plan, result: &PlanResult) -> Decision {
        let mut decision = Decision::default();
        self.decide_into(plan, result, &mut decision);
        decision
    }

    /// Writes the decision of [`RuleSet::decide`] into an empty `decision`, to avoid copying it.
    pub fn decide_into(&self, plan: &Plan, result: &PlanResult, decision: &mut Decision) {
        decision.at = result.at;
        let mut ended_at = None;
        let mut candidate = None;
        for step_result in &result.steps {
            let Some(step) = plan.steps.get(usize::from(step_result.step)) else {
                continue;
            };
            let Some(compiled) = self.compiled(step.rule) else {
                continue;
            };
            if step.candidate {
                candidate = Some(is_mitigated(step, step_result));
            } else if let Some(end) = ended_at {
                decision.add_peeked(plan, &compiled.rule, (step, step_result), end);
            } else {
                // With or without the candidate, a request with a clearance passes.
                if let Some(candidate) =
                    candidate.take().filter(|_| !compiled.rule.has_passed(step))
                {
                    decision.compare(step, step_result, candidate);
                }
                let ends = decision.add_result(compiled, step, step_result);
                ended_at = ends.then_some(step_result.step);
            }
        }
    }

    /// Adds the rules that count the response to `decision`: their events and quota headers.
    pub fn add_response_phase(&self, decision: &mut Decision, settled: &Plan) {
        for step in settled.steps.iter().filter(|step| !step.candidate) {
            decision.add_match_events(step);
        }
        decision.add_settled_quotas(self, settled);
    }
}

// === impl Decision ===

impl Decision {
    /// Responds with 503, unless a rule has already ended evaluation.
    pub fn refuse_without_store(&mut self, rule: RuleIndex) {
        let ended = self.settle_before.is_some() || self.verdict != Verdict::Forward;
        if !ended {
            self.drop_waits();
            self.verdict = Verdict::Unavailable { rule };
        }
    }

    /// Adds one rule's result; returns whether evaluation ends here.
    #[inline(always)]
    fn add_result(&mut self, compiled: &CompiledRule, step: &Step, result: &StepResult) -> bool {
        self.add_match_events(step);
        if compiled.sends_quota_headers {
            self.add_quota(&compiled.rule, step, result);
        }
        if is_mitigated(step, result) {
            return self.add_mitigation(&compiled.rule, step, result);
        }
        if result.reading.is_some_and(|reading| reading.waits()) {
            self.queue(&compiled.rule, step, result);
        }
        false
    }

    /// Adds a rule that acts, or would act; returns whether evaluation ends here.
    #[inline(never)]
    fn add_mitigation(&mut self, rule: &Rule, step: &Step, result: &StepResult) -> bool {
        if rule.has_passed(step) {
            self.unchallenged.get_or_insert(step.rule);
            return false;
        }
        let event = if rule.dry_run {
            RuleEventKind::WouldMitigate
        } else {
            RuleEventKind::Mitigated
        };
        self.events.push(RuleEvent {
            rule: step.rule,
            event,
        });
        let decided_by = DecidedBy {
            rule: step.rule,
            action: rule.action,
            dry_run: rule.dry_run,
        };
        if rule.dry_run {
            self.decided_by.get_or_insert(decided_by);
            return false;
        }
        let ends = self.act(decided_by);
        self.hold_for(rule, (step, result));
        ends
    }

    /// Adds a step that was only peeked at, because the step `end` ended evaluation. For a later
    /// rule: how long it would refuse, or its quota headers. For an earlier rule that this request
    /// filled up: how long it would refuse a retry.
    #[inline(never)]
    fn add_peeked(
        &mut self,
        plan: &Plan,
        rule: &Rule,
        (step, result): (&Step, &StepResult),
        end: u16,
    ) {
        let blocks = matches!(
            self.verdict,
            Verdict::Block { .. } | Verdict::Challenge { .. }
        );
        if result.step < end {
            if blocks && result.status != KeyStatus::Within {
                let wait = retry_wait(result, self.at);
                self.extend_retry_after(wait);
                if let Some(wait) = wait {
                    let remaining = result.reading.map_or(0, |reading| reading.remaining);
                    self.extend_quota(step.rule, remaining, wait);
                }
            }
            return;
        }
        let stops = blocks || matches!(self.verdict, Verdict::Shadow { .. });
        // After waiting for a block, a client can solve a challenge.
        let is_solvable = rule.action == Action::Challenge
            && !self.blocks_challenges
            && matches!(self.verdict, Verdict::Block { .. });
        let refuses = rule.refuses() && !is_solvable;
        if stops && refuses && is_mitigated(step, result) && !plan.is_cut_before(result) {
            self.extend_retry_after(retry_wait(result, self.at));
        }
        if self.verdict.poses_as_origin() {
            self.add_unreached_quota(rule, step, result);
        }
    }

    /// Records a difference between a rule and its candidate.
    #[cold]
    fn compare(&mut self, step: &Step, result: &StepResult, candidate: bool) {
        let event = match (is_mitigated(step, result), candidate) {
            (false, true) => RuleEventKind::CandidateActs,
            (true, false) => RuleEventKind::CandidatePasses,
            _ => return,
        };
        self.events.push(RuleEvent {
            rule: step.rule,
            event,
        });
    }

    #[inline(always)]
    fn add_match_events(&mut self, step: &Step) {
        let rule = step.rule;
        if step.op.counts() && !step.only_total {
            self.events.push(RuleEvent {
                rule,
                event: RuleEventKind::Counted,
            });
        }
        if step.mitigates {
            self.events.push(RuleEvent {
                rule,
                event: RuleEventKind::Matched,
            });
        }
    }

    /// Applies an action to the request; returns whether evaluation ends here.
    pub(super) fn act(&mut self, decided_by: DecidedBy) -> bool {
        let rule = decided_by.rule;
        match decided_by.action {
            Action::Delay | Action::Log => {}
            Action::Tag => self.tags.push(rule),
            Action::Allow => {
                self.verdict = Verdict::Forward;
                // The rule itself was reached, so it still counts the response.
                self.settle_before = Some(RuleIndex(rule.0.saturating_add(1)));
            }
            Action::Shadow if !self.blocks_shadows => self.verdict = Verdict::Shadow { rule },
            Action::Divert => self.verdict = Verdict::Divert { rule },
            Action::Close => self.verdict = Verdict::Close { rule },
            Action::Challenge if !self.blocks_challenges => {
                let retry_after = None;
                self.verdict = Verdict::Challenge { rule, retry_after };
            }
            Action::Block | Action::Tarpit | Action::Shadow | Action::Challenge => {
                let retry_after = None;
                self.verdict = Verdict::Block { rule, retry_after };
            }
        }
        if decided_by.action.is_terminal() {
            self.decided_by = Some(decided_by);
        } else {
            self.decided_by.get_or_insert(decided_by);
        }
        decided_by.action.is_terminal()
    }

    /// Sets how long an action holds the request, or refuses retries. An action that stops the
    /// request at once removes all waits.
    fn hold_for(&mut self, rule: &Rule, (step, result): (&Step, &StepResult)) {
        let at = self.at;
        match rule.action {
            Action::Delay => self.delay(rule, turn_wait(step, result, at)),
            Action::Close => self.drop_waits(),
            // A client that cannot read the shadow response is refused.
            Action::Shadow if !self.blocks_shadows => self.refused_for = retry_wait(result, at),
            Action::Block | Action::Tarpit | Action::Shadow | Action::Challenge => {
                let waits = self.hold;
                self.drop_waits();
                if rule.action == Action::Tarpit {
                    self.hold = waits.max(rule.max_delay);
                }
                self.refuse_for(retry_wait(result, at));
            }
            Action::Divert | Action::Tag | Action::Log | Action::Allow => {}
        }
    }

    /// Adds the wait of another rule that would refuse: the longest one counts, `None` if no wait helps.
    fn extend_retry_after(&mut self, wait: Option<Duration>) {
        let both = self.refused_for.zip(wait);
        self.refuse_for(both.map(|(one, other)| one.max(other)));
    }
}

// === impl Plan ===

impl Plan {
    /// Whether a retry would never reach this result's rule, however long the client waits.
    fn is_cut_before(&self, result: &StepResult) -> bool {
        let before = self.steps.iter().take(usize::from(result.step));
        let cuts = |step: &Step| step.op == StepOp::Always && step.is_terminal;
        before.filter(|step| step.mitigates).any(cuts)
    }
}

/// Whether the rule acts on the request, or would act.
#[inline]
pub(super) fn is_mitigated(step: &Step, result: &StepResult) -> bool {
    step.mitigates && result.status != KeyStatus::Within
}
