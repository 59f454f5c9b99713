//! The gateway's secrets, from a file.

use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::CompileContext;
use crate::config::source::read_named;
use crate::config::{LintCode, Spanned};
use crate::credential::SecretRing;

/// Reads the secrets and reports errors in the file. `None` without a file. A reload reads the file only for the
/// cookies of clients, because the process keeps the secret of its hashes.
pub(super) fn secrets(
    file: &Spanned<Option<PathBuf>>,
    has_cookies: bool,
    cx: &mut CompileContext<'_>,
) -> Option<SecretRing> {
    let path = file.value.as_ref()?;
    if cx.previous.is_some() && !has_cookies {
        return None;
    }
    let path = cx.resolve(path);
    let (shown, span) = (path.display(), file.span.clone());
    let ring = read(&path);
    if let Err(message) = &ring {
        let wrong = cx.diagnostics.error(span.clone(), message);
        // The suggested command must not overwrite an existing file that is not a secret.
        let new = if path.exists() {
            "secret"
        } else {
            &*shown.to_string()
        };
        wrong.help(format!(
            "create one: `(umask 077; head -c 32 /dev/urandom > {new})`"
        ));
    } else {
        warn_of_open(&path, &span, cx);
    }
    ring.ok()
}

/// Warns of a file with a secret that other users can read or write.
pub(super) fn warn_of_open(path: &Path, span: &Range<usize>, cx: &mut CompileContext<'_>) {
    if is_open(path) {
        let shown = path.display();
        let message = format!("other users can read or write `{shown}`");
        cx.diagnostics
            .warning(LintCode::OpenSecret, span.clone(), message)
            .help(format!("restrict access: `chmod 600 {shown}`"));
    }
}

fn read(path: &Path) -> Result<SecretRing, String> {
    let shown = path.display();
    let bytes = read_named(path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    SecretRing::parse(&bytes).map_err(|wrong| format!("`{shown}` is not a secret: {wrong}"))
}

fn is_open(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}
