//! Compiles a [`ConfigFile`] into a [`Blueprint`] and reports all errors at once.
//!
//! Reads other files: certificates, lists, databases. A relative path is relative to the
//! configuration file. Writes, registers and logs nothing.

mod authority;
mod available_fields;
mod challenge;
mod credentials;
mod expressions;
mod geo;
mod header_values;
mod identity;
mod key_fields;
mod keys;
mod listeners;
mod lists;
mod observe;
mod origins;
mod presets;
mod responses;
mod restart_only;
mod routes;
mod rules;
mod saved;
mod secret;
mod shared_store;
#[cfg(test)]
mod tests;
mod upstreams;

pub use key_fields::is_secret;
pub use observe::report_unopened;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::file::ConfigFile;
use super::lint::{self, CompiledConfig};
use super::source::read_named;
use super::{ConfigSource, Diagnostics};
use crate::clock::Timestamp;
use crate::config::blueprint::{Blueprint, RequestedConnections, SharedStoreBlueprint};
use crate::facts::client_ip::{ClientIpResolver, HeaderKind, IpPrefixes};
use crate::geo::GeoLookup;
use crate::observe::Redactor;
use crate::rules::RuleSet;
use crate::snapshot::{GatewaySettings, PerIp, Snapshot, StartupSettings};
use crate::store::StoreBounds;
use crate::tls::Certificate;
use keys::KeyCompiler;
use rules::RuleCompiler;

/// The context of a compilation, in addition to the file.
struct CompileContext<'a> {
    /// The file's text.
    source: &'a ConfigSource,
    /// The current time, for checking the lifetimes of certificates.
    now: Timestamp,
    /// The snapshot to be replaced. Unchanged data is shared with it.
    previous: Option<&'a Snapshot>,
    /// The development certificate for listeners without certificates. `None` until one is needed.
    development: Option<Certificate>,
    /// The errors and warnings found so far.
    diagnostics: &'a mut Diagnostics,
}

/// Compiles `file`. `None` after errors. `previous` is the snapshot that the blueprint will
/// replace; it is `None` at startup and for `lockgate check`.
pub fn compile(
    file: &ConfigFile,
    source: &ConfigSource,
    now: Timestamp,
    previous: Option<&Snapshot>,
    diagnostics: &mut Diagnostics,
) -> Option<Blueprint> {
    let mut cx = CompileContext {
        source,
        now,
        previous,
        development: previous.and_then(|snapshot| snapshot.settings.development.clone()),
        diagnostics,
    };
    cx.blueprint(file)
}

// === impl CompileContext ===

impl CompileContext<'_> {
    fn blueprint(&mut self, file: &ConfigFile) -> Option<Blueprint> {
        let cx = self;
        let redactor = redactor(file);
        let lists = lists::lists(&file.lists, cx);
        let keys = KeyCompiler::new(&lists, &redactor, file);
        presets::check(&file.protect, &keys, cx);
        let credentials = credentials::credentials(file, &keys, cx);
        let upstreams =
            upstreams::upstreams(&file.upstreams, &file.routes, &keys.without_body(), cx);
        let shared = RuleCompiler::new(file, keys, &upstreams, cx);
        let rules = rules::rules(file, &shared, cx);
        let routes = routes::routes(file, &shared, cx);
        let listeners = listeners::listeners(&file.listeners, cx);
        let geo = geo::geo(&file.geo, cx);
        let admin_token = admin_token(file, cx);
        let startup = restart_only::of(file, startup_settings(file, cx.source), cx);
        let access = observe::access(&file.log, cx);
        let logged = observe::logged(&file.log, &keys, &rules.set, cx);
        let shared_store = store_files(file, cx);
        lint::warn_of_trust(file, cx.source, cx.diagnostics);
        let geo = geo.filter(|_| !cx.diagnostics.has_errors())?;
        cx.lint(file, &rules.set, &geo);
        let settings = GatewaySettings {
            limits: file.limits.connection,
            max_body: Some(file.limits.max_body_bytes).filter(|max| *max > 0),
            errors: routes::shared_pages(shared.responses.error_pages(&file.errors)),
            inspect_body: file.limits.inspect_body,
            drain_timeout: file.server.drain_timeout.value,
            drain_delay: file.server.drain_delay.value,
            max_held: file.server.max_held.value as usize,
            client_ip: client_ip(file),
            per_ip: per_ip(file),
            disabled: rules.disabled,
            logged,
            lists,
            geo,
            admin_token,
            challenge: challenge::challenge(file, &rules.set),
            development: cx.development.take(),
            store_mode: file.store.redis.mode.value,
            startup,
        };
        Some(Blueprint {
            listeners,
            upstreams: upstreams.0,
            routes,
            rules: rules.set,
            rule_resources: rules.resources,
            redactor,
            access,
            access_format: file.log.format.value,
            connections: requested_connections(file, cx.source),
            admin: file.admin.as_ref().map(|admin| admin.address.value),
            shared_store,
            credentials,
            settings,
        })
    }

    /// Adds the warnings and notes of a file without errors.
    fn lint(&mut self, file: &ConfigFile, rules: &RuleSet, geo: &GeoLookup) {
        keys::warn_of_unused_reveals(file, self);
        let compiled = CompiledConfig {
            file,
            source: self.source,
            rules,
            geo,
        };
        lint::warn(&compiled, self.diagnostics);
    }

    /// Resolves `path` relative to the configuration file.
    fn resolve(&self, path: &Path) -> PathBuf {
        resolve(path, &self.source.path)
    }

    /// Reads a file that the configuration names. Reports an error and returns `None` if it is unreadable.
    fn read(&mut self, path: &Path, span: &Range<usize>) -> Option<Vec<u8>> {
        // A path in an included file is relative to that included file.
        let resolved = resolve(path, self.source.part(span.start).path);
        match read_named(&resolved) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                let message = format!("cannot read `{}`: {error}", resolved.display());
                let reported = self.diagnostics.error(span.clone(), message);
                if path.is_relative() && error.kind() == io::ErrorKind::NotFound {
                    reported.help(RELATIVE_PATH);
                }
                None
            }
        }
    }
}

/// The help for a file that does not exist.
const RELATIVE_PATH: &str = "a path is relative to the file that contains it";

/// Resolves `path` relative to the folder of `file`.
fn resolve(path: &Path, file: &str) -> PathBuf {
    let folder = Path::new(file).parent();
    folder.map_or_else(|| path.to_owned(), |folder| folder.join(path))
}

/// Returns a redactor without a secret.
fn redactor(file: &ConfigFile) -> Redactor {
    let names: Vec<&str> = file.log.redact.iter().map(|n| n.value.as_str()).collect();
    Redactor::without_secret(&names)
}

fn requested_connections(file: &ConfigFile, source: &ConfigSource) -> RequestedConnections {
    let max = &file.server.max_connections;
    // The span of a default is that of its section.
    let written = source.slice(max.span.clone());
    RequestedConnections {
        max: max.value as usize,
        is_default: !written.starts_with(|c: char| c.is_ascii_digit() || c == '+'),
    }
}

fn prefixes(file: &ConfigFile) -> IpPrefixes {
    IpPrefixes {
        v4: file.client_ip.ipv4_prefix.value,
        v6: file.client_ip.ipv6_prefix.value,
    }
}

fn client_ip(file: &ConfigFile) -> ClientIpResolver {
    let trusted = file.client_ip.trusted_proxies.iter().map(|net| net.value);
    ClientIpResolver::new(
        trusted,
        HeaderKind::named(file.client_ip.header.value.clone()),
    )
}

fn per_ip(file: &ConfigFile) -> Option<PerIp> {
    let limit = file.limits.max_connections_per_ip as usize;
    let prefixes = prefixes(file);
    (limit > 0).then_some(PerIp { limit, prefixes })
}

/// Checks the file of the counter snapshot, and compiles the shared store.
fn store_files(file: &ConfigFile, cx: &mut CompileContext<'_>) -> Option<SharedStoreBlueprint> {
    saved::check(&file.store.snapshot, cx);
    shared_store::shared_store(file, cx)
}

fn admin_token(file: &ConfigFile, cx: &mut CompileContext<'_>) -> Option<String> {
    let path = file.admin.as_ref()?.token_file.as_ref()?;
    let bytes = cx.read(&path.value, &path.span)?;
    let token = String::from_utf8_lossy(&bytes).trim().to_owned();
    if token.is_empty() {
        let message = format!("`{}` is empty", path.value.display());
        cx.diagnostics.error(path.span.clone(), message);
    }
    Some(token)
}

/// Returns the settings that only a restart can change.
pub fn startup_settings(file: &ConfigFile, source: &ConfigSource) -> StartupSettings {
    let resolved = |path: &Option<PathBuf>| Some(resolve(path.as_ref()?, &source.path));
    StartupSettings {
        workers: file.server.workers.value as usize,
        bounds: StoreBounds {
            max_keys: file.store.max_keys.value as usize,
            max_log_bytes: usize::try_from(file.store.max_log_bytes.value).unwrap_or(usize::MAX),
        },
        snapshot: resolved(&file.store.snapshot.value),
        secret_file: resolved(&file.server.secret_file.value),
        pid_file: resolved(&file.server.pid_file.value),
        shared_store: shared_store::summary(file, source),
    }
}
