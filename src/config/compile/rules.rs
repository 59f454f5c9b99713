//! `[[rules]]`: expressions compiled, keys built, counters found again.

mod cost;

use std::sync::Arc;

use super::keys::{Keys, report};
use super::responses::Responses;
use super::upstreams::Upstreams;
use super::{Context, identity};
use crate::config::blueprint::RuleBlueprint;
use crate::config::file::{self, File};
use crate::config::{Text, limiter};
use crate::decision::RuleIndex;
use crate::expr::{self, Env, Predicate};
use crate::facts::fields::Fields;
use crate::rules::{Ban, Candidate, Jitter, Key, Rule, RuleId, RuleSet, Scope};

/// The rules and what belongs to each.
pub struct Rules {
    /// The logic.
    pub set: RuleSet,
    /// What belongs to each rule beside its logic, by rule index.
    pub resources: Vec<RuleBlueprint>,
    /// Those that are not enabled, each with the rule that it stands before.
    pub disabled: Vec<(RuleIndex, Arc<str>)>,
}

/// What all rules of a file share.
pub struct Shared<'a> {
    /// What expressions and keys are compiled with.
    pub keys: Keys<'a>,
    /// The answers that rules name.
    pub responses: Responses<'a>,
    /// The origins that rules name.
    pub upstreams: &'a Upstreams,
}

/// Compiles the rules that are enabled. Those that are not are checked all the same.
pub fn rules(file: &File, shared: &Shared<'_>, cx: &mut Context<'_>) -> Rules {
    let mut set = Vec::new();
    let mut resources = Vec::new();
    let mut disabled = Vec::new();
    for written in &file.rules {
        if let Some((rule, own)) = shared.rule(written, cx) {
            set.push(rule);
            resources.push(own);
        } else if let (false, Ok(next)) = (written.enabled.value, set.len().try_into()) {
            disabled.push((RuleIndex(next), written.name.value.as_str().into()));
        }
    }
    if set.len() > usize::from(u16::MAX) {
        let span = file.rules.first().map_or(0..0, |rule| rule.span.clone());
        cx.diagnostics.error(span, "more than 65,535 rules");
    }
    Rules {
        set: RuleSet::new(set),
        resources,
        disabled,
    }
}

// === impl Shared ===

impl Shared<'_> {
    /// The rule; `None` after a mistake, or if it is not enabled.
    fn rule(&self, written: &file::Rule, cx: &mut Context<'_>) -> Option<(Rule, RuleBlueprint)> {
        let scope = self.scope(written, cx);
        let key = self.key(written, cx);
        let cost = self.cost(written, cx);
        let response = self.responses.of(written, cx);
        let (scope, key, cost) = (scope?, key?, cost?);
        self.known_in_time(written, &scope, &cost, cx);
        if !written.enabled.value {
            return None;
        }
        let identity = identity::identity(written, self.keys.prefixes);
        let name = &written.name.value;
        let rule = Rule {
            key,
            limiter: limiter::of(written),
            ban: ban(written),
            cost,
            jitter: jitter(written),
            max_delay: written.max_delay.value,
            candidate: candidate(written, identity),
            action: written.action.value,
            dry_run: written.dry_run.value,
            headers: written.headers.value,
            ..Rule::new(name.as_str().into(), RuleId::unregistered(identity), scope)
        };
        let upstream = written.upstream.as_ref();
        let resources = RuleBlueprint {
            response,
            divert: upstream.and_then(|name| self.upstreams.index(&name.value)),
        };
        Some((rule, resources))
    }

    fn scope(&self, written: &file::Rule, cx: &mut Context<'_>) -> Option<Scope> {
        let count = written
            .count
            .as_ref()
            .map(|text| self.predicate(text, true, cx));
        let mitigate = written
            .mitigate
            .as_ref()
            .map(|text| self.predicate(text, false, cx));
        match (count, mitigate) {
            (Some(count), Some(mitigate)) => Some(Scope::Separate {
                count: count?,
                mitigate: mitigate?,
            }),
            (None, Some(both)) => Some(Scope::Same(both?)),
            (Some(both), None) => {
                let both = both?;
                if both.reads_response() {
                    let span = written.count.as_ref()?.span.clone();
                    cx.diagnostics
                        .lacks(
                            span,
                            "`count` reads the response, so it cannot say what to stop",
                        )
                        .help("add `mitigate = '…'`: the requests that are stopped");
                    return None;
                }
                Some(Scope::Same(both))
            }
            (None, None) => None,
        }
    }

    fn predicate(
        &self,
        text: &Text,
        allow_response: bool,
        cx: &mut Context<'_>,
    ) -> Option<Predicate> {
        let env = self.env(allow_response);
        expr::predicate(&text.value, &env)
            .map_err(|errors| report(text, errors, cx))
            .ok()
    }

    fn env(&self, allow_response: bool) -> Env<'_> {
        Env {
            scheme: &Fields,
            lists: self.keys.lists,
            allow_response,
        }
    }

    fn key(&self, written: &file::Rule, cx: &mut Context<'_>) -> Option<Key> {
        Some(Key {
            parts: self.keys.parts(&written.key, cx)?,
            missing: written.missing.value,
        })
    }
}

fn ban(written: &file::Rule) -> Ban {
    match written.escalate.as_slice() {
        [] => written.duration.value.into(),
        bans => Ban::Escalating(bans.iter().map(|ban| ban.value).collect()),
    }
}

/// Reading made sure of a part between 0 and 1.
fn jitter(written: &file::Rule) -> Jitter {
    Jitter((written.jitter.value * 1e6).round() as u32)
}

/// It counts under a name of its own, so that a reload keeps what it has learned.
fn candidate(written: &file::Rule, of_rule: u64) -> Option<Candidate> {
    let limiter = limiter::of_candidate(written)?;
    let id = RuleId::unregistered(identity::of_candidate(of_rule, &limiter));
    Some(Candidate { id, limiter })
}
