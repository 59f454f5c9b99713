//! Warnings about the cookies of known clients.

use super::implies::excludes;
use super::{CompiledConfig, LintCode, LintedRule, Warnings};
use crate::config::file::KnownClientSettings;
use crate::expr::{self, ExprOutline};
use crate::facts::fields::{CLIENT_ID, METHOD, by_id};

/// Warns of clients that become known too easily, of cookies without a limit, and of cookies that do not last.
pub(super) fn warn(
    compiled: &CompiledConfig<'_>,
    rules: &[LintedRule<'_>],
    warnings: &mut Warnings<'_>,
) {
    let file = compiled.file;
    let Some(known) = &file.known_clients else {
        return;
    };
    cacheable_success(known, warnings);
    if known.success.is_none() && file.known_sources().next().is_none() {
        return;
    }
    if !rules.iter().any(limits_cookies) {
        warnings
            .at(
                LintCode::KnownNoLimit,
                &known.span,
                "no rule limits what one cookie can do: a stolen cookie is as good as a known client",
            )
            .help("add a rule with `key = [\"client.id\"]` and `missing = \"skip\"` that counts failures");
    }
    if file.server.secret_file.value.is_none() {
        let message = "without `server.secret_file`, cookies end with this process, and other gateways refuse them";
        warnings
            .at(LintCode::CookiesNoSecretFile, &known.span, message)
            .help("add `secret_file = \"secret\"` under `[server]`; create it: `(umask 077; head -c 32 /dev/urandom > secret)`");
    }
}

fn limits_cookies(rule: &LintedRule<'_>) -> bool {
    let mut parts = rule.rule.key.parts.iter();
    rule.rule.limiter.is_some() && parts.any(|part| part.scalar.reads().contains(&CLIENT_ID))
}

/// Warns of a success that includes GET: a login page itself, or a response that a cache shares.
fn cacheable_success(known: &KnownClientSettings, warnings: &mut Warnings<'_>) {
    let Some(success) = &known.success else {
        return;
    };
    let is_get = format!("{} eq \"GET\"", by_id(METHOD).name);
    let outlines = (expr::outline(&success.value), expr::outline(&is_get));
    let (Ok(outline), Ok(is_get)) = outlines else {
        return;
    };
    if !never_with(&outline, &is_get) {
        let message = "`success` can match GET: whoever loads the page becomes known, and caches may store the response";
        warnings
            .at(LintCode::KnownSuccessCacheable, &success.span, message)
            .help(format!("add `{} eq \"POST\" and …`", by_id(METHOD).name));
    }
}

/// Returns whether `outline` never holds together with `other`. `false` means unknown.
fn never_with(outline: &ExprOutline, other: &ExprOutline) -> bool {
    match outline {
        ExprOutline::Or(parts) => parts.iter().all(|part| never_with(part, other)),
        _ => outline.conjuncts().iter().any(|part| excludes(part, other)),
    }
}
