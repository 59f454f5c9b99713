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
use crate::snapshot::{Route, Snapshot, Target};
use crate::store::Store;

/// A request on its way.
pub(super) struct Way<'a> {
    pub(super) imagined: &'a Imagined,
    pub(super) snapshot: &'a Snapshot,
    pub(super) store: &'a Store,
    pub(super) asked: &'a Asked<'a>,
    pub(super) facts: &'a RequestFacts<'a>,
    pub(super) route: Option<&'a Route>,
}

/// An answer, if anybody gives one, and whether rules may count it.
struct Answer {
    response: Option<Response<Body>>,
    settles: bool,
    by_route: bool,
    refused: Option<&'static str>,
}

// === impl Way ===

impl Way<'_> {
    /// Plans, counts, decides and settles it. `detail`: with every expression taken apart.
    pub(super) async fn go(&self, detail: bool) -> Report {
        let (rules, facts, now) = (&self.snapshot.rules, self.facts, self.asked.now);
        let plan = rules.plan(facts);
        let findings = self.store.apply(&plan, now).await;
        self.store.release(&plan, &findings);
        let mut decision = rules.decide(&plan, &findings, now);
        stop::openly(self.asked, &mut decision);
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

        let to = self.leads(&decision).map(To::of);
        let pretends = decision.verdict.pretends();
        let asked = to.as_ref().filter(|_| decision.verdict.is_served());
        if let Some(shown) = answer.shown(asked).filter(|_| pretends) {
            rules.pretend(&mut decision, &facts.with_response(&shown));
        }
        let response = answer.shown(to.as_ref()).filter(|_| answer.settles);
        let counted = response
            .as_ref()
            .map(|response| facts.with_response(response));
        let settled = match &counted {
            Some(counted) => Some(self.settle(counted, &mut decision).await),
            None => None,
        };
        let pass = Pass {
            rules,
            lists: &self.snapshot.lists,
            facts: match &counted {
                Some(counted) => counted,
                None => facts,
            },
            now,
            planned: (&plan, &findings),
            decision: &decision,
            settled: settled.as_ref().map(|(plan, findings)| (plan, findings)),
            secrets: &self.snapshot.redactor,
        };
        let traces = pass.trace(detail);
        self.dress(&mut answer, &decision);
        Report {
            outcome: answer.outcome(&decision),
            credit: credit(self.snapshot, &decision),
            held: decision.hold,
            tags: tags(self.snapshot, &decision),
            to,
            route: facts.route.map(str::to_owned),
            client: facts.client,
            response: answer.response,
            settled: answer.settles,
            rules: with_disabled(self.snapshot, traces),
        }
    }

    /// What a client sees beside what rules saw.
    fn dress(&self, answer: &mut Answer, decision: &Decision) {
        let Some(response) = &mut answer.response else {
            return;
        };
        let headers = response.headers_mut();
        action::tell_quotas(&self.snapshot.quota_names, &decision.quotas, headers);
        let edits = self.route.and_then(|route| route.edits.as_deref());
        if let Some(edits) = edits.filter(|_| answer.by_route) {
            edits.response.apply(headers);
        }
    }

    fn leads(&self, decision: &Decision) -> Option<&Target> {
        self.snapshot.leads(decision.verdict, self.route)
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
            Verdict::Shadow { rule } => Answer::by_route(stop::pretence(snapshot, asked, rule)),
            Verdict::Close { .. } => Answer::none(),
            Verdict::Forward | Verdict::Divert { .. } => {
                match (fault(snapshot, self.facts), self.leads(decision)) {
                    (Some(fault), _) => Answer::fault(fault, asked),
                    (None, None) => Answer::fault(Fault::NoRoute, asked),
                    // No rule counts it.
                    (None, Some(_)) if decision.verdict != Verdict::Forward => {
                        Answer::by_route(self.imagined.changed(Response::new(Body::Empty)))
                    }
                    (None, Some(target)) => self.routed(target),
                }
            }
        }
    }

    fn routed(&self, target: &Target) -> Answer {
        let response = match target {
            Target::Redirect(template) => {
                let location = Redirect(template.expand(self.facts.head));
                return Answer::by_route(location.answer(self.asked));
            }
            Target::Reply(reply) => reply.answer(self.asked),
            Target::Upstream { .. } => Response::new(Body::Empty),
        };
        Answer {
            settles: true,
            ..Answer::by_route(self.imagined.changed(response))
        }
    }
}

// === impl Answer ===

impl Answer {
    /// An answer that no rule counts.
    fn own(response: Response<Body>) -> Self {
        Self {
            response: Some(response),
            ..Self::none()
        }
    }

    /// An answer of the route's, or one that seems to be.
    fn by_route(response: Response<Body>) -> Self {
        Self {
            by_route: true,
            ..Self::own(response)
        }
    }

    /// Nobody answers.
    fn none() -> Self {
        Self {
            response: None,
            settles: false,
            by_route: false,
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

    /// The answer as rules would see it.
    fn shown<'a>(&'a self, to: Option<&'a To>) -> Option<ResponseFacts<'a>> {
        let response = self.response.as_ref()?;
        let upstream = match to {
            Some(To::Upstream(name)) => Some(&**name),
            _ => None,
        };
        let size = http_body::Body::size_hint(response.body()).exact();
        Some(ResponseFacts {
            status: response.status().as_u16(),
            headers: response.headers(),
            duration_ms: 0,
            // Nobody knows what an origin would send.
            body_size: size.filter(|_| upstream.is_none()),
            upstream,
            upstream_error: None,
        })
    }

    fn outcome(&self, decision: &Decision) -> Outcome {
        let did = decision.credit.filter(|credit| !credit.dry_run);
        let did = did.map(|credit| credit.action);
        match (decision.verdict, self.refused) {
            (Verdict::Block { .. }, _) if did == Some(Action::Tarpit) => Outcome::Tarpit,
            (Verdict::Block { .. }, _) => Outcome::Block,
            (Verdict::Shadow { .. }, _) => Outcome::Shadow,
            (Verdict::Close { .. }, _) => Outcome::Close,
            (_, Some(reason)) => Outcome::Refuse(reason),
            (Verdict::Divert { .. }, None) => Outcome::Divert,
            (Verdict::Forward, None) if did == Some(Action::Allow) => Outcome::Allow,
            (Verdict::Forward, None) if !decision.hold.is_zero() => Outcome::Delay,
            (Verdict::Forward, None) if !decision.tags.is_empty() => Outcome::Tag,
            (Verdict::Forward, None) => Outcome::Forward,
        }
    }
}

fn credit(snapshot: &Snapshot, decision: &Decision) -> Option<(Arc<str>, &'static str)> {
    let credit = decision.credit?;
    let rule = snapshot.rules.get(credit.rule)?;
    Some((rule.name.clone(), credit.name()))
}

fn tags(snapshot: &Snapshot, decision: &Decision) -> Vec<Arc<str>> {
    let rules = decision.tags.iter();
    let rules = rules.filter_map(|rule| snapshot.rules.get(*rule));
    rules.map(|rule| rule.name.clone()).collect()
}
