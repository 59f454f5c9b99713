//! As written → as meant: a [`Snapshot`] from a [`File`], every mistake found at once.
//!
//! This is where other files are opened: certificates, lists, databases. A relative path is
//! relative to the configuration file.

mod authority;
mod geo;
mod identity;
mod kept;
mod key_fields;
mod keys;
mod listeners;
mod lists;
mod observe;
mod origins;
mod responses;
mod routes;
mod rules;
mod saved;
mod secret;
#[cfg(test)]
mod tests;
mod upstreams;

pub use key_fields::is_secret;
pub use secret::secret;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::File;
use super::source::read_named;
use super::suspect::{self, Compiled};
use super::{Diagnostics, Source};
use crate::action::QuotaNames;
use crate::facts::client_ip::{ClientIp, HeaderKind, Prefixes};
use crate::listen::Limits;
use crate::observe::Redactor;
use crate::snapshot::{Fixed, Imitating, Lasting, PerIp, Snapshot};
use crate::store::Bounds;
use keys::Keys;
use responses::Responses;
use rules::Shared;

/// What `limits.min_rate` is averaged over.
const RATE_WINDOW: Duration = Duration::from_secs(30);

/// What compiling needs beside the file.
pub struct Context<'a> {
    /// The file's text.
    pub source: &'a Source,
    /// What outlives the snapshot.
    pub lasting: &'a Lasting,
    /// Nothing is to be opened for writing: the file is only checked.
    pub check_only: bool,
    /// The snapshot that is to be replaced.
    pub previous: Option<&'a Snapshot>,
    /// What was found wrong.
    pub diagnostics: &'a mut Diagnostics,
}

/// Builds a snapshot; `None` after errors.
pub fn compile(file: &File, cx: &mut Context<'_>) -> Option<Snapshot> {
    let lists = lists::lists(&file.lists, cx);
    let redactor = redactor(file, cx);
    let keys = Keys::new(&lists, &redactor, prefixes(file));
    let upstreams = upstreams::upstreams(&file.upstreams, &keys, cx);
    let shared = Shared {
        keys,
        responses: Responses::new(file, cx),
        upstreams: &upstreams,
    };
    let rules = rules::rules(file, &shared, cx);
    let routes = routes::routes(&file.routes, &upstreams, cx);
    let listeners = listeners::listeners(&file.listeners, cx);
    let geo = geo::geo(&file.geo, cx);
    let admin_token = admin_token(file, cx);
    let fixed = kept::of(file, fixed(file, cx.source), cx);
    look_around(file, cx);
    if cx.diagnostics.has_errors() {
        return None;
    }
    let geo = geo?;
    let compiled = Compiled {
        file,
        source: cx.source,
        rules: &rules.set,
        geo: &geo,
    };
    suspect::warn(&compiled, cx.diagnostics);
    // Last, because it may create the log file.
    let access = observe::access(&file.log, cx)?;
    let key_fields = key_fields::of(&rules.set, &redactor);
    Some(Snapshot {
        listeners,
        max_connections: file.server.max_connections.value as usize,
        limits: limits(file),
        max_body: Some(file.limits.max_body_bytes.value).filter(|max| *max > 0),
        drain_timeout: file.server.drain_timeout.value,
        max_held: file.server.max_held.value as usize,
        client_ip: client_ip(file),
        per_ip: per_ip(file),
        routes,
        imitating: Imitating::among(&rules.set, &rules.kits),
        quota_names: QuotaNames::of(&rules.set),
        rules: rules.set,
        rule_kits: rules.kits,
        disabled: rules.disabled,
        lists,
        geo,
        key_fields,
        access,
        redactor,
        admin: file.admin.as_ref().map(|admin| admin.address.value),
        admin_token,
        upstreams: upstreams.into_all(),
        fixed,
    })
}

/// What is not part of the snapshot, but wrong all the same.
fn look_around(file: &File, cx: &mut Context<'_>) {
    secret::check(&file.server.secret_file, cx);
    saved::check(&file.store.snapshot, cx);
    observe::check(&file.log, cx);
    suspect::warn_of_trust(file, cx.source, cx.diagnostics);
}

// === impl Context ===

impl Context<'_> {
    /// `path` as the configuration file means it.
    fn resolve(&self, path: &Path) -> PathBuf {
        resolve(path, &self.source.path)
    }

    /// The bytes of a file that the configuration names.
    fn read(&mut self, path: &Path, span: &Range<usize>) -> Option<Vec<u8>> {
        // An included file means what is beside itself.
        let resolved = resolve(path, self.source.part(span.start).path);
        match read_named(&resolved) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                let message = format!("cannot read `{}`: {error}", resolved.display());
                let reported = self.diagnostics.error(span.clone(), message);
                if path.is_relative() && error.kind() == io::ErrorKind::NotFound {
                    reported.help("a path is relative to the file that it is written in");
                }
                None
            }
        }
    }
}

/// `path` as `file` means it.
fn resolve(path: &Path, file: &str) -> PathBuf {
    let folder = Path::new(file).parent();
    folder.map_or_else(|| path.to_owned(), |folder| folder.join(path))
}

fn redactor(file: &File, cx: &Context<'_>) -> Redactor {
    let names: Vec<&str> = file.log.redact.iter().map(|n| n.value.as_str()).collect();
    Redactor::new(&cx.lasting.secret, &names)
}

fn prefixes(file: &File) -> Prefixes {
    Prefixes {
        v4: file.client_ip.ipv4_prefix.value,
        v6: file.client_ip.ipv6_prefix.value,
    }
}

fn client_ip(file: &File) -> ClientIp {
    let trusted = file.client_ip.trusted_proxies.iter().map(|net| net.value);
    ClientIp::new(
        trusted,
        HeaderKind::named(file.client_ip.header.value.clone()),
    )
}

fn per_ip(file: &File) -> Option<PerIp> {
    let limit = file.limits.max_connections_per_ip.value as usize;
    let prefixes = prefixes(file);
    (limit > 0).then_some(PerIp { limit, prefixes })
}

fn limits(file: &File) -> Limits {
    let limits = &file.limits;
    Limits {
        header_timeout: limits.header_timeout.value,
        idle_timeout: limits.idle_timeout.value,
        request_body_timeout: limits.request_body_timeout.value,
        response_write_timeout: limits.response_write_timeout.value,
        min_rate: limits.min_rate.value,
        rate_window: RATE_WINDOW,
        max_header_bytes: usize::try_from(limits.max_header_bytes.value).unwrap_or(usize::MAX),
        max_headers: limits.max_headers.value as usize,
        h2_max_concurrent_streams: limits.h2_max_concurrent_streams.value,
        h2_max_resets: limits.h2_max_resets.value,
    }
}

fn admin_token(file: &File, cx: &mut Context<'_>) -> Option<String> {
    let path = file.admin.as_ref()?.token_file.as_ref()?;
    let bytes = cx.read(&path.value, &path.span)?;
    let token = String::from_utf8_lossy(&bytes).trim().to_owned();
    if token.is_empty() {
        let message = format!("`{}` is empty", path.value.display());
        cx.diagnostics.error(path.span.clone(), message);
    }
    Some(token)
}

/// What only a restart can change.
pub fn fixed(file: &File, source: &Source) -> Fixed {
    let resolved = |path: &Option<PathBuf>| Some(resolve(path.as_ref()?, &source.path));
    Fixed {
        workers: file.server.workers.value as usize,
        bounds: Bounds {
            max_keys: file.store.max_keys.value as usize,
            max_log_bytes: usize::try_from(file.store.max_log_bytes.value).unwrap_or(usize::MAX),
        },
        snapshot: resolved(&file.store.snapshot.value),
        secret_file: resolved(&file.server.secret_file.value),
    }
}
