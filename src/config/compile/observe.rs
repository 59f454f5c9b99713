//! The access log.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs as kernel;

use super::Context;
use crate::config::file::{Access, Log, LogFormat};
use crate::observe::{AccessLog, Format, Sink};

/// Says why the access log could not be opened. Nothing is: no file appears for a configuration
/// that is refused.
pub fn check(log: &Log, cx: &mut Context<'_>) {
    let Some(path) = path(log, cx).filter(|path| open(path, cx).is_none()) else {
        return;
    };
    if let Err(error) = must_be_writable(&path) {
        refuse(&path, &error, log, cx);
    }
}

/// Opens the access log, or takes over the one that is open. `Some(None)`: it is off.
pub fn access(log: &Log, cx: &mut Context<'_>) -> Option<Option<AccessLog>> {
    let format = match log.format.value {
        LogFormat::Text => Format::Text,
        LogFormat::Json => Format::Json,
    };
    if cx.check_only || matches!(log.access.value, Access::Off) {
        return Some(None);
    }
    let opened = match path(log, cx) {
        None => stdout(cx),
        Some(path) => match open(&path, cx) {
            Some(sink) => {
                sink.reopen();
                Ok(sink)
            }
            None => Sink::file(&path, Some(cx.lasting.log.clone())),
        },
    };
    match opened {
        Ok(sink) => Some(Some(AccessLog::new(sink, format))),
        Err(error) => {
            let path = path(log, cx).unwrap_or_default();
            refuse(&path, &error, log, cx);
            None
        }
    }
}

/// The file that it goes to, if it is one.
fn path(log: &Log, cx: &Context<'_>) -> Option<PathBuf> {
    match &log.access.value {
        Access::File(path) => Some(cx.resolve(path)),
        Access::Off | Access::Stdout => None,
    }
}

/// The one that is open already.
fn open(path: &Path, cx: &Context<'_>) -> Option<Sink> {
    let log = cx.previous.and_then(|snapshot| snapshot.access.as_ref())?;
    let same = log.sink().path() == Some(path);
    same.then(|| log.sink().clone())
}

fn stdout(cx: &Context<'_>) -> io::Result<Sink> {
    let previous = cx.previous.and_then(|snapshot| snapshot.access.as_ref());
    match previous.filter(|log| log.sink().path().is_none()) {
        Some(log) => Ok(log.sink().clone()),
        None => Sink::stdout(Some(cx.lasting.log.clone())),
    }
}

fn must_be_writable(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let written = if path.exists() { path } else { folder(path) };
    Ok(kernel::access(written, kernel::Access::WRITE_OK)?)
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn refuse(path: &Path, error: &io::Error, log: &Log, cx: &mut Context<'_>) {
    let span = log.access.span.clone();
    let message = format!("cannot open the access log: {error}");
    let refused = cx.diagnostics.error(span, message);
    if let Some(cure) = cure(path, error) {
        refused.help(cure);
    }
    refused.help("or write `access = \"stdout\"`, or `\"off\"`");
}

fn cure(path: &Path, error: &io::Error) -> Option<String> {
    let (file, folder) = (path.display(), folder(path).display());
    match error.kind() {
        io::ErrorKind::NotFound => Some(format!("make its folder: `mkdir -p {folder}`")),
        io::ErrorKind::IsADirectory => {
            Some(format!("name a file in it, such as `{file}/access.log`"))
        }
        io::ErrorKind::BrokenPipe => Some("start its reader before the gateway".to_owned()),
        io::ErrorKind::PermissionDenied => Some(format!(
            "let the user that the gateway runs as write to `{}`",
            if path.exists() { file } else { folder }
        )),
        _ => None,
    }
}
