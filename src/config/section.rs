//! A reader of one table. It gives typed values with their places, reports what is wrong and goes
//! on, and knows at the end which keys nobody asked for.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::scalar::{Wrong, kind};
use super::suggest::did_you_mean;
use super::{Diagnostics, Spanned, Text};

/// A value as the parser gives it.
pub(super) type Raw<'a> = toml::Spanned<DeValue<'a>>;

/// One table being read. [`Section::finish`] is called by whoever opened it.
pub(super) struct Section<'a, 'd> {
    table: &'a DeTable<'a>,
    span: Range<usize>,
    asked: Vec<&'static str>,
    refused: Vec<&'static str>,
    free: bool,
    /// Where mistakes go.
    pub(super) out: &'d mut Diagnostics,
}

// === impl Section ===

impl<'a, 'd> Section<'a, 'd> {
    /// A reader of `table`, whose header is at `span`.
    pub(super) fn new(
        table: &'a DeTable<'a>,
        span: Range<usize>,
        out: &'d mut Diagnostics,
    ) -> Self {
        Self {
            table,
            span,
            asked: Vec::new(),
            refused: Vec::new(),
            free: false,
            out,
        }
    }

    /// The header of the table, or the whole of an inline one.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Whether the key is there, right or wrong.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Where the key is written.
    pub(super) fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.table.get_key_value(key).map(|(key, _)| key.span())
    }

    /// A value that may be absent. A wrong one is reported and counts as absent.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<Spanned<T>> {
        let raw = self.ask(key)?;
        self.parse(raw, parse)
    }

    /// A value that has a default.
    pub(super) fn or<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
        default: impl Into<T>,
    ) -> Spanned<T> {
        self.optional(key, parse)
            .unwrap_or_else(|| Spanned::new(default.into(), self.span()))
    }

    /// A value that must be there; `example` shows one.
    pub(super) fn required<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
        example: &str,
    ) -> Option<Spanned<T>> {
        if !self.has(key) {
            self.missing(key, example);
        }
        self.optional(key, parse)
    }

    /// The values of an array; absent is `None`. Wrong elements are reported and left out.
    pub(super) fn array<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<Vec<Spanned<T>>> {
        let raw = self.ask(key)?;
        let Some(array) = raw.get_ref().as_array() else {
            let wrong = kind("an array", raw.get_ref());
            let help = format!("put it in brackets: `{key} = [ … ]`");
            self.wrong(raw.span(), wrong.help(help));
            return None;
        };
        let items = array.iter();
        Some(items.filter_map(|item| self.parse(item, &parse)).collect())
    }

    /// A table that may be absent.
    pub(super) fn table<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'_, '_>) -> T,
    ) -> Option<T> {
        let raw = self.ask(key)?;
        if raw.get_ref().is_array() {
            let wrong = kind("a table", raw.get_ref());
            self.wrong(raw.span(), wrong.help(format!("write `[{key}]`")));
            return None;
        }
        self.open(raw, read)
    }

    /// A table that is read as an empty one if it is absent: all its keys have defaults.
    pub(super) fn table_or_defaults<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut Section<'_, '_>) -> T,
    ) -> T {
        self.table(key, &read).unwrap_or_else(|| {
            let empty = DeTable::new();
            read(&mut Section::new(&empty, self.span(), self.out))
        })
    }

    /// An array of tables; absent is empty.
    pub(super) fn tables<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut Section<'_, '_>) -> T,
    ) -> Vec<T> {
        let Some(raw) = self.ask(key) else {
            return Vec::new();
        };
        let Some(array) = raw.get_ref().as_array() else {
            let wrong = kind("an array of tables", raw.get_ref());
            self.wrong(raw.span(), wrong.help(format!("write `[[{key}]]`")));
            return Vec::new();
        };
        let items = array.iter();
        items.filter_map(|item| self.open(item, &read)).collect()
    }

    /// All entries in the order of the file, for tables whose keys are the user's own.
    pub(super) fn entries(&mut self) -> Vec<(Text, &'a Raw<'a>)> {
        self.free = true;
        let table = self.table;
        let entry = |(key, value): (&toml::Spanned<_>, &'a Raw<'a>)| {
            let key: &toml::Spanned<std::borrow::Cow<'_, str>> = key;
            (Spanned::new(key.get_ref().to_string(), key.span()), value)
        };
        let mut entries: Vec<_> = table.iter().map(entry).collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        entries
    }

    /// Reads a value that is a table.
    pub(super) fn open<T>(
        &mut self,
        raw: &Raw<'_>,
        read: impl FnOnce(&mut Section<'_, '_>) -> T,
    ) -> Option<T> {
        let Some(table) = raw.get_ref().as_table() else {
            self.wrong(raw.span(), kind("a table", raw.get_ref()));
            return None;
        };
        let mut section = Section::new(table, raw.span(), self.out);
        let value = read(&mut section);
        section.finish();
        Some(value)
    }

    /// Reads one value; a wrong one is reported.
    pub(super) fn parse<T>(
        &mut self,
        raw: &Raw<'_>,
        parse: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<Spanned<T>> {
        match parse(raw.get_ref()) {
            Ok(value) => Some(Spanned::new(value, raw.span())),
            Err(wrong) => {
                self.wrong(raw.span(), wrong);
                None
            }
        }
    }

    /// Which of two names of the same key is used; both is an error at the second.
    pub(super) fn alias(&mut self, ours: &'static str, theirs: &'static str) -> &'static str {
        self.asked.extend([ours, theirs]);
        let (Some(a), Some(b)) = (self.key_span(ours), self.key_span(theirs)) else {
            return if self.has(theirs) { theirs } else { ours };
        };
        let (first, second) = if a.start < b.start { (a, b) } else { (b, a) };
        self.out
            .error(
                second,
                format!("`{ours}` and `{theirs}` are two names of one key"),
            )
            .related(first, "given here already");
        ours
    }

    /// Refuses keys that are known but have no effect yet.
    pub(super) fn later(&mut self, keys: &[&'static str]) {
        for &key in keys {
            self.refused.push(key);
            if let Some(span) = self.key_span(key) {
                let message = format!("`{key}` does not work yet");
                self.out.error(span, message).help("remove it");
            }
        }
    }

    /// Reports what nobody asked for.
    pub(super) fn finish(self) {
        if self.free {
            return;
        }
        let known: BTreeSet<_> = self.asked.iter().copied().collect();
        for (key, _) in self.table.iter() {
            let name = key.get_ref().as_ref();
            if known.contains(name) || self.refused.contains(&name) {
                continue;
            }
            let guess = did_you_mean(name, known.iter().chain(&self.refused).copied());
            let message = format!("unknown key `{name}`{guess}");
            let error = self.out.error(key.span(), message);
            if guess.is_empty() {
                let names: Vec<_> = known.iter().copied().collect();
                error.help(format!("the keys here are {}", names.join(", ")));
            }
        }
    }

    /// Reports that a key is not there.
    pub(super) fn missing(&mut self, key: &str, example: &str) {
        self.out
            .error(self.span.clone(), format!("`{key}` is missing"))
            .help(format!("for example `{key} = {example}`"));
    }

    /// Reports a wrong value.
    pub(super) fn wrong(&mut self, span: Range<usize>, wrong: Wrong) {
        let error = self.out.error(span, wrong.message);
        if let Some(help) = wrong.help {
            error.help(help);
        }
    }

    fn ask(&mut self, key: &'static str) -> Option<&'a Raw<'a>> {
        self.asked.push(key);
        self.table.get(key)
    }
}
