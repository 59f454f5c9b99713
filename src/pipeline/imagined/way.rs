//! From facts to a report: plan, store, decision, an imagined answer and its settling, in the order
//! of live traffic.

use std::sync::Arc;

use http::Response;

use super::{Imagined, Outcome, Report, To, with_disabled};
use crate::action::{self, Asked, Fault, Redirect};
use crate::body::Body;
use crate::decision::{Action, Decision, Verdict};
use crate::expr::Facts;
use crate::facts::{RequestFacts, ResponseFacts};
use crate::pipeline::forward::{fault, is_too_large};
use crate::pipeline::stop;
use crate::rules::trace::Pass;
use crate::rules::{Findings, Plan};
use crate::snapshot::{Snapshot, Target};
use crate::store::Store;

/// A request on its way.
pub(super) struct Way<'a> {
    pub(super) imagined: &'a Imagined,
    pub(super) snapshot: &'a Snapshot,
    pub(super) store: &'a Store,
    pub(super) asked: &'a Asked<'a>,
    pub(super) facts: &'a RequestFacts<'a>,
    pub(super) target: Option<&'a Target>,
}

/// An answer, and whether rules may count it.
struct Answer {
    response: Response<Body>,
    settles: bool,
    refused: Option<&'static str>,
}

// === impl Way ===

impl Way<'_> {
    /// Plans, counts, decides and settles it. `detail`: with every expression taken apart.
    pub(super) async fn go(&self, detail: bool) -> Report {
        let (rules, facts, now) = (&self.snapshot.rules, self.facts, self.asked.now);
        let plan = rules.plan(facts);
        let findings = self.store.apply(&plan, now).await;
        let mut decision = rules.decide(&plan, &findings, now);
        stop::lengthen(
            self.store,
            self.snapshot,
            &plan,
            &findings,
            &mut decision,
            now,
        )
        .await;
        let mut answer = self.answer(&decision);

        let to = self.target.map(To::of);
        let response = answer.facts(to.as_ref());
        let counted = facts.with_response(&response);
        let settled = match answer.settles {
            true => Some(self.settle(&counted, &mut decision).await),
            false => None,
        };
        let pass = Pass {
            rules,
            lists: &self.snapshot.lists,
            facts: if answer.settles { &counted } else { facts },
            now,
            planned: (&plan, &findings),
            decision: &decision,
            settled: settled.as_ref().map(|(plan, findings)| (plan, findings)),
            secrets: &self.snapshot.redactor,
        };
        let traces = pass.trace(detail);
        let headers = answer.response.headers_mut();
        action::tell_quotas(&self.snapshot.quota_names, &decision.quotas, headers);
        Report {
            outcome: answer.outcome(&decision),
            credit: credit(self.snapshot, &decision),
            to,
            route: facts.route.map(str::to_owned),
            client: facts.client,
            response: answer.response,
            settled: answer.settles,
            rules: with_disabled(self.snapshot, traces),
        }
    }

    async fn settle(&self, facts: &dyn Facts, decision: &mut Decision) -> (Plan, Findings) {
        let rules = &self.snapshot.rules;
        let plan = rules.settle(facts, decision.settle_before);
        rules.settled(decision, &plan);
        let findings = self.store.apply(&plan, self.asked.now).await;
        (plan, findings)
    }

    fn answer(&self, decision: &Decision) -> Answer {
        let (snapshot, asked) = (self.snapshot, self.asked);
        match decision.verdict {
            Verdict::Block { rule, retry_after } => {
                Answer::own(stop::refusal(snapshot, asked, rule, retry_after))
            }
            // A shadow reads the whole body, as the origin would.
            Verdict::Shadow { .. } if is_too_large(snapshot, self.facts) => {
                Answer::own(Fault::BodyTooLarge.answer(asked))
            }
            Verdict::Shadow { rule } => Answer::own(stop::pretence(snapshot, asked, rule)),
            Verdict::Forward | Verdict::Divert { .. } | Verdict::Close { .. } => {
                match (fault(snapshot, self.facts), self.target) {
                    (Some(fault), _) => Answer::fault(fault, asked),
                    (None, None) => Answer::fault(Fault::NoRoute, asked),
                    (None, Some(target)) => self.routed(target),
                }
            }
        }
    }

    fn routed(&self, target: &Target) -> Answer {
        let response = match target {
            Target::Redirect(template) => {
                let location = Redirect(template.expand(self.facts.head));
                return Answer::own(location.answer(self.asked));
            }
            Target::Reply(reply) => reply.answer(self.asked),
            Target::Upstream { .. } => Response::new(Body::Empty),
        };
        Answer {
            settles: true,
            ..Answer::own(self.imagined.changed(response))
        }
    }
}

// === impl Answer ===

impl Answer {
    /// An answer that no rule counts.
    fn own(response: Response<Body>) -> Self {
        Self {
            response,
            settles: false,
            refused: None,
        }
    }

    fn fault(fault: Fault, asked: &Asked<'_>) -> Self {
        let refused = Some(match fault {
            Fault::NoRoute => "no route matches",
            Fault::Misdirected => "the certificate of the connection is not for this host",
            Fault::BodyTooLarge => "the body is larger than `limits.max_body_bytes`",
            _ => "the gateway cannot serve it",
        });
        Self {
            refused,
            ..Self::own(fault.answer(asked))
        }
    }

    fn facts<'a>(&'a self, to: Option<&'a To>) -> ResponseFacts<'a> {
        let upstream = match to {
            Some(To::Upstream(name)) => Some(&**name),
            _ => None,
        };
        let size = http_body::Body::size_hint(self.response.body()).exact();
        ResponseFacts {
            status: self.response.status().as_u16(),
            headers: self.response.headers(),
            duration_ms: 0,
            // Nobody knows what an origin would send.
            body_size: size.filter(|_| upstream.is_none()),
            upstream,
            upstream_error: None,
        }
    }

    fn outcome(&self, decision: &Decision) -> Outcome {
        let allowed = decision
            .credit
            .is_some_and(|credit| credit.action == Action::Allow && !credit.dry_run);
        match (decision.verdict, self.refused) {
            (Verdict::Block { .. }, _) => Outcome::Block,
            (Verdict::Shadow { .. }, _) => Outcome::Shadow,
            (_, Some(reason)) => Outcome::Refuse(reason),
            (_, None) if allowed => Outcome::Allow,
            (_, None) => Outcome::Forward,
        }
    }
}

fn credit(snapshot: &Snapshot, decision: &Decision) -> Option<(Arc<str>, &'static str)> {
    let credit = decision.credit?;
    let rule = snapshot.rules.get(credit.rule)?;
    Some((rule.name.clone(), credit.name()))
}
