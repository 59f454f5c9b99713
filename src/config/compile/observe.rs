//! The access log.

use std::fs::{self, OpenOptions};
use std::path::Path;

use super::Context;
use crate::config::file::{Access, Log, LogFormat};
use crate::observe::{AccessLog, Format, Sink};

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
