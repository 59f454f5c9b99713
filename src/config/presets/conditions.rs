//! The conditions and keys that presets write. The only code of the configuration that names fields.

use std::ops::Range;

use crate::config::Text;
use crate::config::expr_text::ExprText;
use crate::config::file::{PresetKind, ProtectSettings, UserSource};
use crate::expr::{self, ExprForm};

/// The key of a rule that counts by address.
pub const ADDRESS: &str = "ip.src";
/// The key of a rule that counts by TLS fingerprint.
pub const FINGERPRINT: &str = "tls.ja4";
/// The key of a rule that counts by known-client cookie.
pub const CLIENT: &str = "client.id";
/// The key of a rule that counts by clearance.
pub const CLEARANCE: &str = "client.clearance";

/// The response of a failed login, unless the preset says otherwise.
const FAILED: &str = "http.response.code in {401 403}";
/// The response of a successful login.
const LOGGED_IN: &str = "http.response.code in {200 204 302 303}";
/// The response of a successful registration.
const REGISTERED: &str = "http.response.code in {200 201 204 302 303}";

/// Tests that all have to hold, in the order in which they are added.
#[derive(Clone)]
pub struct AllOf(ExprText);

/// Which clients a condition selects.
#[derive(Clone, Copy)]
pub enum ClientTest {
    /// A client that has succeeded with the user of the request, or with any if users are not known.
    Known,
    /// Every other client.
    New,
    /// A client that has never succeeded.
    NeverKnown,
}

// === impl ProtectSettings ===

impl ProtectSettings {
    /// The requests that the preset protects.
    pub(in crate::config) fn protected(&self) -> ExprText {
        match self.kind {
            Some(PresetKind::Pages) => self.page().into_text(),
            _ => self.request().into_text(),
        }
    }

    /// Requests to the protected paths.
    pub(super) fn request(&self) -> AllOf {
        self.to_paths(&self.path).and_not_exempt(self)
    }

    /// Requests to the protected paths that are the action of an account.
    pub(super) fn action(&self) -> AllOf {
        self.to_paths(&self.actions).and_not_exempt(self)
    }

    /// Requests with any method to the protected paths.
    pub(super) fn page(&self) -> AllOf {
        let all = AllOf::new(self.span.clone()).and_paths(&self.path);
        all.and_hosts(&self.host).and_not_exempt(self)
    }

    /// Requests with any method to any path of the protected hosts.
    pub(super) fn any_page(&self) -> AllOf {
        let all = AllOf::new(self.span.clone()).and_hosts(&self.host);
        all.and_not_exempt(self)
    }

    /// Matches requests for the page with the login form. `None` if the preset protects no form page.
    pub(super) fn form_page(&self) -> Option<AllOf> {
        let paths = match &self.form_path {
            Some(path) if path.value.is_empty() => return None,
            Some(path) => std::slice::from_ref(path),
            None if self.names_user_in_json() => return None,
            None => &self.path,
        };
        let all = AllOf::new(self.span.clone());
        let all = all.and("http.request.method eq \"GET\"", &self.span);
        Some(
            all.and_paths(paths)
                .and_hosts(&self.host)
                .and_not_exempt(self),
        )
    }

    /// Requests whose user the preset knows.
    pub(super) fn source_request(&self) -> AllOf {
        self.to_paths(&self.path)
    }

    /// Responses that prove a success.
    pub(super) fn source_success(&self, is_login: bool) -> AllOf {
        let step = self.success_path.as_ref().map(std::slice::from_ref);
        let all = self.to_paths(step.unwrap_or(&self.path));
        let default = if is_login { LOGGED_IN } else { REGISTERED };
        let all = all.and_response(self.success.as_ref(), default, &self.span);
        if is_login {
            all.and_not(&self.failed())
        } else {
            all
        }
    }

    /// The responses that are failed logins.
    fn failed(&self) -> ExprText {
        match &self.failed {
            Some(written) => written.clone(),
            None => generated(FAILED, &self.span),
        }
    }

    /// Failed requests to the protected paths.
    pub(super) fn failure(&self) -> AllOf {
        self.request().and_expr(&self.failed())
    }

    /// The user of a request, as a key. `None` if the gateway does not know it.
    pub(in crate::config) fn user_key(&self) -> Option<ExprText> {
        let user = self.user.as_ref()?;
        let text = match &user.source {
            UserSource::Expression(text) => return Some(text.clone()),
            UserSource::Field(name) => format!("http.request.body.form[{}]", quoted(name)),
            UserSource::Json(names) => {
                let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
                let names = names.join(", ");
                format!("lookup_json_string(http.request.body.raw, {names})")
            }
        };
        Some(generated(&format!("lower({text})"), &user.span))
    }

    fn names_user_in_json(&self) -> bool {
        let user = self.user.as_ref();
        user.is_some_and(|user| matches!(user.source, UserSource::Json(_)))
    }

    fn to_paths(&self, paths: &[Text]) -> AllOf {
        let method = format!("http.request.method eq {}", quoted(&self.method.value));
        let all = AllOf::new(self.span.clone()).and(&method, &self.method.span);
        all.and_paths(paths).and_hosts(&self.host)
    }
}

// === impl AllOf ===

impl AllOf {
    fn new(span: Range<usize>) -> Self {
        Self(ExprText::generated(span))
    }

    /// Adds a generated test. Errors in it point to `cause`.
    pub fn and(mut self, test: &str, cause: &Range<usize>) -> Self {
        self.join(cause);
        self.0.push(test, cause);
        self
    }

    /// Adds a test as the user wrote it.
    fn and_expr(mut self, test: &ExprText) -> Self {
        let span = test.span.clone();
        self.join(&span);
        self.append(test);
        self
    }

    /// Adds the negation of a test as the user wrote it.
    fn and_not(mut self, test: &ExprText) -> Self {
        let span = test.span.clone();
        self.join(&span);
        self.0.push("not ", &span);
        self.append(test);
        self
    }

    fn and_not_exempt(self, preset: &ProtectSettings) -> Self {
        match &preset.exempt {
            Some(exempt) => self.and_not(exempt),
            None => self,
        }
    }

    fn and_response(self, written: Option<&ExprText>, default: &str, span: &Range<usize>) -> Self {
        match written {
            Some(written) => self.and_expr(written),
            None => self.and(default, span),
        }
    }

    /// Adds whether the client is known. Without a user, every success makes a client known.
    pub fn and_client(self, client: ClientTest, preset: &ProtectSettings) -> Self {
        let has_user = preset.user.is_some();
        let test = match client {
            ClientTest::Known if has_user => "client.known_user",
            ClientTest::Known => "client.known",
            ClientTest::New if has_user => "not client.known_user",
            ClientTest::New | ClientTest::NeverKnown => "not client.known",
        };
        self.and(test, &preset.span)
    }

    /// Adds that the client's cookie is younger than the setting says, or missing.
    pub fn and_young(self, preset: &ProtectSettings) -> Self {
        let seconds = preset.young.value.as_secs();
        self.and(&format!("not client.age gt {seconds}"), &preset.young.span)
    }

    fn and_paths(self, paths: &[Text]) -> Self {
        let is_prefix = |path: &&Text| path.value.ends_with('*');
        let exact = paths.iter().filter(|path| !is_prefix(path));
        let exact: Vec<String> = exact.map(|path| quoted(&path.value)).collect();
        let one_of = one_of("http.request.uri.path", &exact);
        let prefixes = paths.iter().filter(is_prefix).map(|path| {
            let prefix = quoted(path.value.trim_end_matches('*'));
            format!("starts_with(http.request.uri.path, {prefix})")
        });
        let tests: Vec<String> = one_of.into_iter().chain(prefixes).collect();
        let Some(first) = paths.first() else {
            return self;
        };
        match tests.as_slice() {
            [only] => self.and(only, &first.span),
            several => self.and(&format!("({})", several.join(" or ")), &first.span),
        }
    }

    fn and_hosts(self, hosts: &[Text]) -> Self {
        let names: Vec<String> = hosts.iter().map(|host| quoted(&host.value)).collect();
        match (one_of("http.host", &names), hosts.first()) {
            (Some(test), Some(first)) => self.and(&test, &first.span),
            _ => self,
        }
    }

    /// The test that one of two conditions holds.
    pub fn or(self, other: AllOf) -> ExprText {
        let mut text = self.0;
        let span = text.span.clone();
        text.push(" or (", &span);
        text.append(&other.0);
        text.push(")", &span);
        text
    }

    /// The whole test. A preset for all requests has the test `true`.
    pub fn into_text(mut self) -> ExprText {
        if self.0.value.is_empty() {
            let span = self.0.span.clone();
            self.0.push("true", &span);
        }
        self.0
    }

    fn join(&mut self, cause: &Range<usize>) {
        if !self.0.value.is_empty() {
            self.0.push(" and ", cause);
        }
    }

    fn append(&mut self, test: &ExprText) {
        match expr::expr_form(&test.value) {
            Ok(ExprForm::Compound) => {
                self.0.push("(", &test.span);
                self.0.append(test);
                self.0.push(")", &test.span);
            }
            Ok(_) => self.0.append(test),
            // Its own check reports it.
            Err(_) => self.0.mark_broken(),
        }
    }
}

/// Returns a generated expression.
pub fn generated(text: &str, cause: &Range<usize>) -> ExprText {
    let mut generated = ExprText::generated(cause.clone());
    generated.push(text, cause);
    generated
}

/// Returns the test that a field has one of these values. `None` if the list of values is empty.
fn one_of(field: &str, quoted: &[String]) -> Option<String> {
    match quoted {
        [] => None,
        [only] => Some(format!("{field} eq {only}")),
        several => Some(format!("{field} in {{{}}}", several.join(" "))),
    }
}

/// Returns a string of the rule language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
