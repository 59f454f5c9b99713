//! `[[protect]]`: checks the tests that the user wrote, before they are parts of the rules of the
//! preset. Its user is checked as a source of known clients.

use super::CompileContext;
use super::keys::{KeyCompiler, report};
use crate::config::ExprText;
use crate::config::file::ProtectSettings;
use crate::expr::{self, ExprEnv};

/// Checks the expressions of presets.
pub fn check(presets: &[ProtectSettings], keys: &KeyCompiler<'_>, cx: &mut CompileContext<'_>) {
    for preset in presets {
        let checker = PresetChecker { keys };
        checker.reads_response("failed", preset.failed.as_ref(), cx);
        checker.reads_response("success", preset.success.as_ref(), cx);
        if let Some(exempt) = &preset.exempt {
            checker.test(exempt, false, cx);
        }
    }
}

/// Returns whether an expression of a preset has errors, so that its rules have none of their own.
pub fn has_errors(preset: &ProtectSettings, cx: &CompileContext<'_>) -> bool {
    let mut texts = preset.expressions();
    texts.any(|text| cx.diagnostics.has_error_within(&text.span))
}

struct PresetChecker<'a> {
    keys: &'a KeyCompiler<'a>,
}

// === impl PresetChecker ===

impl PresetChecker<'_> {
    /// Checks a test that selects responses.
    fn reads_response(&self, key: &str, text: Option<&ExprText>, cx: &mut CompileContext<'_>) {
        let Some(text) = text else {
            return;
        };
        if self.test(text, true, cx) == Some(false) {
            cx.diagnostics
                .error(
                    text.span.clone(),
                    format!("`{key}` does not read the response"),
                )
                .help(format!("for example `{key} = 'http.response.code eq 200'`"));
        }
    }

    /// Checks a test. Returns whether it reads the response; `None` after an error.
    fn test(
        &self,
        text: &ExprText,
        allow_response: bool,
        cx: &mut CompileContext<'_>,
    ) -> Option<bool> {
        if text.is_broken() {
            return None;
        }
        match expr::predicate(&text.value, &self.env(allow_response)) {
            Ok(test) => Some(test.reads_response()),
            Err(errors) => {
                report(text, errors, cx);
                None
            }
        }
    }

    fn env(&self, allow_response: bool) -> ExprEnv<'_> {
        ExprEnv {
            scheme: &self.keys.fields,
            lists: self.keys.lists,
            allow_response,
        }
    }
}
