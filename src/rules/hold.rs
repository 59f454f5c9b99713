//! Requests that wait: how long they are held, and what happens if they cannot be held.

use std::time::Duration;

use super::quota::whole_seconds;
use super::{KeyStatus, Rule, RuleSet, Step, StepOp, StepResult};
use crate::decision::{Action, DecidedBy, Decision, RuleEvent, RuleEventKind, RuleIndex, Verdict};
use crate::limit::CounterReading;

// === impl RuleSet ===

impl RuleSet {
    /// Changes the decision of a request that cannot be held because too many requests are held already. A
    /// queued request is refused by the rule that queues it; any other request is handled without the wait.
    pub fn cannot_hold(&self, decision: &mut Decision) {
        let queued = decision.queued.take();
        if let Some((index, rule)) = queued.and_then(|index| Some((index, self.get(index)?))) {
            decision.leave_queue(index, rule);
        }
        decision.hold = Duration::ZERO;
        decision.refuse_for(decision.refused_for);
    }
}

// === impl Decision ===

impl Decision {
    /// Adds the time that an admitted request waits for its turn.
    #[inline(never)]
    pub(super) fn queue(&mut self, rule: &Rule, step: &Step, step_result: &StepResult) {
        let Some(reading) = step_result.reading.filter(CounterReading::waits) else {
            return;
        };
        let admitted = step.op == StepOp::Admit && step_result.status == KeyStatus::Within;
        if !admitted || rule.dry_run {
            return;
        }
        self.hold = self.hold.max(reading.wait());
        if !rule.has_passed(step) {
            self.queued.get_or_insert(step.rule);
        }
    }

    /// Adds the time that a `delay` rule holds a request: until its turn, or at most `max_delay`.
    pub(super) fn delay(&mut self, rule: &Rule, turn: Option<Duration>) {
        let turn = turn.unwrap_or(Duration::MAX);
        self.hold = self.hold.max(turn.min(rule.max_delay));
    }

    /// Removes all waits, because the request is stopped.
    pub(super) fn drop_waits(&mut self) {
        self.hold = Duration::ZERO;
        self.queued = None;
    }

    /// Sets how long retries of a blocked request are refused.
    pub(super) fn refuse_for(&mut self, wait: Option<Duration>) {
        self.refused_for = wait;
        if let Verdict::Block { retry_after, .. } | Verdict::Challenge { retry_after, .. } =
            &mut self.verdict
        {
            let left = wait.map(|wait| wait.saturating_sub(self.hold));
            *retry_after = left.map(|left| whole_seconds(left).max(1));
        }
    }

    /// Acts on a request that waits in a rule's queue, as if the queue were full.
    fn leave_queue(&mut self, index: RuleIndex, rule: &Rule) {
        self.forget_after(index, rule.action);
        self.act(DecidedBy {
            rule: index,
            action: rule.action,
            dry_run: false,
        });
        self.tags.sort();
        self.events.push(RuleEvent {
            rule: index,
            event: RuleEventKind::Mitigated,
        });
        if rule.refuses() || rule.action == Action::Shadow {
            let wait = self.hold.saturating_add(spacing(rule));
            self.refused_for = Some(wait);
            self.extend_quota(index, 0, wait);
        }
    }

    /// Drops the events of later rules that are no longer reached. Their counters stay charged.
    fn forget_after(&mut self, index: RuleIndex, action: Action) {
        let ends = action.is_terminal();
        self.decided_by = self.decided_by.filter(|decided_by| {
            let stays = decided_by.action.is_terminal() && !decided_by.dry_run && !ends;
            decided_by.rule < index || stays
        });
        let is_undone = |event: &RuleEvent| {
            let acted = matches!(
                event.event,
                RuleEventKind::Mitigated | RuleEventKind::WouldMitigate
            );
            ends && acted && event.rule > index
        };
        self.events.retain(|event| !is_undone(event));
        self.tags.retain(|tag| !ends || *tag < index);
    }

    /// Extends the rule's quota status: a retry does not fit before `wait` is over.
    pub(super) fn extend_quota(&mut self, index: RuleIndex, remaining: u64, wait: Duration) {
        let seconds = whole_seconds(wait).max(1);
        for quota in self.quotas.iter_mut().filter(|quota| quota.rule == index) {
            quota.remaining = quota.remaining.min(remaining);
            quota.reset = seconds;
        }
    }
}

/// The time between two requests that leave a queue.
fn spacing(rule: &Rule) -> Duration {
    let spacing = rule.limiter.and_then(|limiter| {
        let limit = u32::try_from(limiter.limit).ok()?;
        limiter.period.checked_div(limit)
    });
    spacing.unwrap_or_default()
}
