//! The headers that routes set, with values from the fields of a request.

use std::sync::Arc;

use super::CompileContext;
use super::available_fields::AvailableFields;
use super::keys::report;
use crate::config::file::{HeaderEditSettings, HeaderSetting};
use crate::config::{ExprText, Text};
use crate::expr::{self, ExprEnv, NamedLists};
use crate::route::edit::HeaderChanges;
use crate::route::value_template::{ValuePart, ValueTemplate, WrittenPart};

/// Compiles the values of headers.
#[derive(Clone, Copy)]
pub struct ValueCompiler<'a> {
    /// The lists that expressions can name.
    pub lists: &'a NamedLists,
    /// The fields that expressions can read.
    pub fields: AvailableFields,
}

// === impl ValueCompiler ===

impl ValueCompiler<'_> {
    /// Compiles the changes to the headers of a message. `None` after an error.
    pub fn changes(
        &self,
        written: &HeaderEditSettings,
        cx: &mut CompileContext<'_>,
    ) -> Option<HeaderChanges> {
        let mut changes = HeaderChanges {
            remove: written.remove.clone(),
            ..HeaderChanges::default()
        };
        let mut is_complete = true;
        for header in &written.set {
            is_complete &= self.add(header, &mut changes, cx).is_some();
        }
        is_complete.then_some(changes)
    }

    fn add(
        &self,
        written: &HeaderSetting,
        changes: &mut HeaderChanges,
        cx: &mut CompileContext<'_>,
    ) -> Option<()> {
        let (name, value) = (written.name.value.clone(), &written.value.value);
        if !value.as_bytes().contains(&b'{') && !value.as_bytes().contains(&b'}') {
            changes.set.push((name, value.clone()));
            return Some(());
        }
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let text = Text::new(text, written.value.span.clone());
        let parts = WrittenPart::split(&text.value).map_err(|(range, message)| {
            let span = text.inner(cx.source, range);
            cx.diagnostics.error(span, message);
        });
        let parts = parts.ok()?.into_iter();
        let parts: Vec<_> = parts.map(|part| self.part(part, &text, cx)).collect();
        let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
        let template = Arc::new(ValueTemplate::new(parts));
        changes.computed.push((name, template));
        Some(())
    }

    fn part(
        &self,
        part: WrittenPart,
        text: &Text,
        cx: &mut CompileContext<'_>,
    ) -> Option<ValuePart> {
        let range = match part {
            WrittenPart::Text(text) => return Some(ValuePart::Text(text)),
            WrittenPart::Value(range) => range,
        };
        let mut expression = ExprText::generated(text.span.clone());
        expression.push_written(text, range);
        let env = ExprEnv {
            scheme: &self.fields,
            lists: self.lists,
            allow_response: false,
        };
        match expr::scalar(&expression.value, &env) {
            Ok(scalar) => Some(ValuePart::Value(scalar)),
            Err(errors) => {
                report(&expression, errors, cx);
                None
            }
        }
    }
}
