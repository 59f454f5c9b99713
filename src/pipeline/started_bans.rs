//! Logs the bans that a request starts, and records why they started.

use std::borrow::Cow;

use http::Method;
use http::header::USER_AGENT;
use tracing::info;

use super::access_entry;
use super::activity::units_with;
use super::core::CoreState;
use crate::clock::Rfc3339;
use crate::facts::RequestFacts;
use crate::observe::activity::{BanCause, BanStart, shortened};
use crate::rules::{KeyStatus, Plan, PlanResult, Rule, RuleCost, Step};
use crate::snapshot::Snapshot;
use crate::store::ListedBan;

/// The request that may start a ban, as far as the cause shows it.
#[derive(Clone, Debug)]
pub struct BanScene<'a> {
    method: Method,
    path: Cow<'a, [u8]>,
    /// The status of the response. `None` before the response.
    status: Option<u16>,
    /// `None` if the request has no such header.
    user_agent: Option<Cow<'a, [u8]>>,
}

// === impl BanScene ===

impl<'a> BanScene<'a> {
    /// Returns what a cause shows of a request.
    pub fn of(facts: &'a RequestFacts<'_>, snapshot: &Snapshot, status: Option<u16>) -> Self {
        Self {
            method: facts.head.method.clone(),
            path: Cow::Borrowed(shortened(facts.head.path.as_bytes())),
            status,
            user_agent: access_entry::header(facts.headers, &USER_AGENT, snapshot),
        }
    }

    /// Returns a copy that can be kept longer than the request.
    pub fn into_owned(self) -> BanScene<'static> {
        let owned = |text: Cow<'_, [u8]>| Cow::Owned(shortened(&text).to_vec());
        BanScene {
            method: self.method,
            path: owned(self.path),
            status: self.status,
            user_agent: self.user_agent.map(owned),
        }
    }

    fn cause(&self, rule: &Rule, step: &Step, count: u64) -> String {
        let limiter = &step.limiter;
        let cause = BanCause {
            count,
            counts_requests: matches!(rule.cost, RuleCost::Fixed(1)),
            period: (!limiter.algorithm.holds_leases()).then_some(limiter.period),
            method: self.method.as_str(),
            path: &self.path,
            status: self.status,
            user_agent: self.user_agent.as_deref(),
        };
        cause.to_text()
    }
}

/// Logs and records each ban that started in the result of a plan. `scene` is called only if one did.
pub fn record_started_bans<'a>(
    core: &CoreState,
    snapshot: &Snapshot,
    (plan, result): (&Plan, &PlanResult),
    scene: impl Fn() -> BanScene<'a>,
) {
    for step_result in &result.steps {
        let KeyStatus::Banned {
            until,
            started: true,
        } = step_result.status
        else {
            continue;
        };
        let Some(step) = plan.steps.get(usize::from(step_result.step)) else {
            continue;
        };
        let Some(rule) = snapshot.rules.get(step.rule).filter(|_| !step.candidate) else {
            continue;
        };
        let count = step_result
            .reading
            .map_or(step.cost, |reading| units_with(step, reading));
        let cause = scene().cause(rule, step, count);
        let ban = ListedBan {
            offence: result.offence(step_result.step),
            cause: Some(cause.into()),
            ..ListedBan::started(step.id, plan.key(step), until, result.at)
        };
        record_started_ban(core, snapshot, (rule, plan.key(step)), ban, count);
    }
}

/// Logs a ban, records why it started, and adds it to the fleet's list of bans.
fn record_started_ban(
    core: &CoreState,
    snapshot: &Snapshot,
    (rule, key): (&Rule, &[u8]),
    ban: ListedBan,
    count: u64,
) {
    let hash = |bytes: &[u8]| snapshot.redactor.hash(bytes);
    let cause = ban.cause.as_deref().unwrap_or_default();
    info!(
        rule = %rule.name,
        key = %rule.key.describe(key, &hash),
        action = %rule.action.name(),
        dry_run = rule.dry_run,
        until = %Rfc3339(ban.until),
        count,
        %cause,
        "banned"
    );
    core.activity.start_ban(&rule.name, || BanStart {
        rule: ban.rule,
        name: rule.name.clone(),
        key: key.into(),
        until: ban.until,
        cause: cause.into(),
    });
    if !core.store.store().is_local() {
        core.store
            .index_started_ban(ban, rule.key.list(key, &hash).into());
    }
}
