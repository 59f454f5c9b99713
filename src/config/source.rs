//! The text of a configuration file, and where in it a byte is.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use super::Diagnostics;

/// A configuration file as it was read.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The path as the user named it.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// Where each line but the first begins.
    lines: Vec<usize>,
}

/// A place in a text, as editors count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

// === impl Source ===

impl Source {
    /// A source from text that is already there.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let lines = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        Self {
            path: path.into(),
            text,
            lines,
        }
    }

    /// Reads a file. What could not be read is reported, and comes back as far as it was read.
    pub fn load(path: &Path, diagnostics: &mut Diagnostics) -> Result<Self, Self> {
        let name = path.display().to_string();
        let bytes = match read_whole(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                diagnostics.error(0..0, format!("cannot read: {error}"));
                return Err(Self::new(name, ""));
            }
        };
        String::from_utf8(bytes)
            .map(|text| Self::new(name.clone(), text))
            .map_err(|error| Self::broken(name, &error, diagnostics))
    }

    /// Where the byte at `offset` is. An offset past the end is the end.
    pub fn position(&self, offset: usize) -> Position {
        let end = self.clamp(offset..offset).start;
        let breaks = self.lines.partition_point(|start| *start <= end);
        let start = breaks.checked_sub(1).and_then(|at| self.lines.get(at));
        let line = self.text.get(start.copied().unwrap_or(0)..end);
        let line = line.unwrap_or_default();
        Position {
            line: breaks + 1,
            column: line.trim_start_matches(BYTE_ORDER_MARK).chars().count() + 1,
        }
    }

    /// The nearest range that lies within the text and cuts no character.
    pub fn clamp(&self, span: Range<usize>) -> Range<usize> {
        let len = self.text.len();
        let whole = |at: &usize| self.text.is_char_boundary(*at);
        let start = (0..=span.start.min(len)).rev().find(whole).unwrap_or(0);
        let end = (span.end.min(len)..=len).find(whole).unwrap_or(len);
        start..end.max(start)
    }

    /// The text at `span`.
    pub fn slice(&self, span: Range<usize>) -> &str {
        self.text.get(self.clamp(span)).unwrap_or_default()
    }

    fn broken(
        name: String,
        error: &std::string::FromUtf8Error,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let at = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        diagnostics
            .error(at..at + '\u{fffd}'.len_utf8(), "cannot read: not UTF-8")
            .help("save the file as UTF-8");
        Self::new(name, text)
    }
}

/// The largest file that is read: `/dev/zero` has no end.
const LARGEST: u64 = 256 << 20;

/// Reads a whole file.
fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(LARGEST + 1);
    match file.read_to_end(&mut bytes)? as u64 > LARGEST {
        true => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            "it is larger than 256 MiB",
        )),
        false => Ok(bytes),
    }
}

/// Reads a whole file that the configuration names. A pipe is none: nobody may ever write to it.
pub(super) fn read_named(path: &Path) -> io::Result<Vec<u8>> {
    match std::fs::metadata(path)?.file_type().is_fifo() {
        true => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is a pipe, not a file",
        )),
        false => read_whole(path),
    }
}

/// Some editors begin a file with it; no editor counts it as a column.
const BYTE_ORDER_MARK: char = '\u{feff}';

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;

    use super::read_whole;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = read_whole(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_whole(Path::new("/dev/null")).unwrap(), b"");
    }
}
