//! `cost`: what a request costs, and when that is known.

use super::{Shared, report};
use crate::config::compile::Context;
use crate::config::file::{self, Rule};
use crate::config::{Text, limiter};
use crate::expr::{self, Scalar, Type};
use crate::limit::{Algorithm, Limiter};
use crate::rules::{Cost, Scope};

// === impl Shared ===

impl Shared<'_> {
    /// The cost; `None` after a mistake.
    pub(super) fn cost(&self, written: &Rule, cx: &mut Context<'_>) -> Option<Cost> {
        match &written.cost.value {
            file::Cost::Fixed(units) => Some(Cost::Fixed(u64::from(*units))),
            file::Cost::Header(name) => Some(Cost::Header(name.clone())),
            file::Cost::Expression(source) => {
                let text = Text::new(source.clone(), written.cost.span.clone());
                self.computed(&text, cx).map(Cost::Computed)
            }
        }
    }

    fn computed(&self, text: &Text, cx: &mut Context<'_>) -> Option<Scalar> {
        if text.value.trim().parse::<u32>().is_ok() {
            let message = "a cost that is a number stands without quotes";
            let number = format!("write `cost = {}`", text.value.trim());
            cx.diagnostics
                .error(text.span.clone(), message)
                .help(number);
            return None;
        }
        let scalar = expr::scalar(&text.value, &self.env(true))
            .map_err(|errors| report(text, errors, cx))
            .ok()?;
        if scalar.ty() == Type::Int {
            return Some(scalar);
        }
        let found = match scalar.ty() {
            Type::Bytes => "a string",
            Type::Ip => "an address",
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

    /// Where a request takes a place, what it costs must be known when it comes.
    pub(super) fn known_in_time(
        &self,
        written: &Rule,
        scope: &Scope,
        cost: &Cost,
        cx: &mut Context<'_>,
    ) {
        let of = |limiter: Option<Limiter>| limiter.and_then(|l| takes_a_place(l.algorithm));
        let own = of(limiter::of(written)).map(|name| format!("`{name}`"));
        let tried =
            || of(limiter::of_candidate(written)).map(|name| format!("a candidate `{name}`"));
        let Some(name) = own.or_else(tried) else {
            return;
        };
        let counts_late = match scope {
            Scope::Separate { count, .. } => count.reads_response(),
            Scope::Same(_) => false,
        };
        let costs_late = match cost {
            Cost::Fixed(_) => false,
            Cost::Computed(scalar) => scalar.reads_response(),
            Cost::Header(_) => true,
        };
        let count = written.count.as_ref().filter(|_| counts_late);
        let count = count.map(|text| ("count", text.span.clone()));
        let cost = costs_late.then(|| ("cost", written.cost.span.clone()));
        for (key, span) in count.into_iter().chain(cost) {
            cx.diagnostics
                .error(
                    span,
                    format!("{name} takes a place when the request comes: `{key}` cannot read the response"),
                )
                .help("use what is known of the request, or another algorithm");
        }
    }
}

fn takes_a_place(algorithm: Algorithm) -> Option<&'static str> {
    let takes = algorithm.holds_leases() || algorithm.has_queue();
    takes.then_some(algorithm.row().name)
}
