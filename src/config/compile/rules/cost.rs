//! `cost`: the cost of a request, and the phase in which it is known.

use super::{RuleCompiler, report};
use crate::config::compile::CompileContext;
use crate::config::file::{self, RuleSettings};
use crate::config::{ExprText, limiter};
use crate::expr::{self, ExprError, Scalar, ValueType};
use crate::facts::fields;
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
            file::CostSettings::Expression(text) => self.computed(text, cx).map(RuleCost::Computed),
        }
    }

    fn computed(&self, text: &ExprText, cx: &mut CompileContext<'_>) -> Option<Scalar> {
        if text.is_broken() {
            return None;
        }
        if text.value.trim().parse::<u32>().is_ok() {
            let message = "a constant cost is written without quotes";
            let number = format!("write `cost = {}`", text.value.trim());
            cx.diagnostics
                .error(text.span.clone(), message)
                .help(number);
            return None;
        }
        let scalar = match expr::scalar(&text.value, &self.env(true)) {
            Ok(scalar) => scalar,
            Err(errors) => {
                refuse(text, errors, cx);
                return None;
            }
        };
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
            .help(match response_header(&scalar) {
                Some(name) => header_help(name),
                None => "for example `cost = 'len(http.request.uri.query)'`".to_owned(),
            });
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
            RuleScope::Same(_) | RuleScope::Share { .. } => false,
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

/// Reports the errors of an expression, or that a header's name is not an expression.
fn refuse(text: &ExprText, errors: Vec<ExprError>, cx: &mut CompileContext<'_>) {
    let suggested = |error: &ExprError| error.message.contains("did you mean");
    let Some(name) = header_name(&text.value).filter(|_| !errors.iter().any(suggested)) else {
        return report(text, errors, cx);
    };
    let message = format!(
        "a cost is an integer or an expression; `{}` is neither",
        text.value.trim()
    );
    cx.diagnostics
        .error(text.span.clone(), message)
        .help(header_help(name));
}

fn header_help(name: &str) -> String {
    format!("for a response header, write `cost = {{ response_header = \"{name}\" }}`")
}

/// Returns `text` if it can be the name of a header, also after the field of all headers and a dot.
fn header_name(text: &str) -> Option<&str> {
    let text = text.trim();
    let headers = fields::by_id(fields::RESPONSE_HEADERS).name;
    let entry = text.strip_prefix(headers);
    let name = entry.and_then(|rest| rest.strip_prefix('.'));
    let name = name.unwrap_or(text);
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (starts && name.bytes().all(is_name)).then_some(name)
}

/// Returns the response header that the value reads. `None` if it reads none.
fn response_header(scalar: &Scalar) -> Option<&str> {
    let mut entries = scalar.reads_entries().iter();
    let entry = entries.find(|(field, _)| *field == fields::RESPONSE_HEADERS);
    entry.map(|(_, name)| &**name)
}

fn takes_a_slot(algorithm: Algorithm) -> Option<&'static str> {
    let takes = algorithm.holds_leases() || algorithm.has_queue();
    takes.then_some(algorithm.row().name)
}
