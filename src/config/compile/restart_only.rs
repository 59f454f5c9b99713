//! The settings that a reload cannot change: the process is built on them.

use std::ops::Range;

use super::Context;
use crate::config::LintCode;
use crate::config::file::File;
use crate::snapshot::StartupSettings;

/// What holds while the process lives. A reload that asks for something else is carried out but
/// for that, and told so: to refuse all of it would keep a rule from stopping an attack because
/// of a number of threads.
pub(super) fn of(file: &File, asked: StartupSettings, cx: &mut Context<'_>) -> StartupSettings {
    let Some(before) = cx.previous.map(|snapshot| snapshot.startup.clone()) else {
        return asked;
    };
    for (changed, span, what) in changes(file, &before, &asked) {
        if changed {
            let message = format!("`{what}` stays as it was until a restart or SIGUSR2");
            cx.diagnostics
                .warning(LintCode::RestartNeeded, span, message);
        }
    }
    before
}

fn changes(
    file: &File,
    before: &StartupSettings,
    asked: &StartupSettings,
) -> [(bool, Range<usize>, &'static str); 5] {
    let (server, store) = (&file.server, &file.store);
    let (old, new) = (&before.bounds, &asked.bounds);
    [
        (
            before.workers != asked.workers,
            server.workers.span.clone(),
            "workers",
        ),
        (
            before.secret_file != asked.secret_file,
            server.secret_file.span.clone(),
            "secret_file",
        ),
        (
            old.max_keys != new.max_keys,
            store.max_keys.span.clone(),
            "max_keys",
        ),
        (
            old.max_log_bytes != new.max_log_bytes,
            store.max_log_bytes.span.clone(),
            "max_log_bytes",
        ),
        (
            before.snapshot != asked.snapshot,
            store.snapshot.span.clone(),
            "snapshot",
        ),
    ]
}
