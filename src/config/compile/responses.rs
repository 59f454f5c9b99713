//! `[responses]`: parses bodies as templates and builds the responses that rules name.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use http::StatusCode;

use super::CompileContext;
use crate::action::template::TemplateError;
use crate::action::{ErrorPages, HeaderTemplate, ResponseTemplate, Template};
use crate::config::Text;
use crate::config::file::{
    ConfigFile, ErrorPageSettings, HeaderSetting, ResponseSettings, RuleSettings,
};
use crate::decision::Action;

/// The configured responses by name.
pub struct ResponseTemplates<'a>(HashMap<&'a str, &'a ResponseSettings>);

// === impl ResponseTemplates ===

impl<'a> ResponseTemplates<'a> {
    /// Collects the responses of `file`. Reports errors in their templates, even in unused
    /// responses.
    pub fn new(file: &'a ConfigFile, cx: &mut CompileContext<'_>) -> Self {
        for response in &file.responses {
            response.bodies().for_each(|body| template(body, cx));
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
        let action = rule.action.value;
        if action == Action::Shadow {
            for span in revealing(response) {
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
        let mut built = build(response, default)?;
        built.imitate = response.imitate.value && action == Action::Shadow;
        Some(Arc::new(built))
    }

    /// Builds the error pages, in their order. Errors of the responses are reported already.
    pub fn error_pages(&self, written: &[ErrorPageSettings]) -> ErrorPages {
        let mut pages = ErrorPages::default();
        for page in written {
            let response = self.0.get(page.response.value.as_str());
            let built = response.and_then(|response| build(response, StatusCode::OK));
            if let Some(built) = built {
                pages.add(page.statuses.clone(), Arc::new(built));
            }
        }
        pages
    }
}

/// Builds a response that imitates nothing. `None` after an error.
fn build(response: &ResponseSettings, default: StatusCode) -> Option<ResponseTemplate> {
    let optional = |text: &Option<Text>| match text {
        Some(text) => Template::parse(&text.value).ok().map(Some),
        None => Some(None),
    };
    let header = |header: &HeaderSetting| {
        let template = HeaderTemplate::parse(&header.value.value).ok()?;
        Some((header.name.value.clone(), template))
    };
    Some(ResponseTemplate {
        status: response.status.as_ref().map_or(default, |s| s.value),
        content_type: response.content_type.value.clone(),
        headers: response.headers.iter().filter_map(header).collect(),
        body: Template::parse(&response.body.value).ok()?,
        html: optional(&response.html)?,
        json: optional(&response.json)?,
        imitate: false,
    })
}

/// Returns the parts of a response that name a rule or a wait.
fn revealing(response: &ResponseSettings) -> impl Iterator<Item = &Range<usize>> {
    let names = |body: &&Text| {
        let template = Template::parse(&body.value);
        template.is_ok_and(|template| template.names_rule_or_wait())
    };
    let bodies = response.bodies().filter(names).map(|body| &body.span);
    let names = |header: &&HeaderSetting| {
        let template = HeaderTemplate::parse(&header.value.value);
        template.is_ok_and(|template| template.names_rule_or_wait())
    };
    let headers = response.headers.iter().filter(names);
    bodies.chain(headers.map(|header| &header.value.span))
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
