//! Compiles keys: the counter keys of rules and the hash keys of upstreams.

use super::available_fields::AvailableFields;
use super::{CompileContext, key_fields};
use crate::config::file::{ConfigFile, NamedExpression};
use crate::config::{ExprText, LintCode, Text, expressions};
use crate::expr::{self, ExprEnv, FieldScheme as _, NamedLists, Scalar, ValueType};
use crate::facts::client_ip::IpPrefixes;
use crate::facts::fields;
use crate::observe::Redactor;
use crate::rules::KeyPart;
use crate::snapshot::LogField;

/// The context in which key parts are compiled.
#[derive(Clone, Copy)]
pub struct KeyCompiler<'a> {
    /// The lists that expressions can name.
    pub lists: &'a NamedLists,
    /// Which values are secret.
    pub redactor: &'a Redactor,
    /// The parts that logs show in clear although they come from a secret value.
    pub revealed: &'a [Text],
    /// The prefix lengths that turn an address into a key.
    pub prefixes: IpPrefixes,
    /// The fields that expressions can read.
    pub fields: AvailableFields,
}

// === impl KeyCompiler ===

impl<'a> KeyCompiler<'a> {
    /// Creates a compiler of the key expressions of `file`, which can name `lists`.
    pub fn new(lists: &'a NamedLists, redactor: &'a Redactor, file: &'a ConfigFile) -> Self {
        Self {
            lists,
            redactor,
            revealed: &file.log.reveal,
            prefixes: super::prefixes(file),
            fields: AvailableFields::of(file),
        }
    }

    /// Returns a compiler of keys outside rules, which cannot read the request body.
    pub fn without_body(self) -> Self {
        Self {
            fields: self.fields.without_body(),
            ..self
        }
    }

    /// Compiles the parts of a key. `None` after an error.
    pub fn parts(&self, texts: &[ExprText], cx: &mut CompileContext<'_>) -> Option<Vec<KeyPart>> {
        let parts = texts.iter().map(|text| self.part(text, cx));
        // Collect all parts first, so that every error is reported.
        let parts: Vec<_> = parts.collect();
        let parts: Result<Vec<_>, ()> = parts.into_iter().collect();
        Some(parts.ok()?.into_iter().flatten().collect())
    }

    /// Compiles one part. `Ok(None)` if the part has no meaning in lockgate and is ignored.
    fn part(&self, text: &ExprText, cx: &mut CompileContext<'_>) -> Result<Option<KeyPart>, ()> {
        if text.is_broken() {
            return Err(());
        }
        if text.value.trim() == "cf.colo.id" {
            let message = "`cf.colo.id` exists only on Cloudflare; this key part is ignored";
            cx.diagnostics
                .warning(LintCode::IgnoredKeyPart, text.span.clone(), message);
            return Ok(None);
        }
        let (scalar, secret) = self.scalar(text, false, cx)?;
        let field = scalar.bare_field().map(fields::by_id);
        let is_address = field.is_some_and(|field| field.ty() == ValueType::Ip);
        Ok(Some(KeyPart {
            prefixes: is_address.then_some(self.prefixes),
            scalar,
            secret,
        }))
    }

    /// Compiles the additional fields of the access log, which can read the response too.
    pub fn log_fields(
        &self,
        fields: &[NamedExpression],
        cx: &mut CompileContext<'_>,
    ) -> Vec<LogField> {
        let mut compiled = Vec::new();
        for field in fields.iter().filter(|field| !field.text.is_broken()) {
            if let Ok((scalar, secret)) = self.scalar(&field.text, true, cx) {
                compiled.push(LogField {
                    name: field.name.value.clone(),
                    scalar,
                    secret,
                });
            }
        }
        compiled
    }

    /// Compiles an expression with a value, and returns whether the value is secret.
    fn scalar(
        &self,
        text: &ExprText,
        allow_response: bool,
        cx: &mut CompileContext<'_>,
    ) -> Result<(Scalar, bool), ()> {
        let env = ExprEnv {
            scheme: &self.fields,
            lists: self.lists,
            allow_response,
        };
        let scalar = expr::scalar(&text.value, &env).map_err(|errors| {
            // Other gateways write `header:x`, which no expression is.
            let refusal = self.fields.refusal(text.value.trim());
            match refusal.filter(|_| text.value.contains(':')) {
                Some(refusal) => drop(cx.diagnostics.error(text.span.clone(), refusal)),
                None => report(text, errors, cx),
            }
        })?;
        let reads_secret =
            key_fields::is_secret(scalar.reads(), scalar.reads_entries(), self.redactor);
        let is_revealed = self.revealed.iter().any(|part| is_same(part, text));
        Ok((scalar, reads_secret && !is_revealed))
    }
}

/// Warns of parts in `log.reveal` that nothing shows.
pub fn warn_of_unused_reveals(file: &ConfigFile, cx: &mut CompileContext<'_>) {
    let keys = || file.rules.iter().flat_map(|rule| &rule.key);
    let fields = || file.log.fields.iter().map(|field| &field.text);
    for part in &file.log.reveal {
        if !keys().chain(fields()).any(|text| is_same(part, text)) {
            let message = "no key and no field of the log has this part";
            cx.diagnostics
                .warning(LintCode::Unused, part.span.clone(), message)
                .help("write it exactly as in the `key` of a rule");
        }
    }
}

fn is_same(revealed: &Text, part: &ExprText) -> bool {
    revealed.value.trim() == part.value.trim()
}

/// Reports the errors in an expression where they were written.
pub fn report(text: &ExprText, errors: Vec<expr::ExprError>, cx: &mut CompileContext<'_>) {
    expressions::report(text, errors, cx.source, cx.diagnostics);
}
