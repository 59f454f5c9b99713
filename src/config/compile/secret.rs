//! The gateway's secret, from a file.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::CompileContext;
use crate::config::source::read_named;
use crate::config::{LintCode, Spanned};

/// 32 random bytes.
type Secret = [u8; 32];

/// Reads the secret from the file at `path`. `None` after an error, which [`super::compile()`] reports.
pub fn secret(path: &Path) -> Option<Secret> {
    read(path).ok()
}

/// Reports errors in the file. A reload skips the check, because the process keeps its secret.
pub(super) fn check(file: &Spanned<Option<PathBuf>>, cx: &mut CompileContext<'_>) {
    let (Some(path), None) = (&file.value, cx.previous) else {
        return;
    };
    let path = cx.resolve(path);
    let (shown, span) = (path.display(), file.span.clone());
    if let Err(message) = read(&path) {
        let wrong = cx.diagnostics.error(span, message);
        // The suggested command must not overwrite an existing file that is not a secret.
        let new = if path.exists() {
            "secret"
        } else {
            &*shown.to_string()
        };
        wrong.help(format!("create one: `head -c 32 /dev/urandom > {new}`"));
    } else if is_open(&path) {
        let message = format!("other users can read or write `{shown}`");
        let wrong = cx.diagnostics.warning(LintCode::OpenSecret, span, message);
        wrong.help(format!("restrict access: `chmod 600 {shown}`"));
    }
}

fn read(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    let bytes = read_named(path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    parse(&bytes).ok_or_else(|| {
        let length = bytes.len();
        format!(
            "`{shown}` is not a secret: expected 32 bytes or 64 hexadecimal digits, found \
             {length} bytes"
        )
    })
}

fn is_open(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

fn parse(bytes: &[u8]) -> Option<Secret> {
    if let Ok(raw) = bytes.try_into() {
        return Some(raw);
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (pairs, []) = line.as_chunks::<2>() else {
        return None;
    };
    let bytes: Option<Vec<u8>> = pairs.iter().map(|pair| byte(*pair)).collect();
    bytes?.try_into().ok()
}

fn byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_raw_or_hexadecimal() {
        let raw: Secret = std::array::from_fn(|n| n as u8 * 7);
        let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(parse(&raw), Some(raw));
        for end in ["", "\n", "\r\n"] {
            assert_eq!(parse(format!("{hex}{end}").as_bytes()), Some(raw));
        }
        assert_eq!(parse(hex.to_uppercase().as_bytes()), Some(raw));
    }

    #[test]
    fn anything_else_is_none() {
        for wrong in [
            &b""[..],
            b"secret",
            &[0; 31],
            &[0; 33],
            &[b'g'; 64],
            &[b'0'; 63],
            &[b'0'; 66],
            b"00000000000000000000000000000000 00000000000000000000000000000000",
            &[b'\n'; 65],
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
