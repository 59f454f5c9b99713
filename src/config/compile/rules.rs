//! `[[rules]]`: compiles expressions and keys, and determines each rule's identity.

mod cost;

use super::keys::{KeyCompiler, report};
use super::responses::ResponseTemplates;
use super::upstreams::UpstreamBlueprints;
use super::{CompileContext, expressions, identity, presets};
use crate::config::blueprint::RuleBlueprint;
use crate::config::file::{self, ConfigFile};
use crate::config::{ExprText, limiter};
use crate::decision::RuleIndex;
use crate::expr::{self, ExprEnv, Predicate};
use crate::rules::{
    BanLength, CandidateLimit, Key, LimitJitter, Rule, RuleId, RuleScope, RuleSet, StoreMode,
};
use crate::snapshot::DisabledRule;

/// The compiled rules with their resources.
pub struct CompiledRules {
    /// The logic of the rules.
    pub set: RuleSet,
    /// The response and upstream of each rule, by rule index.
    pub resources: Vec<RuleBlueprint>,
    /// The disabled rules.
    pub disabled: Vec<DisabledRule>,
}

/// The context that all rules of a file share.
pub struct RuleCompiler<'a> {
    /// Compiles expressions and keys.
    pub keys: KeyCompiler<'a>,
    /// The responses that rules can name.
    pub responses: ResponseTemplates<'a>,
    /// The upstreams that rules can name.
    pub upstreams: &'a UpstreamBlueprints,
    /// How rules use the shared store, unless they have settings of their own.
    pub shared_store: &'a file::RedisTableSettings,
}

/// Compiles the enabled rules. Disabled rules and named expressions are only checked.
pub fn rules(
    file: &ConfigFile,
    shared: &RuleCompiler<'_>,
    cx: &mut CompileContext<'_>,
) -> CompiledRules {
    expressions::check(&file.expressions, &shared.keys, cx);
    let mut set = Vec::new();
    let mut resources = Vec::new();
    let mut disabled = Vec::new();
    for written in &file.rules {
        let preset = file.preset_of(written);
        if preset.is_some_and(|preset| presets::has_errors(preset, cx)) {
            continue;
        }
        let Some((rule, own)) = shared.rule(written, cx) else {
            continue;
        };
        if written.enabled.value {
            set.push(rule);
            resources.push(own);
        } else if let Ok(next) = set.len().try_into() {
            let next = RuleIndex(next);
            disabled.push(DisabledRule { next, rule });
        }
    }
    if set.len() > usize::from(u16::MAX) {
        let span = file.rules.first().map_or(0..0, |rule| rule.span.clone());
        cx.diagnostics
            .error(span, "the configuration has more than 65,535 rules");
    }
    CompiledRules {
        set: RuleSet::new(set),
        resources,
        disabled,
    }
}

// === impl RuleCompiler ===

impl<'a> RuleCompiler<'a> {
    /// Creates a compiler of the rules of `file`. Reports errors in its responses.
    pub fn new(
        file: &'a ConfigFile,
        keys: KeyCompiler<'a>,
        upstreams: &'a UpstreamBlueprints,
        cx: &mut CompileContext<'_>,
    ) -> Self {
        Self {
            keys,
            responses: ResponseTemplates::new(file, cx),
            upstreams,
            shared_store: &file.store.redis,
        }
    }

    /// Compiles one rule. `None` after an error.
    fn rule(
        &self,
        written: &file::RuleSettings,
        cx: &mut CompileContext<'_>,
    ) -> Option<(Rule, RuleBlueprint)> {
        let scope = self.scope(written, cx);
        let key = self.key(written, cx);
        let cost = self.cost(written, cx);
        let response = self.responses.of(written, cx);
        let (scope, key, cost) = (scope?, key?, cost?);
        self.known_in_time(written, &scope, &cost, cx);
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
            on_store_failure: written
                .on_store_failure
                .as_ref()
                .map_or(self.shared_store.on_failure.value, |own| own.value),
            store_mode: self.store_mode(written),
            ..Rule::new(name.as_str().into(), RuleId::unregistered(identity), scope)
        };
        let upstream = written.upstream.as_ref();
        let resources = RuleBlueprint {
            response,
            divert: upstream.and_then(|name| self.upstreams.index(&name.value)),
        };
        Some((rule, resources))
    }

    /// How the rule shares its counters. A deny rule has none, so its mode has no effect.
    fn store_mode(&self, written: &file::RuleSettings) -> StoreMode {
        let own = written.store_mode.as_ref();
        let requested = own.map_or(self.shared_store.mode.value, |own| own.value);
        limiter::of(written).map_or(requested, |limiter| requested.for_limiter(&limiter))
    }

    fn scope(
        &self,
        written: &file::RuleSettings,
        cx: &mut CompileContext<'_>,
    ) -> Option<RuleScope> {
        let count = written
            .count
            .as_ref()
            .map(|text| self.predicate(text, true, cx));
        let mitigate = written
            .mitigate
            .as_ref()
            .map(|text| self.predicate(text, false, cx));
        let total = written
            .total
            .as_ref()
            .map(|text| self.predicate(text, true, cx));
        if let Some(total) = total {
            return self.share_scope(written, (count, total, mitigate), cx);
        }
        match (count, mitigate) {
            (Some(count), Some(mitigate)) => Some(RuleScope::Separate {
                count: count?,
                mitigate: mitigate?,
            }),
            (None, Some(both)) => Some(RuleScope::Same(both?)),
            (Some(both), None) => Some(RuleScope::Same(selects_requests(both?, written, cx)?)),
            (None, None) => None,
        }
    }

    /// The scope of a rule with a ratio. Of `count` and `mitigate`, one may be missing and equals the other.
    fn share_scope(
        &self,
        written: &file::RuleSettings,
        (count, total, mitigate): (
            Option<Option<Predicate>>,
            Option<Predicate>,
            Option<Option<Predicate>>,
        ),
        cx: &mut CompileContext<'_>,
    ) -> Option<RuleScope> {
        let (count, mitigate) = match (count, mitigate) {
            (Some(count), Some(mitigate)) => (count?, mitigate?),
            (None, Some(both)) => {
                let count = self.predicate(written.mitigate.as_ref()?, false, cx);
                (count?, both?)
            }
            (Some(both), None) => {
                let both = selects_requests(both?, written, cx)?;
                (both, self.predicate(written.count.as_ref()?, false, cx)?)
            }
            (None, None) => return None,
        };
        Some(RuleScope::Share {
            count,
            total: total?,
            mitigate,
        })
    }

    fn predicate(
        &self,
        text: &ExprText,
        allow_response: bool,
        cx: &mut CompileContext<'_>,
    ) -> Option<Predicate> {
        if text.is_broken() {
            return None;
        }
        let env = self.env(allow_response);
        expr::predicate(&text.value, &env)
            .map_err(|errors| report(text, errors, cx))
            .ok()
    }

    fn env(&self, allow_response: bool) -> ExprEnv<'_> {
        ExprEnv {
            scheme: &self.keys.fields,
            lists: self.keys.lists,
            allow_response,
        }
    }

    fn key(&self, written: &file::RuleSettings, cx: &mut CompileContext<'_>) -> Option<Key> {
        Some(Key {
            parts: self.keys.parts(&written.key, cx)?,
            missing: written.missing.value,
        })
    }
}

/// Reports a `count` that cannot select requests to mitigate, because it reads the response.
fn selects_requests(
    both: Predicate,
    written: &file::RuleSettings,
    cx: &mut CompileContext<'_>,
) -> Option<Predicate> {
    if both.reads_response() {
        let span = written.count.as_ref()?.span.clone();
        cx.diagnostics
            .lacks(
                span,
                "`count` reads the response, so it cannot select requests to mitigate",
            )
            .help("add `mitigate = '…'` to select them");
        return None;
    }
    Some(both)
}

fn ban(written: &file::RuleSettings) -> BanLength {
    match written.escalate.as_slice() {
        [] => written.duration.value.into(),
        bans => BanLength::Escalating(bans.iter().map(|ban| ban.value).collect()),
    }
}

/// Converts `jitter`, which the reader has checked to be between 0 and 1, to millionths.
fn jitter(written: &file::RuleSettings) -> LimitJitter {
    LimitJitter((written.jitter.value * 1e6).round() as u32)
}

/// Builds the candidate. It has its own identity, so that a reload keeps its counters.
fn candidate(written: &file::RuleSettings, of_rule: u64) -> Option<CandidateLimit> {
    let limiter = limiter::of_candidate(written)?;
    let id = RuleId::unregistered(identity::of_candidate(of_rule, &limiter));
    Some(CandidateLimit { id, limiter })
}
