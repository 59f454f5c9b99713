//! The cookies that the gateway gives to clients: compiles what makes clients known, and reads the secrets.

use super::keys::{KeyCompiler, report};
use super::{CompileContext, secret};
use crate::config::ExprText;
use crate::config::blueprint::CredentialBlueprint;
use crate::config::file::{ConfigFile, KnownClientSettings};
use crate::config::presets::KnownSource;
use crate::expr::{self, ExprEnv, ValueType};
use crate::facts::{KnownClients, SuccessSource};

/// A source as written: by a preset or by `[known_clients]`.
struct WrittenSource<'a> {
    request: Option<&'a ExprText>,
    success: ExprText,
    user: Option<&'a ExprText>,
}

/// Compiles the settings of cookies.
pub(super) fn credentials(
    file: &ConfigFile,
    keys: &KeyCompiler<'_>,
    cx: &mut CompileContext<'_>,
) -> CredentialBlueprint {
    let has_cookies = file.known_clients.is_some() || file.challenge.is_some();
    let clearance = file.challenge.as_ref();
    let clearance = clearance.map(|challenge| challenge.lifetime.value.as_secs());
    CredentialBlueprint {
        known: known_clients(file, keys, cx),
        clearance_lifetime: clearance.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX)),
        secrets: secret::secrets(&file.server.secret_file, has_cookies, cx),
    }
}

/// Compiles the sources of known clients: those of presets in file order, then that of
/// `[known_clients]`. `None` if no client can become known, or after an error.
fn known_clients(
    file: &ConfigFile,
    keys: &KeyCompiler<'_>,
    cx: &mut CompileContext<'_>,
) -> Option<KnownClients> {
    let settings = file.known_clients.as_ref()?;
    let written = file.known_sources().map(WrittenSource::of_preset);
    let written = written.chain(WrittenSource::of_table(settings));
    let sources: Vec<_> = written.map(|source| source.compile(keys, cx)).collect();
    let lifetime = settings.lifetime.value.as_secs();
    Some(KnownClients {
        sources: sources.into_iter().collect::<Option<_>>()?,
        lifetime: u32::try_from(lifetime).unwrap_or(u32::MAX),
        domain: settings.domain.value.as_deref().map(Into::into),
    })
}

// === impl WrittenSource ===

impl<'a> WrittenSource<'a> {
    fn of_preset(source: &'a KnownSource) -> Self {
        Self {
            request: Some(&source.request),
            success: source.success.clone(),
            user: source.user.as_ref(),
        }
    }

    /// The source of `[known_clients]`. A `user` without `success` names the users of requests.
    fn of_table(settings: &'a KnownClientSettings) -> Option<Self> {
        let user = settings.user.as_ref();
        let never = || {
            let span = user?.span.clone();
            let mut never = ExprText::generated(span.clone());
            never.push("false", &span);
            Some(never)
        };
        let success = settings.success.clone().or_else(never)?;
        Some(Self {
            request: None,
            success,
            user,
        })
    }

    fn compile(
        &self,
        keys: &KeyCompiler<'_>,
        cx: &mut CompileContext<'_>,
    ) -> Option<SuccessSource> {
        let env = ExprEnv {
            scheme: &keys.fields,
            lists: keys.lists,
            allow_response: true,
        };
        let success = compile_test(&self.success, &env, cx);
        let request = self.request.map(|request| compile_test(request, &env, cx));
        let user_fields = keys.fields.for_user();
        let env = ExprEnv {
            scheme: &user_fields,
            ..env
        };
        let user = self.user.map(|user| compile_user(user, &env, cx));
        Some(SuccessSource {
            request: match request {
                Some(request) => Some(request?),
                None => None,
            },
            success: success?,
            user: match user {
                Some(user) => Some(user?),
                None => None,
            },
        })
    }
}

fn compile_test(
    text: &ExprText,
    env: &ExprEnv<'_>,
    cx: &mut CompileContext<'_>,
) -> Option<expr::Predicate> {
    if text.is_broken() {
        return None;
    }
    let test = expr::predicate(&text.value, env);
    test.map_err(|errors| report(text, errors, cx)).ok()
}

fn compile_user(
    text: &ExprText,
    env: &ExprEnv<'_>,
    cx: &mut CompileContext<'_>,
) -> Option<expr::Scalar> {
    if text.is_broken() {
        return None;
    }
    let user = expr::scalar(&text.value, env);
    let user = user.map_err(|errors| report(text, errors, cx)).ok()?;
    if user.ty() != ValueType::Bytes {
        let message = format!("`user` must be a string, but this is {}", user.ty().words());
        cx.diagnostics.error(text.span.clone(), message);
        return None;
    }
    Some(user)
}
