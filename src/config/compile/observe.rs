//! The access log.

use std::io;
use std::path::Path;

use rustix::fs as kernel;

use super::keys::KeyCompiler;
use super::{CompileContext, key_fields};
use crate::config::Diagnostics;
use crate::config::file::{AccessLogSettings, LogSettings};
use crate::rules::RuleSet;
use crate::snapshot::LoggedValues;

/// Returns the destination of the access log and reports a file that cannot be opened. Does not
/// open it, so that a refused configuration creates no file.
pub fn access(log: &LogSettings, cx: &mut CompileContext<'_>) -> AccessLogSettings {
    let target = match &log.access.value {
        AccessLogSettings::File(path) => AccessLogSettings::File(cx.resolve(path)),
        other => other.clone(),
    };
    if let AccessLogSettings::File(path) = &target
        && !is_open(path, cx)
        && let Err(error) = must_be_writable(path)
    {
        report_unopened(&target, &error, log, cx.diagnostics);
    }
    target
}

/// Returns what the access log and the responses show of each request in addition to its own data.
pub fn logged(
    log: &LogSettings,
    keys: &KeyCompiler<'_>,
    rules: &RuleSet,
    cx: &mut CompileContext<'_>,
) -> LoggedValues {
    LoggedValues {
        key_fields: key_fields::of(rules, keys.redactor),
        fields: keys.without_body().log_fields(&log.fields, cx),
        request_id_header: log.request_id_header.value.clone(),
    }
}

/// Returns whether the previous configuration has the file open.
fn is_open(path: &Path, cx: &CompileContext<'_>) -> bool {
    let log = cx.previous.and_then(|snapshot| snapshot.access.as_ref());
    log.is_some_and(|log| log.sink().path() == Some(path))
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

/// Reports that the access log cannot be opened.
pub fn report_unopened(
    target: &AccessLogSettings,
    error: &io::Error,
    log: &LogSettings,
    diagnostics: &mut Diagnostics,
) {
    let span = log.access.span.clone();
    let message = format!("cannot open the access log: {error}");
    let reported = diagnostics.error(span, message);
    if let AccessLogSettings::File(path) = target
        && let Some(cure) = cure(path, error)
    {
        reported.help(cure);
    }
    reported.help("or write `access = \"stdout\"`, or `\"off\"`");
}

fn cure(path: &Path, error: &io::Error) -> Option<String> {
    let (file, folder) = (path.display(), folder(path).display());
    match error.kind() {
        io::ErrorKind::NotFound => Some(format!("create the folder: `mkdir -p {folder}`")),
        io::ErrorKind::IsADirectory => Some(format!(
            "write the path of a file in it, such as `{file}/access.log`"
        )),
        io::ErrorKind::BrokenPipe => {
            Some("start the reader of the pipe before the gateway".to_owned())
        }
        io::ErrorKind::PermissionDenied => Some(format!(
            "give the gateway's user write access to `{}`",
            if path.exists() { file } else { folder }
        )),
        _ => None,
    }
}
