//! Named sets that expressions read as `$name`. Their source is not known here.
//!
//! A list has no type of its own: the left side of the comparison determines how its values are
//! read. So digits are integers for `ip.src.asnum` and a string for a cookie.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use super::literal::atom;
use super::set::{IntSet, IpSet, StringSet};

/// One named set. Clones share their data: each set is built only once for all rules.
#[derive(Clone, Debug)]
pub struct NamedList(Arc<Values>);

#[derive(Debug)]
struct Values {
    texts: Box<[ListEntry]>,
    /// The file with the values, for messages.
    file: Box<str>,
    strings: OnceLock<Result<StringSet, ListTypeError>>,
    ints: OnceLock<Result<IntSet, ListTypeError>>,
    ips: OnceLock<Result<IpSet, ListTypeError>>,
}

/// A value as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// The value.
    pub text: Box<str>,
    /// The line in the file.
    pub line: u32,
}

/// A value that does not have the type that the list is used as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListTypeError {
    /// The value.
    pub text: String,
    /// The position of the value, such as `agents.txt:17`.
    pub location: String,
    /// The number of other values that do not have the type either.
    pub others: usize,
}

/// All named sets.
#[derive(Clone, Debug, Default)]
pub struct NamedLists(HashMap<Box<str>, NamedList>);

// === impl NamedList ===

impl NamedList {
    /// A list of values without a file, for tests.
    pub fn from_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> NamedList {
        let entry = |(text, line): (&str, u32)| ListEntry {
            text: text.into(),
            line,
        };
        NamedList::from_file("list", texts.into_iter().zip(1..).map(entry).collect())
    }

    /// A list of values from `file`.
    pub fn from_file(file: &str, entries: Vec<ListEntry>) -> NamedList {
        NamedList(Arc::new(Values {
            texts: entries.into(),
            file: file.into(),
            strings: OnceLock::new(),
            ints: OnceLock::new(),
            ips: OnceLock::new(),
        }))
    }

    /// Returns `before`, with the sets already built from it, if its file and values equal this list's.
    pub fn or_same(self, before: &NamedList) -> NamedList {
        let (own, old) = (&self.0, &before.0);
        if own.file == old.file && own.texts == old.texts {
            before.clone()
        } else {
            self
        }
    }

    /// Whether both share their data, not only equal values.
    pub fn is(&self, other: &NamedList) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The values as strings, compared byte by byte. A list of only addresses, blocks and ranges
    /// with at least one block or range is an error: no string is in a block.
    pub fn strings(&self) -> Result<StringSet, ListTypeError> {
        let build = || match self.first_block() {
            Some(block) => Err(self.misfit(block, 0)),
            None => {
                let texts = self.0.texts.iter();
                let bytes = texts.map(|entry| entry.text.as_bytes().into());
                Ok(StringSet::new(bytes))
            }
        };
        self.0.strings.get_or_init(build).clone()
    }

    /// The values as integers and ranges of integers.
    pub fn ints(&self) -> Result<IntSet, ListTypeError> {
        let build = || self.all(|text| atom(text).ok()?.ints()).map(IntSet::new);
        self.0.ints.get_or_init(build).clone()
    }

    /// The values as addresses, blocks and ranges of addresses.
    pub fn ips(&self) -> Result<IpSet, ListTypeError> {
        let build = || self.all(addresses).map(IpSet::new);
        self.0.ips.get_or_init(build).clone()
    }

    fn all<T>(&self, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, ListTypeError> {
        let mut values = Vec::with_capacity(self.0.texts.len());
        let mut wrong = Vec::new();
        for entry in &self.0.texts {
            match read(&entry.text) {
                Some(value) => values.push(value),
                None => wrong.push(entry),
            }
        }
        match wrong.as_slice() {
            [] => Ok(values),
            [first, others @ ..] => Err(self.misfit(first, others.len())),
        }
    }

    /// The first block or range, if all values are addresses, blocks or ranges.
    fn first_block(&self) -> Option<&ListEntry> {
        let mut found = None;
        for entry in &self.0.texts {
            let (low, high) = addresses(&entry.text)?;
            if low != high && found.is_none() {
                found = Some(entry);
            }
        }
        found
    }

    fn misfit(&self, entry: &ListEntry, others: usize) -> ListTypeError {
        ListTypeError {
            text: entry.text.to_string(),
            location: format!("{}:{}", self.0.file, entry.line),
            others,
        }
    }
}

// === impl ListTypeError ===

impl std::fmt::Display for ListTypeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` ({})", self.text, self.location)?;
        match self.others {
            0 => Ok(()),
            1 => write!(f, " and 1 more that does not fit"),
            others => write!(f, " and {others} more that do not fit"),
        }
    }
}

// === impl NamedLists ===

impl NamedLists {
    /// No lists.
    pub fn new() -> NamedLists {
        NamedLists::default()
    }

    /// Adds a list; it replaces a list with an equal name.
    pub fn insert(&mut self, name: impl Into<Box<str>>, list: NamedList) {
        self.0.insert(name.into(), list);
    }

    /// The list with this name. `None` if there is none.
    pub fn get(&self, name: &str) -> Option<&NamedList> {
        self.0.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }
}

fn addresses(text: &str) -> Option<(IpAddr, IpAddr)> {
    atom(text).ok()?.ips()
}
