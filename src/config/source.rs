//! The text of a configuration file and its included files, and the positions of bytes in them.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use super::Diagnostics;

/// A configuration file as it was read, with its included files.
#[derive(Clone, Debug, Default)]
pub struct ConfigSource {
    /// The path as the user wrote it.
    pub path: String,
    /// The text of all files. Each included file follows after a line break, so that an offset
    /// identifies one file and a position in it.
    pub text: String,
    /// The offsets of all lines except the first.
    lines: Vec<usize>,
    /// The included files: the path and the offset of each.
    included: Vec<(String, usize)>,
}

/// One file of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceFile<'a> {
    /// Its path.
    pub path: &'a str,
    /// The offset of its text in the source.
    pub start: usize,
    /// Its text.
    pub text: &'a str,
}

/// A position in a text, as editors count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// The line, starting at 1.
    pub line: usize,
    /// The column in characters, starting at 1.
    pub column: usize,
}

// === impl ConfigSource ===

impl ConfigSource {
    /// Creates a source from text.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let lines = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        Self {
            path: path.into(),
            text,
            lines,
            included: Vec::new(),
        }
    }

    /// Appends an included file.
    pub fn include(&mut self, path: impl Into<String>, text: &str) {
        self.text.push('\n');
        let start = self.text.len();
        self.text.push_str(text);
        self.lines.push(start);
        let lines = text.match_indices('\n').map(|(at, _)| start + at + 1);
        self.lines.extend(lines);
        self.included.push((path.into(), start));
    }

    /// Returns the files in order, the configuration file first.
    pub fn parts(&self) -> impl Iterator<Item = SourceFile<'_>> {
        let starts = self.included.iter().map(|(_, start)| *start);
        [0].into_iter().chain(starts).map(|start| self.part(start))
    }

    /// Returns the file that contains the byte at `offset`.
    pub fn part(&self, offset: usize) -> SourceFile<'_> {
        let before = self.included.partition_point(|(_, start)| *start <= offset);
        let own = before.checked_sub(1).and_then(|at| self.included.get(at));
        let (path, start) = own.map_or((&self.path, 0), |(path, start)| (path, *start));
        let next = self.included.get(before);
        let end = next.map_or(self.text.len(), |(_, next)| next.saturating_sub(1));
        SourceFile {
            path,
            start,
            text: self.text.get(start..end).unwrap_or_default(),
        }
    }

    /// Reads a file. Reports an error and returns the readable part as `Err`.
    pub fn load(path: &Path, diagnostics: &mut Diagnostics) -> Result<Self, Self> {
        let name = path.display().to_string();
        let bytes = match read_whole(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let wrong = diagnostics.error(0..0, format!("cannot read: {error}"));
                if error.kind() == ErrorKind::NotFound {
                    wrong.help(NO_FILE);
                }
                return Err(Self::new(name, ""));
            }
        };
        String::from_utf8(bytes)
            .map(|text| Self::new(name.clone(), text))
            .map_err(|error| Self::broken(name, &error, diagnostics))
    }

    /// Returns the position of the byte at `offset` in its file. An offset after the end means the end.
    pub fn position(&self, offset: usize) -> TextPosition {
        let end = self.clamp(offset..offset).start;
        let file = self.part(end).start;
        let earlier = self.lines.partition_point(|start| *start <= file);
        let breaks = self.lines.partition_point(|start| *start <= end);
        let start = breaks.checked_sub(1).and_then(|at| self.lines.get(at));
        let line = self.text.get(start.copied().unwrap_or(0)..end);
        let line = line.unwrap_or_default();
        TextPosition {
            line: breaks - earlier + 1,
            column: line.trim_start_matches(BYTE_ORDER_MARK).chars().count() + 1,
        }
    }

    /// Returns the nearest range that is within the text and splits no character.
    pub fn clamp(&self, span: Range<usize>) -> Range<usize> {
        let len = self.text.len();
        let whole = |at: &usize| self.text.is_char_boundary(*at);
        let start = (0..=span.start.min(len)).rev().find(whole).unwrap_or(0);
        let end = (span.end.min(len)..=len).find(whole).unwrap_or(len);
        start..end.max(start)
    }

    /// Returns the text at `span`.
    pub fn slice(&self, span: Range<usize>) -> &str {
        self.text.get(self.clamp(span)).unwrap_or_default()
    }

    fn broken(
        name: String,
        error: &std::string::FromUtf8Error,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let utf16 = [&[0xff, 0xfe][..], &[0xfe, 0xff]];
        let utf16 = utf16.iter().any(|mark| error.as_bytes().starts_with(mark));
        if error.as_bytes().contains(&0) && !utf16 {
            diagnostics
                .error(0..0, "cannot read: this is not a text file")
                .help("a configuration file is TOML, for example gateway.toml");
            return Self::new(name, "");
        }
        let at = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        diagnostics
            .error(at..at + '\u{fffd}'.len_utf8(), "cannot read: not UTF-8")
            .help("save the file as UTF-8");
        Self::new(name, text)
    }
}

/// The help for a configuration file that does not exist.
const NO_FILE: &str = "`lockgate init` writes a file to start from; `--config FILE` or the environment variable \
                       LOCKGATE_CONFIG names another one";

/// The maximum file size in bytes, because `/dev/zero` is endless.
pub(super) const LARGEST: u64 = 256 << 20;

/// Reads a whole file.
fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(LARGEST + 1);
    if file.read_to_end(&mut bytes)? as u64 > LARGEST {
        Err(io::Error::new(
            ErrorKind::FileTooLarge,
            "it is larger than 256 MiB",
        ))
    } else {
        Ok(bytes)
    }
}

/// Reads a whole file that the configuration names. Refuses a pipe, because reading it could block forever.
pub(super) fn read_named(path: &Path) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.file_type().is_fifo() {
        Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is a pipe, not a file",
        ))
    } else {
        read_whole(path)
    }
}

/// Some editors write it at the start of a file, and no editor counts it as a column.
const BYTE_ORDER_MARK: char = '\u{feff}';

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;

    use super::{ConfigSource, read_whole};

    #[test]
    fn an_endless_file_is_refused() {
        let error = read_whole(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_whole(Path::new("/dev/null")).unwrap(), b"");
    }

    #[test]
    fn a_byte_is_in_one_file() {
        let mut source = ConfigSource::new("a", "x\ny");
        source.include("b", "");
        source.include("c", "ä\nz\n");
        let parts: Vec<_> = source.parts().map(|part| (part.path, part.text)).collect();
        assert_eq!(parts, [("a", "x\ny"), ("b", ""), ("c", "ä\nz\n")]);
        let position = |offset| {
            let at = source.position(offset);
            (source.part(offset).path, at.line, at.column)
        };
        assert_eq!(position(0), ("a", 1, 1));
        // The end of a file belongs to that file.
        assert_eq!(position(3), ("a", 2, 2));
        assert_eq!(position(4), ("b", 1, 1));
        assert_eq!(position(5), ("c", 1, 1));
        assert_eq!(position(8), ("c", 2, 1));
        assert_eq!(position(99), ("c", 3, 1));
    }
}
