//! The access log, and the settings that a reload cannot change.

use std::fs::{self, OpenOptions};
use std::path::Path;

use super::Context;
use crate::config::file::{Access, File, Log, LogFormat};
use crate::observe::{AccessLog, Format, Sink};
use crate::snapshot::Fixed;

/// Opens the access log, or takes over the one that is open. `Some(None)`: it is off.
pub fn access(log: &Log, cx: &mut Context<'_>) -> Option<Option<AccessLog>> {
    let format = match log.format.value {
        LogFormat::Text => Format::Text,
        LogFormat::Json => Format::Json,
    };
    let previous = cx.previous.and_then(|snapshot| snapshot.access.as_ref());
    let opened = match &log.access.value {
        Access::Off => return Some(None),
        Access::File(path) if cx.check_only => {
            must_be_creatable(&cx.resolve(path), log, cx);
            return Some(None);
        }
        Access::Stdout if cx.check_only => return Some(None),
        Access::Stdout => match previous.filter(|log| log.sink().path().is_none()) {
            Some(log) => Ok(log.sink().clone()),
            None => Sink::stdout(Some(cx.lasting.log.clone())),
        },
        Access::File(path) => {
            let path = cx.resolve(path);
            match previous.filter(|log| log.sink().path() == Some(path.as_path())) {
                Some(log) => {
                    log.sink().reopen();
                    Ok(log.sink().clone())
                }
                None => Sink::file(&path, Some(cx.lasting.log.clone())),
            }
        }
    };
    match opened {
        Ok(sink) => Some(Some(AccessLog::new(sink, format))),
        Err(error) => {
            let message = format!("cannot open the access log: {error}");
            cx.diagnostics.error(log.access.span.clone(), message);
            None
        }
    }
}

fn must_be_creatable(path: &Path, log: &Log, cx: &mut Context<'_>) {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let opened = match path.exists() {
        true => OpenOptions::new().append(true).open(path).map(drop),
        false => fs::metadata(folder.unwrap_or(Path::new("."))).map(drop),
    };
    if let Err(error) = opened {
        let message = format!("cannot open the access log: {error}");
        cx.diagnostics.error(log.access.span.clone(), message);
    }
}

/// A reload that changes what only a restart can change is refused whole: half of it would be
/// worse.
pub fn must_not_change(file: &File, now: &Fixed, cx: &mut Context<'_>) {
    let Some(before) = cx.previous.map(|snapshot| snapshot.fixed.clone()) else {
        return;
    };
    let listeners = file.listeners.first().map_or(0..0, |l| l.span.clone());
    let admin = file.admin.as_ref().map_or(0..0, |a| a.address.span.clone());
    let checks = [
        (
            before.workers != now.workers,
            &file.server.workers.span,
            "`workers`",
        ),
        (
            before.max_connections != now.max_connections,
            &file.server.max_connections.span,
            "`max_connections`",
        ),
        (
            before.bounds.max_keys != now.bounds.max_keys,
            &file.store.max_keys.span,
            "`max_keys`",
        ),
        (
            before.bounds.max_log_bytes != now.bounds.max_log_bytes,
            &file.store.max_log_bytes.span,
            "`max_log_bytes`",
        ),
        (
            before.snapshot != now.snapshot,
            &file.store.snapshot.span,
            "`snapshot`",
        ),
        (
            before.secret_file != now.secret_file,
            &file.server.secret_file.span,
            "`secret_file`",
        ),
        (
            before.listeners != now.listeners,
            &listeners,
            "the addresses of `[[listeners]]`",
        ),
        (
            before.admin != now.admin,
            &admin,
            "the address of `[admin]`",
        ),
    ];
    for (changed, span, what) in checks {
        if changed {
            let message = format!("{what} cannot change while the gateway runs");
            cx.diagnostics
                .error(span.clone(), message)
                .help("restart the gateway to apply it");
        }
    }
}
