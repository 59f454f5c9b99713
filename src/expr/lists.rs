//! Named sets that expressions read as `$name`. Where they come from is not known here.

use std::collections::HashMap;

use super::atom;
use super::set::{IntSet, IpSet, StringSet};

/// One named set.
#[derive(Clone, Debug)]
pub enum List {
    /// Addresses and blocks.
    Ips(IpSet),
    /// Strings, compared byte by byte.
    Strings(StringSet),
    /// Integers.
    Ints(IntSet),
    /// Nothing: it goes with any type and holds no value.
    Empty,
}

/// All named sets.
#[derive(Clone, Debug, Default)]
pub struct Lists(HashMap<Box<str>, List>);

// === impl List ===

impl List {
    /// A list from text, one value each. One address or block among them makes it a list of
    /// addresses, nothing but integers a list of integers; anything else is strings. The error
    /// is the place of the value that does not fit and the reason.
    pub fn from_texts<'a>(
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<List, (usize, String)> {
        let texts: Vec<&str> = texts.into_iter().collect();
        if texts.is_empty() {
            return Ok(List::Empty);
        }
        if texts.iter().any(|text| atom::net(text).is_some()) {
            return ips(&texts);
        }
        let ints: Option<Vec<i64>> = texts.iter().map(|text| text.parse().ok()).collect();
        Ok(match ints {
            Some(ints) => List::Ints(IntSet::new(ints.into_iter().map(|int| (int, int)))),
            None => List::Strings(StringSet::new(
                texts.iter().map(|text| text.as_bytes().into()),
            )),
        })
    }

    /// What the values are, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            List::Ips(_) => "addresses",
            List::Strings(_) => "strings",
            List::Ints(_) => "integers",
            List::Empty => "nothing",
        }
    }
}

// === impl Lists ===

impl Lists {
    /// No lists.
    pub fn new() -> Lists {
        Lists::default()
    }

    /// Adds a list; the last of a name wins.
    pub fn insert(&mut self, name: impl Into<Box<str>>, list: List) {
        self.0.insert(name.into(), list);
    }

    /// The list called `name`.
    pub fn get(&self, name: &str) -> Option<&List> {
        self.0.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }
}

fn ips(texts: &[&str]) -> Result<List, (usize, String)> {
    let mut ranges = Vec::with_capacity(texts.len());
    for (at, text) in texts.iter().enumerate() {
        let reason = || {
            (
                at,
                format!("`{text}` is not an address or an address block"),
            )
        };
        let net = atom::net(text).ok_or_else(reason)?;
        ranges.push((net.network(), net.broadcast()));
    }
    Ok(List::Ips(IpSet::new(ranges)))
}
