//! Headers of sections, as they stand in the text.

use std::ops::Range;

use crate::config::source::Part;

/// The header of a section: `[name]`, or `[[name]]` for one of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header<'t> {
    pub(super) name: &'t str,
    pub(super) several: bool,
    /// Where in the source it is.
    pub(super) span: Range<usize>,
}

// === impl Header ===

impl<'t> Header<'t> {
    /// Whether a line looks like one, complete or not. An element of an array does not: it is a
    /// value.
    pub(super) fn is_one(line: &str) -> bool {
        let name = line.trim_start().strip_prefix('[');
        let name = name.map(|name| name.strip_prefix('[').unwrap_or(name).trim_start());
        name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
    }

    /// The header on a line that begins at `start`.
    fn of(line: &'t str, start: usize) -> Option<Self> {
        let text = line.trim_start();
        let at = start + line.len() - text.len();
        let open = text.len() - text.trim_start_matches('[').len();
        let several = match open {
            1 => false,
            2 => true,
            _ => return None,
        };
        let (name, rest) = text.get(open..)?.split_once(']')?;
        let close = if several {
            rest.strip_prefix(']')?;
            2
        } else {
            1
        };
        Some(Self {
            name: name.trim(),
            several,
            span: at..at + open + name.len() + close,
        })
    }

    pub(super) fn shown(&self) -> String {
        match self.several {
            true => format!("[[{}]]", self.name),
            false => format!("[{}]", self.name),
        }
    }
}

/// The headers of a file, one a line. A line of a string that looks like one is taken for one: it
/// is only asked for what the parser says.
pub(super) fn headers<'t>(part: &Part<'t>) -> Vec<Header<'t>> {
    let mut start = part.start;
    let mut found = Vec::new();
    for line in part.text.split_inclusive('\n') {
        found.extend(Header::of(line, start));
        start += line.len();
    }
    found
}
