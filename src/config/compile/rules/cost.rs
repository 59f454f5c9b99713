//! `cost`: the cost of a request, and the phase in which it is known.

use super::{RuleCompiler, report};
use crate::config::compile::CompileContext;
use crate::config::file::{self, RuleSettings};
use crate::config::{Text, limiter};
use crate::expr::{self, Scalar, ValueType};
use crate::limit::{Algorithm, Limiter};
use crate::rules::{RuleCost, RuleScope};

// === impl RuleCompiler ===

impl RuleCompiler<'_> {
    /// Compiles the cost. `None` after an error.
    pub(super) fn cost(
        &self,
        written: &RuleSettings,
        cx: &mut CompileContext<'_>,
    ) -> Option<RuleCost> {
        match &written.cost.value {
            file::CostSettings::Fixed(units) => Some(RuleCost::Fixed(u64::from(*units))),
            file::CostSettings::Header(name) => Some(RuleCost::Header(name.clone())),
            file::CostSettings::Expression(source) => {
                let text = Text::new(source.clone(), written.cost.span.clone());
                self.computed(&text, cx).map(RuleCost::Computed)
            }
        }
    }

    fn computed(&self, text: &Text, cx: &mut CompileContext<'_>) -> Option<Scalar> {
        if text.value.trim().parse::<u32>().is_ok() {
            let message = "a constant cost is written without quotes";
            let number = format!("write `cost = {}`", text.value.trim());
            cx.diagnostics
                .error(text.span.clone(), message)
                .help(number);
            return None;
        }
        let scalar = expr::scalar(&text.value, &self.env(true))
            .map_err(|errors| report(text, errors, cx))
            .ok()?;
        if scalar.ty() == ValueType::Int {
            return Some(scalar);
        }
        let found = match scalar.ty() {
            ValueType::Bytes => "a string",
            ValueType::Ip => "an address",
            _ => "true or false",
        };
        cx.diagnostics
            .error(
                text.span.clone(),
                format!("a cost is an integer; this expression is {found}"),
            )
            .help("for example `cost = 'len(http.request.uri.query)'`");
        None
    }

    /// Reports a cost or count that reads the response if the algorithm takes a slot in the request phase.
    pub(super) fn known_in_time(
        &self,
        written: &RuleSettings,
        scope: &RuleScope,
        cost: &RuleCost,
        cx: &mut CompileContext<'_>,
    ) {
        let of = |limiter: Option<Limiter>| limiter.and_then(|l| takes_a_slot(l.algorithm));
        let own = of(limiter::of(written)).map(|name| format!("`{name}`"));
        let tried =
            || of(limiter::of_candidate(written)).map(|name| format!("a candidate `{name}`"));
        let Some(name) = own.or_else(tried) else {
            return;
        };
        let counts_late = match scope {
            RuleScope::Separate { count, .. } => count.reads_response(),
            RuleScope::Same(_) => false,
        };
        let costs_late = match cost {
            RuleCost::Fixed(_) => false,
            RuleCost::Computed(scalar) => scalar.reads_response(),
            RuleCost::Header(_) => true,
        };
        let count = written.count.as_ref().filter(|_| counts_late);
        let count = count.map(|text| ("count", text.span.clone()));
        let cost = costs_late.then(|| ("cost", written.cost.span.clone()));
        for (key, span) in count.into_iter().chain(cost) {
            cx.diagnostics
                .error(
                    span,
                    format!(
                        "{name} takes a slot in the request phase: `{key}` cannot read the response"
                    ),
                )
                .help("read only request fields, or use another algorithm");
        }
    }
}

fn takes_a_slot(algorithm: Algorithm) -> Option<&'static str> {
    let takes = algorithm.holds_leases() || algorithm.has_queue();
    takes.then_some(algorithm.row().name)
}
