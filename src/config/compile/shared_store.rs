//! `[store.redis]`: reads the password and the certificates, and checks that they fit together.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::path::PathBuf;

use super::{CompileContext, authority, listeners, resolve, secret};
use crate::config::blueprint::SharedStoreBlueprint;
use crate::config::file::{
    CertificateSettings, ConfigFile, RedisTableSettings, RuleSettings, StoreKind,
};
use crate::config::source::read_named;
use crate::config::{ConfigSource, LintCode, Spanned};
use crate::store::redis::RedisSettings;
use crate::tls::ClientAuth;

/// The environment variable with the password.
const PASSWORD_VARIABLE: &str = "LOCKGATE_REDIS_PASSWORD";

/// Compiles the shared store. `None` if the counters are in memory, after an error, and for a reload.
pub(super) fn shared_store(
    file: &ConfigFile,
    cx: &mut CompileContext<'_>,
) -> Option<SharedStoreBlueprint> {
    if file.store.kind.value == StoreKind::Memory {
        warn_of_unused(file, cx);
        return None;
    }
    let table = &file.store.redis;
    warn_without_secret(file, cx);
    warn_of_rules_without_limit(file, cx);
    refuse_unused_tls(table, cx);
    let username = Some(table.username.value.clone()).filter(|name| !name.is_empty());
    let (password, password_source) = password(table, cx);
    let redis = RedisSettings {
        address: table.url.value.clone(),
        timeout: table.timeout.value,
        sync_interval: table.sync_interval.value,
        prefix: table.prefix.value.clone(),
        // A user without a password is another one than the default user.
        password: password.or_else(|| username.as_ref().map(|_| String::new())),
        password_source,
        username,
        authorities: authorities(table, cx),
        client_certificate: client_certificate(table, cx),
    };
    if let Err(error) = redis.check() {
        let message = format!("the certificates of `[store.redis]` cannot be used: {error}");
        cx.diagnostics.error(table.span.clone(), message);
        return None;
    }
    // A reload checks the settings, and keeps the store that the process has.
    if cx.previous.is_some() {
        return None;
    }
    Some(SharedStoreBlueprint {
        redis,
        local_fraction: table.local_fraction.value,
        on_failure: table.on_failure.value,
    })
}

/// A setting of `[store.redis]` that only a restart changes.
pub(super) struct FixedSetting {
    pub(super) name: &'static str,
    pub(super) span: Range<usize>,
    /// The value, and for a file a hash of its contents.
    pub(super) value: String,
}

/// The settings that only a restart changes.
pub(super) fn fixed(file: &ConfigFile, source: &ConfigSource) -> Vec<FixedSetting> {
    let RedisTableSettings {
        span: _,
        url,
        timeout,
        mode: _,
        sync_interval,
        on_failure: _,
        local_fraction,
        prefix,
        username,
        password_file,
        ca,
        certificate,
        private_key,
    } = &file.store.redis;
    let setting = |name, span: &Range<usize>, value: String| FixedSetting {
        name,
        span: span.clone(),
        value,
    };
    let named_file = |name, file: &Spanned<Option<PathBuf>>| {
        let text = format!("{:?} {:?}", file.value, contents(file, source));
        setting(name, &file.span, text)
    };
    let shown = |value: &dyn std::fmt::Debug| format!("{value:?}");
    vec![
        setting("url", &url.span, shown(&url.value)),
        setting("timeout", &timeout.span, shown(&timeout.value)),
        setting(
            "sync_interval",
            &sync_interval.span,
            shown(&sync_interval.value),
        ),
        setting(
            "local_fraction",
            &local_fraction.span,
            shown(&local_fraction.value),
        ),
        setting("prefix", &prefix.span, shown(&prefix.value)),
        setting("username", &username.span, shown(&username.value)),
        named_file("password_file", password_file),
        named_file("tls.ca", ca),
        named_file("tls.cert", certificate),
        named_file("tls.key", private_key),
    ]
}

/// A hash of the contents of a file. `None` if there is none.
fn contents(file: &Spanned<Option<PathBuf>>, source: &ConfigSource) -> Option<u64> {
    let path = resolve(file.value.as_ref()?, source.part(file.span.start).path);
    let mut hasher = DefaultHasher::new();
    read_named(&path).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

/// The values of the settings that only a restart changes. `None` if the counters are in memory.
pub(super) fn summary(file: &ConfigFile, source: &ConfigSource) -> Option<Vec<String>> {
    let is_shared = file.store.kind.value == StoreKind::Redis;
    let values = || fixed(file, source).into_iter().map(|setting| setting.value);
    is_shared.then(|| values().collect())
}

/// Settings of a shared store have no effect on the memory store.
fn warn_of_unused(file: &ConfigFile, cx: &mut CompileContext<'_>) {
    let table = &file.store.redis;
    let is_written = table.span != file.store.span;
    let section = is_written.then_some((&table.span, "[store.redis]"));
    let rules = file.rules.iter().flat_map(settings_of_rule);
    for (span, name) in section.into_iter().chain(rules) {
        let message = format!("`{name}` has no effect: `store.kind` is \"memory\"");
        cx.diagnostics
            .warning(LintCode::Unused, span.clone(), message)
            .help("write `kind = \"redis\"` in `[store]` to share the counters");
    }
}

/// A rule without a limit counts nothing in the store.
fn warn_of_rules_without_limit(file: &ConfigFile, cx: &mut CompileContext<'_>) {
    let rules = file.rules.iter().filter(|rule| rule.limit.is_none());
    for (span, name) in rules.flat_map(settings_of_rule) {
        let message = format!("`{name}` has no effect: the rule has no `limit`");
        cx.diagnostics
            .warning(LintCode::Unused, span.clone(), message);
    }
}

/// The settings of a rule that only a shared store uses.
fn settings_of_rule(rule: &RuleSettings) -> impl Iterator<Item = (&Range<usize>, &'static str)> {
    let on_failure = rule.on_store_failure.as_ref();
    let on_failure = on_failure.map(|setting| (&setting.span, "on_store_failure"));
    let mode = rule.store_mode.as_ref();
    let mode = mode.map(|setting| (&setting.span, "store_mode"));
    on_failure.into_iter().chain(mode)
}

/// Gateways with different secrets show different hashes for one secret value, so a listing of one gateway cannot be
/// compared with that of another.
fn warn_without_secret(file: &ConfigFile, cx: &mut CompileContext<'_>) {
    if file.server.secret_file.value.is_none() {
        let message = "a shared store without `server.secret_file`: each gateway hashes secret \
                       values in its own way";
        cx.diagnostics
            .warning(
                LintCode::FleetSecret,
                file.store.kind.span.clone(),
                message,
            )
            .help("give all gateways one secret: `secret_file = \"/etc/lockgate/secret\"` in `[server]`");
    }
}

fn refuse_unused_tls(table: &RedisTableSettings, cx: &mut CompileContext<'_>) {
    let files = [&table.ca, &table.certificate, &table.private_key];
    for file in files.into_iter().filter(|file| file.value.is_some()) {
        if !table.url.value.tls {
            let message = "this certificate has no effect: the URL does not use TLS";
            cx.diagnostics
                .error(file.span.clone(), message)
                .help("write `rediss://` instead of `redis://`");
        }
    }
}

/// The password and where it is from.
fn password(
    table: &RedisTableSettings,
    cx: &mut CompileContext<'_>,
) -> (Option<String>, &'static str) {
    let (written, source) = if table.password_file.value.is_some() {
        (password_in_file(table, cx), "from password_file")
    } else {
        let variable = std::env::var(PASSWORD_VARIABLE).ok();
        (variable, "from LOCKGATE_REDIS_PASSWORD")
    };
    let trimmed = written.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
    match trimmed.filter(|password| !password.is_empty()) {
        Some(password) => (Some(password), source),
        None => (None, "none"),
    }
}

fn password_in_file(table: &RedisTableSettings, cx: &mut CompileContext<'_>) -> Option<String> {
    let span = &table.password_file.span;
    let bytes = read(&table.password_file, cx)?;
    let message = match String::from_utf8(bytes) {
        Ok(text) if text.trim_end_matches(['\r', '\n']).is_empty() => "the password file is empty",
        Ok(text) => {
            let path = table.password_file.value.as_ref()?;
            let path = resolve(path, cx.source.part(span.start).path);
            secret::warn_of_open(&path, span, cx);
            return Some(text);
        }
        Err(_) => "the password is not UTF-8",
    };
    cx.diagnostics.error(span.clone(), message);
    None
}

/// Reads the accepted certificate authorities. `None` if there are none, or after an error.
fn authorities(table: &RedisTableSettings, cx: &mut CompileContext<'_>) -> Option<Vec<u8>> {
    let pem = read(&table.ca, cx)?;
    let span = &table.ca.span;
    authority::warn_of_lifetimes(&pem, span, cx);
    let path = table.ca.value.as_ref()?.display();
    let checked = ClientAuth::from_pem(&pem, false).map_err(|error| {
        let message = format!("cannot use `{path}`: {error}");
        cx.diagnostics.error(span.clone(), message);
    });
    checked.ok().map(|_| pem)
}

fn client_certificate(
    table: &RedisTableSettings,
    cx: &mut CompileContext<'_>,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let (certificate, key) = (&table.certificate, &table.private_key);
    if certificate.value.is_some() != key.value.is_some() {
        let message = "a client certificate needs both `cert` and `key`";
        let span = if key.value.is_none() {
            &certificate.span
        } else {
            &key.span
        };
        cx.diagnostics.error(span.clone(), message);
        return None;
    }
    let written = |file: &Spanned<Option<PathBuf>>| {
        let path = file.value.clone()?;
        Some(Spanned::new(path, file.span.clone()))
    };
    let pair = CertificateSettings {
        cert: Some(written(certificate)?),
        key: Some(written(key)?),
    };
    listeners::read_certificate(&pair, cx)?;
    read(certificate, cx).zip(read(key, cx))
}

/// Reads a file. `None` if there is none, or after an error.
fn read(file: &Spanned<Option<PathBuf>>, cx: &mut CompileContext<'_>) -> Option<Vec<u8>> {
    cx.read(file.value.as_ref()?, &file.span)
}
