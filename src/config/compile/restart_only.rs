//! The settings that a reload cannot change.

use std::ops::Range;

use super::{CompileContext, shared_store};
use crate::config::LintCode;
use crate::config::file::ConfigFile;
use crate::process::PidFile;
use crate::snapshot::StartupSettings;

/// Returns the settings that stay fixed while the process runs. A reload that changes one applies
/// all other settings and warns: a refusal would block a rule against an attack because of a
/// changed thread count.
pub(super) fn of(
    file: &ConfigFile,
    requested: StartupSettings,
    cx: &mut CompileContext<'_>,
) -> StartupSettings {
    let Some(before) = cx
        .previous
        .map(|snapshot| snapshot.settings.startup.clone())
    else {
        must_have_pid_file(file, &requested, cx);
        return requested;
    };
    let (server, store) = (&file.server, &file.store);
    let (old, new) = (&before.bounds, &requested.bounds);
    let fixed = shared_store::fixed(file, cx.source);
    let mut warn = |changed: bool, span: &Range<usize>, what: &str| {
        if changed {
            let message = match what {
                // A reload reads the file again for cookies.
                "secret_file" if file.known_clients.is_some() => format!(
                    "the new `{what}` applies to cookies now, and to hashes after a restart or SIGUSR2"
                ),
                _ => format!("the new `{what}` takes effect after a restart or SIGUSR2"),
            };
            cx.diagnostics
                .warning(LintCode::RestartNeeded, span.clone(), message);
        }
    };
    let workers = before.workers != requested.workers;
    warn(workers, &server.workers.span, "workers");
    let secret_file = before.secret_file != requested.secret_file;
    warn(secret_file, &server.secret_file.span, "secret_file");
    let pid_file = before.pid_file != requested.pid_file;
    warn(pid_file, &server.pid_file.span, "pid_file");
    let max_keys = old.max_keys != new.max_keys;
    warn(max_keys, &store.max_keys.span, "max_keys");
    let max_log_bytes = old.max_log_bytes != new.max_log_bytes;
    warn(max_log_bytes, &store.max_log_bytes.span, "max_log_bytes");
    let snapshot = before.snapshot != requested.snapshot;
    warn(snapshot, &store.snapshot.span, "snapshot");
    let (old, new) = (&before.shared_store, &requested.shared_store);
    warn(
        old.is_some() != new.is_some(),
        &store.kind.span,
        "store.kind",
    );
    if let (Some(old), Some(_)) = (old, new) {
        for (old, new) in old.iter().zip(fixed) {
            let name = format!("store.redis.{}", new.name);
            warn(*old != new.value, &new.span, &name);
        }
    }
    before
}

/// Reports a PID file that a start cannot use.
fn must_have_pid_file(file: &ConfigFile, requested: &StartupSettings, cx: &mut CompileContext<'_>) {
    let checked = requested.pid_file.as_deref().map(PidFile::check);
    if let Some(Err(error)) = checked {
        let span = file.server.pid_file.span.clone();
        cx.diagnostics
            .error(span, error.to_string())
            .help(error.cure());
    }
}
