//! `include`: reads the included files into the source, without parsing their settings.
//!
//! A pattern is a path with `*` and `?` allowed in its last component. It is relative to the
//! configuration file. Files are sorted by name and included once.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::source::{LARGEST, read_named};
use super::{ConfigSource, Diagnostics, LintCode, Text, environment};

/// The maximum number of included files.
const MOST_FILES: usize = 1000;

/// Adds the included files to the source. Reports files that cannot be read.
pub(super) fn include(source: &mut ConfigSource, diagnostics: &mut Diagnostics) {
    let mut files = Files {
        seen: vec![identity(Path::new(&source.path))],
        source,
        diagnostics,
    };
    for pattern in patterns(&files.source.text) {
        files.add_all(&pattern);
    }
}

/// The files included so far.
struct Files<'a> {
    seen: Vec<PathBuf>,
    source: &'a mut ConfigSource,
    diagnostics: &'a mut Diagnostics,
}

// === impl Files ===

impl Files<'_> {
    fn add_all(&mut self, pattern: &Text) {
        let folder = Path::new(&self.source.path).parent();
        let path = folder.unwrap_or(Path::new("")).join(&pattern.value);
        let found = match expand(&path) {
            Ok(found) => found,
            Err(message) => {
                self.diagnostics.error(pattern.span.clone(), message);
                return;
            }
        };
        if found.is_empty() {
            let message = format!("no file matches `{}`", path.display());
            self.diagnostics
                .warning(LintCode::EmptyInclude, pattern.span.clone(), message)
                .help("create a matching file, or remove the pattern");
        }
        let plain = found.as_slice() == [path.clone()];
        for file in found {
            let identity = identity(&file);
            if plain && self.seen.first() == Some(&identity) {
                self.diagnostics
                    .error(pattern.span.clone(), "a file cannot include itself")
                    .help("remove it");
            }
            if !self.seen.contains(&identity) {
                self.seen.push(identity);
                self.add(&file, &pattern.span);
            }
        }
    }

    fn add(&mut self, file: &Path, span: &Range<usize>) {
        let name = file.display().to_string();
        let read = if self.seen.len() > MOST_FILES + 1 {
            Err(io::Error::other("there are more than 1000 included files"))
        } else {
            self.read(file)
        };
        match read {
            Ok(text) => self.source.include(name, &text),
            Err(error) => {
                let message = format!("cannot read `{name}`: {error}");
                self.diagnostics.error(span.clone(), message);
                self.diagnostics.hide_names();
            }
        }
    }

    fn read(&self, file: &Path) -> io::Result<String> {
        let bytes = read_named(file)?;
        let all = self.source.text.len() + bytes.len();
        if all as u64 > LARGEST {
            return Err(io::Error::new(
                ErrorKind::FileTooLarge,
                "all files together are larger than 256 MiB",
            ));
        }
        String::from_utf8(bytes).map_err(|error| {
            let good = error.as_bytes().get(..error.utf8_error().valid_up_to());
            let lines = good.unwrap_or_default().iter().filter(|b| **b == b'\n');
            let line = lines.count() + 1;
            io::Error::new(ErrorKind::InvalidData, format!("line {line} is not UTF-8"))
        })
    }
}

/// Returns one canonical path for each file, however it is written.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the patterns in a text. Their errors are reported by the reader.
fn patterns(text: &str) -> Vec<Text> {
    let (root, _) = DeTable::parse_recoverable(text);
    let include = root.get_ref().get("include");
    let array = include.and_then(|raw| raw.get_ref().as_array());
    let items = array.into_iter().flat_map(|array| array.iter());
    items
        .filter_map(|raw| {
            let pattern = raw.get_ref().as_str().filter(|text| !text.is_empty())?;
            Some(Text::new(environment::filled(pattern), raw.span()))
        })
        .collect()
}

/// Returns the files that match a pattern, sorted by name. The error is a message. A path without
/// `*` and `?` is returned even if the file does not exist.
fn expand(path: &Path) -> Result<Vec<PathBuf>, String> {
    let wild = |part: &Path| part.to_string_lossy().contains(['*', '?']);
    let folder = path.parent().unwrap_or(Path::new(""));
    if wild(folder) {
        return Err("`*` and `?` are allowed only in the last part of a path".to_owned());
    }
    let Some(name) = path.file_name().filter(|name| wild(Path::new(name))) else {
        return Ok(vec![path.to_owned()]);
    };
    let pattern: Vec<char> = name.to_string_lossy().chars().collect();
    let mut names = list(folder).map_err(|error| {
        let folder = folder.display();
        format!("cannot read the folder `{folder}`: {error}")
    })?;
    names.retain(|name| fits(&pattern, &name.to_string_lossy()));
    names.sort();
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// Returns the file names in a folder. Empty if the folder does not exist.
fn list(folder: &Path) -> io::Result<Vec<OsString>> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect(),
    }
}

/// Returns whether a name matches. As in a shell, `*` and `?` do not match a leading dot.
fn fits(pattern: &[char], name: &str) -> bool {
    let hidden = name.starts_with('.') && pattern.first() != Some(&'.');
    let name: Vec<char> = name.chars().collect();
    !hidden && fits_all(pattern, &name)
}

/// Runs in time proportional to the product of both lengths: it backtracks only to the last `*`.
fn fits_all(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while let Some(c) = name.get(n) {
        match (pattern.get(p), again) {
            (Some('*'), _) => {
                again = Some((p + 1, n));
                p += 1;
            }
            (Some(wanted), _) if wanted == c || *wanted == '?' => {
                p += 1;
                n += 1;
            }
            (_, Some((after, from))) => {
                again = Some((after, from + 1));
                p = after;
                n = from + 1;
            }
            (_, None) => return false,
        }
    }
    pattern
        .get(p..)
        .is_some_and(|rest| rest.iter().all(|c| *c == '*'))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn names_of_a_form() {
        let is = |pattern: &str, name: &str| {
            let pattern: Vec<char> = pattern.chars().collect();
            fits(&pattern, name)
        };
        for (pattern, name) in [
            ("*.toml", "a.toml"),
            ("*.toml", "a.toml.toml"),
            ("*", "a"),
            ("?0-*.toml", "10-login.toml"),
            ("a*b*c", "a-b-b-c"),
            ("ä?", "äö"),
            ("**", "x"),
            (".*", ".hidden"),
            ("a.toml", "a.toml"),
        ] {
            assert!(is(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.toml", "a.toml~"),
            ("*.toml", ".a.toml"),
            ("*.toml", "toml"),
            ("?", ""),
            ("?", "."),
            ("a?c", "ac"),
            ("a*b", "acd"),
        ] {
            assert!(!is(pattern, name), "{pattern} {name}");
        }
        let long = "a*".repeat(40);
        assert!(!is(
            &long,
            &"a".repeat(4000).replace("aaaa", "aaab").replace('a', "c")
        ));
    }
}
