//! `[store.redis]`: reads the password and the certificates, and checks that they fit together.

use std::path::PathBuf;

use super::CompileContext;
use crate::config::blueprint::SharedStoreBlueprint;
use crate::config::file::{ConfigFile, RedisTableSettings, StoreKind};
use crate::config::{LintCode, Spanned};
use crate::store::redis::RedisSettings;

/// The environment variable with the password.
const PASSWORD_VARIABLE: &str = "LOCKGATE_REDIS_PASSWORD";

/// Compiles the shared store. `None` if the counters are in memory, or after an error. A reload keeps the store that
/// the process has.
pub(super) fn shared_store(
    file: &ConfigFile,
    cx: &mut CompileContext<'_>,
) -> Option<SharedStoreBlueprint> {
    if file.store.kind.value == StoreKind::Memory {
        warn_of_unused(file, cx);
        return None;
    }
    if cx.previous.is_some() {
        return None;
    }
    let table = &file.store.redis;
    warn_without_secret(file, cx);
    refuse_unused_tls(table, cx);
    let redis = RedisSettings {
        address: table.url.value.clone(),
        timeout: table.timeout.value,
        sync_interval: table.sync_interval.value,
        prefix: table.prefix.value.clone(),
        username: Some(table.username.value.clone()).filter(|name| !name.is_empty()),
        password: password(table, cx),
        authorities: read(&table.ca, cx),
        client_certificate: client_certificate(table, cx),
    };
    if let Err(error) = redis.check() {
        let message = format!("the certificates of `[store.redis]` cannot be used: {error}");
        cx.diagnostics.error(table.span.clone(), message);
        return None;
    }
    Some(SharedStoreBlueprint {
        redis,
        local_fraction: table.local_fraction.value,
        on_failure: table.on_failure.value,
    })
}

/// The settings of the shared store as text. `None` if the counters are in memory.
pub(super) fn summary(file: &ConfigFile) -> Option<String> {
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
    let connection = (&url.value, &timeout.value, &local_fraction.value);
    let sync_interval = &sync_interval.value;
    let names = (&prefix.value, &username.value);
    let files = [password_file, ca, certificate, private_key].map(|file| &file.value);
    let is_shared = file.store.kind.value == StoreKind::Redis;
    is_shared.then(|| format!("{connection:?} {sync_interval:?} {names:?} {files:?}"))
}

/// Settings of a shared store have no effect on the memory store.
fn warn_of_unused(file: &ConfigFile, cx: &mut CompileContext<'_>) {
    let table = &file.store.redis;
    let is_written = table.span != file.store.span;
    let section = is_written.then_some((&table.span, "[store.redis]"));
    let rules = file.rules.iter().flat_map(|rule| {
        let on_failure = rule.on_store_failure.as_ref();
        let on_failure = on_failure.map(|setting| (&setting.span, "on_store_failure"));
        let mode = rule.store_mode.as_ref();
        on_failure
            .into_iter()
            .chain(mode.map(|setting| (&setting.span, "store_mode")))
    });
    for (span, name) in section.into_iter().chain(rules) {
        let message = format!("`{name}` has no effect: `store.kind` is \"memory\"");
        cx.diagnostics
            .warning(LintCode::Unused, span.clone(), message)
            .help("write `kind = \"redis\"` in `[store]` to share the counters");
    }
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

fn password(table: &RedisTableSettings, cx: &mut CompileContext<'_>) -> Option<String> {
    if table.password_file.value.is_none() {
        return std::env::var(PASSWORD_VARIABLE)
            .ok()
            .filter(|password| !password.is_empty());
    }
    let bytes = read(&table.password_file, cx)?;
    let password = String::from_utf8_lossy(&bytes);
    let password = password.trim_end_matches(['\r', '\n']).to_owned();
    if password.is_empty() {
        let message = "the password file is empty";
        cx.diagnostics
            .error(table.password_file.span.clone(), message);
    }
    Some(password)
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
    read(certificate, cx).zip(read(key, cx))
}

/// Reads a file. `None` if there is none, or after an error.
fn read(file: &Spanned<Option<PathBuf>>, cx: &mut CompileContext<'_>) -> Option<Vec<u8>> {
    cx.read(file.value.as_ref()?, &file.span)
}
