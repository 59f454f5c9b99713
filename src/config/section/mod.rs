//! A reader of one table. It returns typed values with their spans, reports errors, continues, and
//! finally reports the settings that were not read.
//!
//! The reader also describes: over an empty table it records each setting that is read, and enters
//! absent tables. The result is the schema, which therefore agrees with the reader.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::scalar::{SettingType, ValueError, kind};
use super::schema::{ExampleValue, SettingSchema, TableSchema, ValueSchema};
use super::suggest::nearest;
use super::{Diagnostics, Spanned};

mod constraints;
mod items;
mod unknown;

pub(super) use unknown::SEVERAL;
use unknown::{join, table_help};

/// A value as returned by the parser.
pub(super) type Raw<'a> = toml::Spanned<DeValue<'a>>;

/// One table being read. The caller that creates it calls [`SectionReader::finish`].
pub(super) struct SectionReader<'a, 'd> {
    table: &'a DeTable<'a>,
    /// The dotted path of the section. Empty for a whole file.
    path: String,
    span: Range<usize>,
    /// The offset of its file in the source. The parser's spans are relative to it.
    start: usize,
    recognized: Vec<&'static str>,
    /// Known settings that are not allowed here.
    unwanted: Vec<&'static str>,
    /// Settings that are written with an alias: lockgate's name and the alias.
    aliases: Vec<(&'static str, &'static str)>,
    /// Required settings that are absent. Reported at the end, unless one of them is misspelt,
    /// which is a separate error.
    missing: Vec<MissingSettings>,
    /// Whether the user chooses the names of the settings.
    free: bool,
    /// The recorded schema, while describing. `None` while reading a file.
    noted: Option<TableSchema>,
    /// Receives errors and warnings.
    pub(super) out: &'d mut Diagnostics,
}

/// The error that one of `keys` is missing.
struct MissingSettings {
    keys: Vec<&'static str>,
    span: Range<usize>,
    message: String,
    help: String,
}

// === impl SectionReader ===

impl<'a, 'd> SectionReader<'a, 'd> {
    /// Creates a reader of a whole file that starts at offset `start` of its source.
    pub(super) fn root(table: &'a DeTable<'a>, start: usize, out: &'d mut Diagnostics) -> Self {
        Self::new(table, String::new(), start..start, start, out)
    }

    /// Creates a reader of `table` with its header at `span`, in the file that starts at `start`.
    fn new(
        table: &'a DeTable<'a>,
        path: String,
        span: Range<usize>,
        start: usize,
        out: &'d mut Diagnostics,
    ) -> Self {
        Self {
            table,
            path,
            span,
            start,
            recognized: Vec::new(),
            unwanted: Vec::new(),
            aliases: Vec::new(),
            missing: Vec::new(),
            free: false,
            noted: None,
            out,
        }
    }

    /// Reads an absent table at `span`: every setting has its default.
    pub(super) fn read_defaults<T>(
        span: Range<usize>,
        read: impl FnOnce(&mut SectionReader<'_, '_>) -> T,
    ) -> T {
        let (empty, mut ignored) = (DeTable::new(), Diagnostics::new());
        let mut section = SectionReader::new(&empty, String::new(), span, 0, &mut ignored);
        read(&mut section)
    }

    /// Returns the schema of a table that `read` reads.
    pub(super) fn describe<T>(read: impl FnOnce(&mut SectionReader<'_, '_>) -> T) -> TableSchema {
        let nothing = items::nothing();
        let mut ignored = Diagnostics::new();
        let mut section = SectionReader::root(&nothing, 0, &mut ignored);
        section.noted = Some(TableSchema::default());
        read(&mut section);
        section.noted.unwrap_or_default()
    }

    /// The span of the table's header, or of a whole inline table.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns whether the setting is present, valid or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(self.written(key))
    }

    /// Returns whether `value` is the default because the written value was refused.
    pub(super) fn refused<T>(&self, key: &str, value: &Spanned<T>) -> bool {
        self.has(key) && value.span == self.span
    }

    /// Returns the span of the setting's name. `None` if it is absent.
    pub(super) fn key_span(&self, key: &str) -> Option<Range<usize>> {
        let (key, _) = self.table.get_key_value(self.written(key))?;
        Some(self.source_span(key.span()))
    }

    /// Reads an optional value. Reports a wrong value and returns `None`.
    pub(super) fn optional<T: 'static>(
        &mut self,
        key: &'static str,
        scalar: SettingType<T>,
    ) -> Option<Spanned<T>> {
        self.note(key, || scalar.shape());
        let raw = self.take_value(key)?;
        self.parse(raw, &scalar)
    }

    /// Reads a value with a default.
    pub(super) fn or<T: 'static>(
        &mut self,
        key: &'static str,
        scalar: SettingType<T>,
        default: impl Into<T>,
    ) -> Spanned<T> {
        let default = default.into();
        let shown = scalar.show(&default);
        let value = self.optional(key, scalar);
        self.amend(key, |key| key.default = shown);
        value.unwrap_or_else(|| Spanned::new(default, self.span()))
    }

    /// Reads a required value; `example` is shown if it is missing.
    pub(super) fn required<T: 'static>(
        &mut self,
        key: &'static str,
        scalar: SettingType<T>,
        example: &'static str,
    ) -> Option<Spanned<T>> {
        let value = self.optional(key, scalar);
        if self.lacks(key) {
            self.missing(key, example);
        }
        value
    }

    /// Reads the values of an array with a default.
    pub(super) fn array_or<T: 'static>(
        &mut self,
        key: &'static str,
        scalar: SettingType<T>,
        default: impl IntoIterator<Item = T>,
    ) -> Vec<Spanned<T>> {
        let span = self.span();
        let default: Vec<T> = default.into_iter().collect();
        let shown = default.iter().map(|value| scalar.show(value)).collect();
        let values = self.array(key, scalar);
        self.amend(key, |key| {
            key.default = Option::map(shown, ExampleValue::List)
        });
        let at_section = |value| Spanned::new(value, span.clone());
        values.unwrap_or_else(|| default.into_iter().map(at_section).collect())
    }

    /// Reads an optional table.
    pub(super) fn table<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut SectionReader<'_, '_>) -> T,
    ) -> Option<T> {
        if self.describing() {
            self.note(key, || ValueSchema::Table(SectionReader::describe(read)));
            return None;
        }
        let raw = self.take_value(key)?;
        self.open(raw, key, read)
    }

    /// Reads a value or a table, with a default.
    pub(super) fn value_or_table<T: 'static>(
        &mut self,
        key: &'static str,
        scalar: SettingType<T>,
        default: T,
        read: impl FnOnce(&mut SectionReader<'_, '_>) -> Option<T>,
    ) -> Spanned<T> {
        self.note(key, || scalar.shape());
        if self.describing() {
            let table = ValueSchema::Table(SectionReader::describe(read));
            let shown = scalar.show(&default);
            self.amend(key, |key| {
                key.shape = ValueSchema::Either(vec![scalar.shape(), table]);
                key.default = shown;
            });
            return Spanned::new(default, self.span());
        }
        let found = self.take_value(key).and_then(|raw| match raw.get_ref() {
            DeValue::Table(_) => {
                let value = self.open(raw, key, read).flatten()?;
                Some(Spanned::new(value, self.source_span(raw.span())))
            }
            _ => self.parse(raw, &scalar),
        });
        found.unwrap_or_else(|| Spanned::new(default, self.span()))
    }

    /// Reads a table in which all settings have defaults. An absent table is read as an empty one.
    pub(super) fn table_or_defaults<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut SectionReader<'_, '_>) -> T,
    ) -> T {
        self.table(key, &read).unwrap_or_else(|| {
            let (empty, path) = (DeTable::new(), join(&self.path, key));
            read(&mut SectionReader::new(
                &empty,
                path,
                self.span(),
                self.start,
                self.out,
            ))
        })
    }

    /// Reports missing settings and settings that were not read.
    pub(super) fn finish(mut self) {
        for missing in std::mem::take(&mut self.missing) {
            if !missing.keys.iter().any(|key| self.is_misspelt(key)) {
                self.out
                    .lacks(missing.span, missing.message)
                    .help(missing.help);
            }
        }
        if self.free {
            return;
        }
        let known: BTreeSet<_> = self.recognized.iter().copied().collect();
        for (key, value) in self.table.iter() {
            let name = key.get_ref().as_ref();
            if known.contains(name) || self.unwanted.contains(&name) {
                continue;
            }
            let span = shifted(key.span(), self.start);
            if self.path.is_empty() {
                self.out.hide_names();
            }
            let written = (name, value.get_ref());
            unknown::report(&self.path, written, &known, &self.unwanted, span, self.out);
        }
    }

    /// Reports a wrong value.
    pub(super) fn wrong(&mut self, span: Range<usize>, wrong: ValueError) {
        self.out.error(span, wrong.message).help.extend(wrong.help);
    }

    /// Reads the table that is the value of `key`.
    fn open<T>(
        &mut self,
        raw: &Raw<'_>,
        key: &str,
        read: impl FnOnce(&mut SectionReader<'_, '_>) -> T,
    ) -> Option<T> {
        if self.is_torn(raw) {
            return None;
        }
        let (span, path) = (self.source_span(raw.span()), join(&self.path, key));
        let Some(table) = raw.get_ref().as_table() else {
            let help = table_help(&self.path, key);
            self.wrong(span, kind("a table", raw.get_ref()).help(help));
            return None;
        };
        let mut section = SectionReader::new(table, path, span, self.start, self.out);
        let value = read(&mut section);
        section.finish();
        Some(value)
    }

    /// Parses one value. Reports a wrong value and returns `None`.
    fn parse<T: 'static>(&mut self, raw: &Raw<'_>, scalar: &SettingType<T>) -> Option<Spanned<T>> {
        if self.is_torn(raw) {
            return None;
        }
        match scalar.parse(raw.get_ref()) {
            Ok(value) => Some(Spanned::new(value, self.source_span(raw.span()))),
            Err(wrong) => {
                self.wrong(self.source_span(raw.span()), wrong);
                None
            }
        }
    }

    /// Returns whether the parser invented the value after a syntax error. A value with an empty
    /// span is invented too.
    fn is_torn(&self, raw: &Raw<'_>) -> bool {
        let nowhere = raw.span().is_empty() && !raw.get_ref().is_table();
        nowhere && !self.describing() || self.out.is_torn(&self.source_span(raw.span()))
    }

    /// Converts a span of the parser to a span of the source.
    fn source_span(&self, span: Range<usize>) -> Range<usize> {
        shifted(span, self.start)
    }

    fn describing(&self) -> bool {
        self.noted.is_some()
    }

    /// Records a setting, while describing.
    fn note(&mut self, name: &'static str, shape: impl FnOnce() -> ValueSchema) {
        self.note_table(|noted| {
            noted.keys.push(SettingSchema {
                name,
                shape: shape(),
                required: false,
                default: None,
            });
        });
    }

    /// Records something about the table, while describing.
    fn note_table(&mut self, note: impl FnOnce(&mut TableSchema)) {
        self.noted.as_mut().map(note);
    }

    /// Changes the record of a setting, while describing.
    fn amend(&mut self, name: &str, change: impl FnOnce(&mut SettingSchema)) {
        let keys = self.noted.iter_mut().flat_map(|noted| &mut noted.keys);
        if let Some(key) = keys.into_iter().find(|key| key.name == name) {
            change(key);
        }
    }

    fn take_value(&mut self, key: &'static str) -> Option<&'a Raw<'a>> {
        self.recognized.push(key);
        self.table.get(self.written(key))
    }

    /// Returns whether an unknown setting of the section is probably a misspelling of `key`.
    /// Correct only after all settings were read.
    pub(super) fn is_misspelt(&self, key: &str) -> bool {
        let mut names = self.table.iter().map(|(name, _)| name.get_ref().as_ref());
        names.any(|name| {
            !self.recognized.contains(&name)
                && nearest(name, self.recognized.iter().copied()) == Some(key)
        })
    }
}

fn shifted(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}
