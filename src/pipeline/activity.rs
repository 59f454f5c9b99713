//! Records what happens to requests, for the admin API. See [`crate::observe::activity`].

use std::sync::Arc;

use http::header::{HOST, USER_AGENT};
use smallvec::SmallVec;

use super::access_entry;
use super::engine::Evaluation;
use super::request_context::RequestContext;
use super::respond::HandledResponse;
use super::started_bans::{BanScene, record_started_bans};
use crate::decision::{DecidedBy, RuleEventKind, RuleIndex, Verdict};
use crate::limit::CounterReading;
use crate::observe::activity::{
    ActionClass, DecidedKey, DecisionRecord, MAX_TEXT, RequestSample, RuleKeyHash, cut_text,
    shortened,
};
use crate::rules::{KeyStatus, Rule, Step, StepOp, StepResult};

/// The key and the counter by which a rule decided a request.
pub struct RuleEvidence {
    rule: RuleIndex,
    key: SmallVec<[u8; 32]>,
    /// The hash of the rule and the key.
    hash: RuleKeyHash,
    is_banned: bool,
    /// The units that the key has used. `None` for a key that was already banned and without a limit.
    count: Option<u64>,
    /// `None` for a rule without a limit.
    limit: Option<u64>,
}

// === impl RequestContext ===

impl RequestContext<'_, '_> {
    /// Records the keys that the request counts, the bans that it starts and the key by which a rule decides it.
    pub(super) fn record_evaluation(&mut self, evaluation: &Evaluation) {
        let (plan, result) = (&evaluation.plan, &evaluation.result);
        let core = &self.state.core;
        let scene = || BanScene::of(self.facts, self.snapshot(), None);
        record_started_bans(core, self.snapshot(), (plan, result), scene);
        core.activity.count_keys(plan, result, || self.sample(None));
        if self.decision.decided_by.is_some() || self.decision.queued.is_some() {
            self.record_evidence(evaluation);
        }
    }

    /// Counts the requests that bans mitigate, and keeps the key of the rule that decides.
    #[inline(never)]
    fn record_evidence(&mut self, evaluation: &Evaluation) {
        let decided_by = self.decision.decided_by.map(|by| by.rule);
        let deciding = decided_by.or(self.decision.queued);
        let (plan, core) = (&evaluation.plan, &self.state.core);
        for step_result in &evaluation.result.steps {
            let step = plan.steps.get(usize::from(step_result.step));
            let Some(step) = step.filter(|step| !step.candidate) else {
                continue;
            };
            let decides = deciding == Some(step.rule) && self.evidence.is_none();
            let ban = match step_result.status {
                KeyStatus::Banned { until, .. } if self.has_acted(step.rule) => Some(until),
                _ => None,
            };
            if !decides && ban.is_none() {
                continue;
            }
            let key = plan.key(step);
            let hash = core.activity.hash_key(step.id, key);
            if let Some(until) = ban {
                let seen = (self.now, self.facts.client);
                core.activity.hit_ban(hash, (step.id, key), until, seen);
            }
            if decides {
                self.evidence = Some(RuleEvidence::of(step, step_result, key, hash));
            }
        }
    }

    /// Returns whether a rule acted on the request, or would have in a dry run.
    fn has_acted(&self, rule: RuleIndex) -> bool {
        let acted = [RuleEventKind::Mitigated, RuleEventKind::WouldMitigate];
        let mut events = self.decision.events.iter();
        events.any(|event| event.rule == rule && acted.contains(&event.event))
    }

    /// Counts the request and records its decision.
    pub(super) fn record_response(&self, handled: &HandledResponse) {
        if !self.is_decision.get() {
            return;
        }
        let activity = &self.state.core.activity;
        let class = self.class(handled);
        let is_forwarded = self.decision.verdict == Verdict::Forward;
        activity.count(class, handled.upstream_latency.filter(|_| is_forwarded));
        if let Some(decided_by) = self.decision.decided_by {
            self.record_decision(decided_by, handled);
        } else if class == ActionClass::Forward && activity.is_watched() {
            let status = handled.response.status().as_u16();
            activity.sample_forwarded(|| self.decision_record(status));
        }
    }

    /// Returns the class of the request: `own` for an error that no rule and no origin server sent.
    fn class(&self, handled: &HandledResponse) -> ActionClass {
        let is_rules = matches!(
            self.decision.verdict,
            Verdict::Block { .. } | Verdict::Challenge { .. } | Verdict::Close { .. }
        );
        let is_error = handled.response.status().as_u16() >= 400;
        if is_error && !handled.by_route && !is_rules {
            ActionClass::Own
        } else {
            ActionClass::of(&self.decision, &self.snapshot().rules)
        }
    }

    #[inline(never)]
    fn record_decision(&self, decided_by: DecidedBy, handled: &HandledResponse) {
        let Some(rule) = self.snapshot().rules.get(decided_by.rule) else {
            return;
        };
        let activity = &self.state.core.activity;
        let evidence = self.evidence.as_ref();
        let evidence = evidence.filter(|evidence| evidence.rule == decided_by.rule);
        let hash = evidence.map(|evidence| evidence.hash);
        let by = DecidedKey {
            hash: hash.unwrap_or_else(|| activity.hash_key(rule.id, &[])),
            name: &rule.name,
            action: decided_by.action.name(),
            client: self.facts.client,
        };
        let status = handled.response.status().as_u16();
        let request = (self.facts.head.path.as_bytes(), status);
        activity.decide(&by, request, || {
            let record = DecisionRecord {
                action: by.action,
                dry_run: decided_by.dry_run,
                ..self.decision_record(status)
            };
            self.with_rule(record, rule, evidence)
        });
    }

    /// Adds the rule, its key and its counter to a record.
    fn with_rule(
        &self,
        record: DecisionRecord,
        rule: &Rule,
        evidence: Option<&RuleEvidence>,
    ) -> DecisionRecord {
        let hash = |bytes: &[u8]| self.snapshot().redactor.hash(bytes);
        let key = evidence.map(|evidence| rule.key.list(&evidence.key, &hash).into());
        DecisionRecord {
            rule: Some(rule.name.clone()),
            key,
            banned: evidence.is_some_and(|evidence| evidence.is_banned),
            count: evidence.and_then(|evidence| evidence.count),
            limit: evidence.and_then(|evidence| evidence.limit),
            ..record
        }
    }

    /// Describes the request without a rule, redacted as in the access log.
    fn decision_record(&self, status: u16) -> DecisionRecord {
        let (facts, snapshot) = (self.facts, self.snapshot());
        let tls = facts.connection.tls.as_ref();
        let user_agent = access_entry::header(facts.headers, &USER_AGENT, snapshot);
        DecisionRecord {
            ts: facts.now,
            id: cut_text(facts.id, MAX_TEXT).into(),
            client_ip: facts.client,
            asn: facts.asn(),
            country: facts.country().copied(),
            ja4: tls.map(|tls| (*tls.hello.ja4).into()),
            method: cut_text(facts.head.method.as_str(), MAX_TEXT).into(),
            host: shortened(facts.head.host.as_bytes()).into(),
            path: shortened(facts.head.path.as_bytes()).into(),
            query: facts
                .head
                .query
                .map(|query| shortened(query.as_bytes()).into()),
            status,
            user_agent: user_agent.map(|header| shortened(&header).into()),
            rule: None,
            action: ActionClass::Forward.name(),
            key: None,
            dry_run: false,
            banned: false,
            count: None,
            limit: None,
            repeat: 1,
        }
    }

    /// Returns the request in the form of an `explain` request, redacted as in the access log.
    pub(super) fn sample(&self, status: Option<u16>) -> Arc<str> {
        let (facts, snapshot) = (self.facts, self.snapshot());
        let tls = facts.connection.tls.as_ref();
        let sample = RequestSample {
            method: facts.head.method.as_str(),
            https: tls.is_some(),
            authority: facts.head.authority(),
            target: &facts.head.uri(),
            ip: facts.client,
            asn: facts.asn(),
            country: facts.country(),
            ja3: tls.map(|tls| &*tls.hello.ja3),
            ja4: tls.map(|tls| &*tls.hello.ja4),
            status,
        };
        let names = facts.headers.keys().filter(|name| **name != HOST);
        let headers = names.filter_map(|name| {
            let value = access_entry::header(facts.headers, name, snapshot)?;
            Some((name, value))
        });
        sample.to_json(headers).into()
    }
}

// === impl RuleEvidence ===

impl RuleEvidence {
    fn of(step: &Step, result: &StepResult, key: &[u8], hash: RuleKeyHash) -> Self {
        let was_banned = matches!(result.status, KeyStatus::Banned { started: false, .. });
        let reading = result.reading.filter(|_| !was_banned);
        Self {
            rule: step.rule,
            key: key.into(),
            hash,
            is_banned: matches!(result.status, KeyStatus::Banned { .. }),
            count: reading.map(|reading| units_with(step, reading)),
            limit: (step.op != StepOp::Always).then(|| step.limiter.capacity()),
        }
    }
}

/// Returns the units that a key has used, together with those of this request.
pub(super) fn units_with(step: &Step, reading: CounterReading) -> u64 {
    // A reading of a key that was just banned has no counts.
    if step.limiter.ratio.is_some() && reading.share.count > 0 {
        return reading.share.count.into();
    }
    let used = step.limiter.capacity().saturating_sub(reading.remaining);
    if reading.fits && step.op.counts() {
        used
    } else {
        used.saturating_add(step.cost)
    }
}
