//! Keys: what rules count by, and what an upstream keeps together.

use super::{CompileContext, key_fields};
use crate::config::{LintCode, Text};
use crate::expr::{self, ExprEnv, NamedLists, ValueType};
use crate::facts::client_ip::IpPrefixes;
use crate::facts::fields::{self, FieldTable};
use crate::observe::Redactor;
use crate::rules::KeyPart;

/// What the parts of keys are compiled with.
#[derive(Clone, Copy)]
pub struct KeyCompiler<'a> {
    /// The lists that expressions name.
    pub lists: &'a NamedLists,
    /// Which values are secret.
    pub redactor: &'a Redactor,
    /// How an address becomes a key.
    pub prefixes: IpPrefixes,
}

// === impl KeyCompiler ===

impl<'a> KeyCompiler<'a> {
    /// Keys of expressions with these lists.
    pub fn new(lists: &'a NamedLists, redactor: &'a Redactor, prefixes: IpPrefixes) -> Self {
        Self {
            lists,
            redactor,
            prefixes,
        }
    }

    /// The parts of a key; `None` after a mistake.
    pub fn parts(&self, texts: &[Text], cx: &mut CompileContext<'_>) -> Option<Vec<KeyPart>> {
        let parts = texts.iter().map(|text| self.part(text, cx));
        // All of them, so that every mistake is reported.
        let parts: Vec<_> = parts.collect();
        let parts: Result<Vec<_>, ()> = parts.into_iter().collect();
        Some(parts.ok()?.into_iter().flatten().collect())
    }

    /// `Ok(None)`: a part that means nothing here.
    fn part(&self, text: &Text, cx: &mut CompileContext<'_>) -> Result<Option<KeyPart>, ()> {
        if text.value.trim() == "cf.colo.id" {
            let message =
                "`cf.colo.id` means nothing outside Cloudflare; it is left out of the key";
            cx.diagnostics
                .warning(LintCode::IgnoredKeyPart, text.span.clone(), message);
            return Ok(None);
        }
        let env = ExprEnv {
            scheme: &FieldTable,
            lists: self.lists,
            allow_response: false,
        };
        let scalar = expr::scalar(&text.value, &env).map_err(|errors| report(text, errors, cx))?;
        let field = scalar.bare_field().map(fields::by_id);
        let is_address = field.is_some_and(|field| field.ty() == ValueType::Ip);
        let secret = key_fields::is_secret(scalar.reads(), scalar.reads_entries(), self.redactor);
        Ok(Some(KeyPart {
            prefixes: is_address.then_some(self.prefixes),
            scalar,
            secret,
        }))
    }
}

/// Reports the mistakes in an expression where they are.
pub fn report(text: &Text, errors: Vec<expr::ExprError>, cx: &mut CompileContext<'_>) {
    for error in errors {
        let list = error.message.starts_with("unknown list");
        let span = text.inner(cx.source, error.span);
        let diagnostic = match list {
            // It may stand in a file that could not be read.
            true => cx.diagnostics.unknown(span, error.message),
            false => cx.diagnostics.error(span, error.message),
        };
        diagnostic.help.extend(error.help);
    }
}
