//! `[responses]`: parses bodies as templates and builds the responses that rules name.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use http::StatusCode;

use super::CompileContext;
use crate::action::template::TemplateError;
use crate::action::{HeaderTemplate, ResponseTemplate, Template};
use crate::config::Text;
use crate::config::file::{ConfigFile, ResponseSettings, RuleSettings};
use crate::decision::Action;

/// The configured responses by name.
pub struct ResponseTemplates<'a>(HashMap<&'a str, &'a ResponseSettings>);

// === impl ResponseTemplates ===

impl<'a> ResponseTemplates<'a> {
    /// Collects the responses of `file`. Reports errors in their templates, even in unused
    /// responses.
    pub fn new(file: &'a ConfigFile, cx: &mut CompileContext<'_>) -> Self {
        for response in &file.responses {
            template(&response.body, cx);
            for header in &response.headers {
                if let Err(error) = HeaderTemplate::parse(&header.value.value) {
                    wrong(header.value.span.clone(), error, cx);
                }
            }
        }
        let responses = file.responses.iter();
        Self(responses.map(|r| (r.name.value.as_str(), r)).collect())
    }

    /// Builds the response that `rule` names. `None` if it names none or after an error.
    pub fn of(
        &self,
        rule: &RuleSettings,
        cx: &mut CompileContext<'_>,
    ) -> Option<Arc<ResponseTemplate>> {
        let name = rule.response.as_ref()?;
        // An unknown name was reported when the file was read.
        let response = self.0.get(name.value.as_str())?;
        let body = Template::parse(&response.body.value).ok()?;
        let action = rule.action.value;
        let headers = response.headers.iter();
        let headers =
            headers.filter_map(|h| Some((h, HeaderTemplate::parse(&h.value.value).ok()?)));
        let headers: Vec<_> = headers.collect();
        if action == Action::Shadow {
            let revealing = headers
                .iter()
                .filter(|(_, field)| field.names_rule_or_wait());
            let revealing = revealing.map(|(header, _)| &header.value.span);
            let body = Some(&response.body.span).filter(|_| body.names_rule_or_wait());
            for span in body.into_iter().chain(revealing) {
                cx.diagnostics
                    .error(
                        name.span.clone(),
                        "a shadow response must not contain the rule name or a retry delay",
                    )
                    .related(span.clone(), "used here")
                    .help("remove `{{rule}}` and `{{retry_after}}` from the response");
            }
        }
        let default = match action {
            Action::Block | Action::Tarpit => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::OK,
        };
        let headers = headers.into_iter();
        Some(Arc::new(ResponseTemplate {
            status: response.status.as_ref().map_or(default, |s| s.value),
            content_type: response.content_type.value.clone(),
            headers: headers
                .map(|(header, field)| (header.name.value.clone(), field))
                .collect(),
            body,
            imitate: response.imitate.value && action == Action::Shadow,
        }))
    }
}

fn template(body: &Text, cx: &mut CompileContext<'_>) {
    let mut from = 0;
    while let Some(Err(error)) = body.value.get(from..).map(Template::parse) {
        let at = from + error.span.start..from + error.span.end;
        from = at.end;
        wrong(body.inner(cx.source, at), error, cx);
    }
}

fn wrong(span: Range<usize>, error: TemplateError, cx: &mut CompileContext<'_>) {
    cx.diagnostics.error(span, error.message).help(
        "known values: `{{uuid}}` `{{now}}` `{{int 1 1000}}` `{{hex 16}}` `{{request.id}}` \
         `{{rule}}` `{{retry_after}}`",
    );
}
