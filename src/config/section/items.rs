//! Arrays of values or tables, and tables with names that the user chooses. While describing, such
//! a table has one entry that represents all.

use std::borrow::Cow;

use toml::de::{DeArray, DeTable, DeValue};

use super::{Raw, SectionReader, unknown};
use crate::config::scalar::{SettingType, kind};
use crate::config::schema::{ExampleValue, UserNames, ValueSchema};
use crate::config::{Spanned, Text};

/// Represents a name that the user chooses in a path.
const NAME: &str = "NAME";

/// Returns the table that is read while describing. Its one entry has a name that no reader reads.
pub(super) fn nothing() -> DeTable<'static> {
    let mut table = DeTable::new();
    let value = DeValue::String("".into());
    table.insert(
        toml::Spanned::new(0..0, "".into()),
        toml::Spanned::new(0..0, value),
    );
    table
}

// === impl SectionReader ===

impl<'a> SectionReader<'a, '_> {
    /// Reads an array of tables. Empty if it is absent.
    pub(in crate::config) fn tables<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut SectionReader<'_, '_>) -> T,
    ) -> Vec<T> {
        self.note(key, || {
            ValueSchema::list(ValueSchema::Table(SectionReader::describe(&read)))
        });
        self.amend(key, |key| {
            key.default = Some(ExampleValue::List(Vec::new()))
        });
        let Some(raw) = self.take_value(key).filter(|raw| !self.is_torn(raw)) else {
            return Vec::new();
        };
        let Some(array) = raw.get_ref().as_array() else {
            let help = if unknown::SEVERAL.contains(&key) {
                format!("write `[[{key}]]`")
            } else {
                format!("put it in brackets: `{key} = [ … ]`")
            };
            let wrong = kind("an array of tables", raw.get_ref()).help(help);
            self.wrong(self.source_span(raw.span()), wrong);
            self.out.hide_names();
            return Vec::new();
        };
        let items = array.iter();
        items
            .filter_map(|item| self.open(item, key, &read))
            .collect()
    }

    /// Returns whether the setting is present and not an empty array.
    pub(in crate::config) fn holds(&self, key: &str) -> bool {
        let raw = self.table.get(key);
        raw.is_some_and(|raw| raw.get_ref().as_array().is_none_or(|a| !a.is_empty()))
    }

    /// Reads the values of an array. `None` if it is absent. Reports and omits wrong elements.
    pub(in crate::config) fn array<T: 'static>(
        &mut self,
        key: &'static str,
        scalar: SettingType<T>,
    ) -> Option<Vec<Spanned<T>>> {
        self.note(key, || ValueSchema::list(scalar.shape()));
        let array = self.take_array(key)?;
        Some(self.parse_all(array, &scalar))
    }

    /// Reads one value or an array of them. Empty if it is absent. Reports and omits wrong values.
    pub(in crate::config) fn one_or_several<T: 'static>(
        &mut self,
        key: &'static str,
        scalar: SettingType<T>,
    ) -> Vec<Spanned<T>> {
        self.note(key, || {
            let several = ValueSchema::list(scalar.shape());
            ValueSchema::Either(vec![scalar.shape(), several])
        });
        let raw = self.take_value(key).filter(|raw| !self.is_torn(raw));
        match raw.map(|raw| (raw, raw.get_ref())) {
            None => Vec::new(),
            Some((_, DeValue::Array(array))) => self.parse_all(array, &scalar),
            Some((raw, _)) => Vec::from_iter(self.parse(raw, &scalar)),
        }
    }

    /// Reads the elements of an array, each a value of type `one` or a table read by `read`. `None`
    /// if it is absent. Reports and omits wrong elements.
    pub(in crate::config) fn array_or_tables<T: 'static, U>(
        &mut self,
        key: &'static str,
        scalar: SettingType<T>,
        one: impl Fn(Spanned<T>) -> U,
        read: impl Fn(&mut SectionReader<'_, '_>) -> Option<U>,
    ) -> Option<Vec<U>> {
        self.note(key, || {
            let table = ValueSchema::Table(SectionReader::describe(&read));
            ValueSchema::list(ValueSchema::Either(vec![scalar.shape(), table]))
        });
        let array = self.take_array(key)?;
        let mut found = Vec::new();
        for item in array.iter() {
            found.extend(match item.get_ref() {
                DeValue::Table(_) => self.open(item, key, &read).flatten(),
                _ => self.parse(item, &scalar).map(&one),
            });
        }
        Some(found)
    }

    /// Returns the array of a setting. Reports a value of another type and returns `None`.
    fn take_array(&mut self, key: &'static str) -> Option<&'a DeArray<'a>> {
        let raw = self.take_value(key).filter(|raw| !self.is_torn(raw))?;
        let array = raw.get_ref().as_array();
        if array.is_none() {
            let text = raw.get_ref().as_str().filter(|text| text.len() < 80);
            let inner = text.map_or(" … ".to_owned(), |text| format!("{text:?}"));
            let help = format!("put it in brackets: `{key} = [{inner}]`");
            let wrong = kind("an array", raw.get_ref()).help(help);
            self.wrong(self.source_span(raw.span()), wrong);
        }
        array
    }

    pub(super) fn parse_all<T: 'static>(
        &mut self,
        array: &DeArray<'_>,
        scalar: &SettingType<T>,
    ) -> Vec<Spanned<T>> {
        let items = array.iter();
        items.filter_map(|item| self.parse(item, scalar)).collect()
    }

    /// Returns all entries in file order. `pattern` describes their names in the schema; the caller
    /// checks them.
    pub(in crate::config) fn entries(&mut self, pattern: &'static str) -> Vec<(Text, &'a Raw<'a>)> {
        self.free = true;
        let shapes = Vec::new();
        self.note_table(|noted| noted.names = Some(UserNames { pattern, shapes }));
        let entry = |(key, value): (&toml::Spanned<Cow<'_, str>>, &'a Raw<'a>)| {
            let span = self.source_span(key.span());
            (Spanned::new(key.get_ref().to_string(), span), value)
        };
        let mut entries: Vec<_> = self.table.iter().map(entry).collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        entries
    }

    /// Parses the value of an entry.
    pub(in crate::config) fn entry<T: 'static>(
        &mut self,
        raw: &Raw<'_>,
        scalar: &SettingType<T>,
    ) -> Option<Spanned<T>> {
        self.note_entry(|| scalar.shape());
        self.parse(raw, scalar)
    }

    /// Reads an entry that is a table.
    pub(in crate::config) fn entry_table<T>(
        &mut self,
        raw: &Raw<'_>,
        read: impl FnOnce(&mut SectionReader<'_, '_>) -> T,
    ) -> Option<T> {
        if self.describing() {
            self.note_entry(|| ValueSchema::Table(SectionReader::describe(read)));
            return None;
        }
        self.open(raw, NAME, read)
    }

    /// Reads an entry that is an array of values, combined by `all`, or a table; `example` shows both.
    pub(in crate::config) fn entry_array_or_table<T: 'static, U>(
        &mut self,
        raw: &Raw<'_>,
        scalar: &SettingType<T>,
        all: impl FnOnce(Vec<Spanned<T>>) -> U,
        read: impl FnOnce(&mut SectionReader<'_, '_>) -> U,
        example: &str,
    ) -> Option<U> {
        if self.describing() {
            self.note_entry(|| ValueSchema::list(scalar.shape()));
            return self.entry_table(raw, read);
        }
        if self.is_torn(raw) {
            return None;
        }
        match raw.get_ref() {
            DeValue::Array(array) => Some(all(self.parse_all(array, scalar))),
            DeValue::Table(_) => self.open(raw, NAME, read),
            other => {
                let wrong = kind("an array or a table", other);
                let help = format!("for example {example}");
                self.wrong(self.source_span(raw.span()), wrong.help(help));
                None
            }
        }
    }

    fn note_entry(&mut self, shape: impl FnOnce() -> ValueSchema) {
        let noted = self.noted.as_mut().and_then(|noted| noted.names.as_mut());
        if let Some(names) = noted {
            names.shapes.push(shape());
        }
    }
}
