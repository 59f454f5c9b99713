//! Tables whose keys are the user's own. While describing there is one entry, which stands for any.

use toml::de::{DeTable, DeValue};

use super::unknown::{self, INCLUDE};
use super::{Raw, Section};
use crate::config::scalar::{Scalar, kind};
use crate::config::schema::{Names, Shape};
use crate::config::{Spanned, Text};

/// Stands in a path for a name of the user's own.
const NAME: &str = "NAME";

/// The table that is read while describing: the entry that stands for any has the one name that no
/// reader asks for.
pub(super) fn nothing() -> DeTable<'static> {
    let mut table = DeTable::new();
    let value = DeValue::String("".into());
    table.insert(
        toml::Spanned::new(0..0, "".into()),
        toml::Spanned::new(0..0, value),
    );
    table
}

// === impl Section ===

impl<'a> Section<'a, '_> {
    /// All entries in the order of the file. Their names are of the form `pattern`, for the schema;
    /// the caller checks them.
    pub(in crate::config) fn entries(&mut self, pattern: &'static str) -> Vec<(Text, &'a Raw<'a>)> {
        self.free = true;
        if let Some(noted) = &mut self.noted {
            let shapes = Vec::new();
            noted.names = Some(Names { pattern, shapes });
        }
        let table = self.table;
        let entry = |(key, value): (&toml::Spanned<_>, &'a Raw<'a>)| {
            let key: &toml::Spanned<std::borrow::Cow<'_, str>> = key;
            let span = self.place(key.span());
            (Spanned::new(key.get_ref().to_string(), span), value)
        };
        let mut entries: Vec<_> = table.iter().map(entry).collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        entries
    }

    /// The value of an entry.
    pub(in crate::config) fn entry<T: 'static>(
        &mut self,
        raw: &Raw<'_>,
        scalar: &Scalar<T>,
    ) -> Option<Spanned<T>> {
        self.note_entry(|| scalar.shape());
        self.parse(raw, scalar)
    }

    /// An entry that is a table.
    pub(in crate::config) fn entry_table<T>(
        &mut self,
        raw: &Raw<'_>,
        read: impl FnOnce(&mut Section<'_, '_>) -> T,
    ) -> Option<T> {
        if self.describing() {
            self.note_entry(|| Shape::Table(Section::describe(read)));
            return None;
        }
        if let Some(span) = self.key_span(INCLUDE)
            && self
                .table
                .get(INCLUDE)
                .is_some_and(|own| std::ptr::eq(own, raw))
            && raw.get_ref().is_array()
        {
            unknown::misplaced(&self.path, span, self.out);
            return None;
        }
        self.open(raw, NAME, read)
    }

    /// An entry that is an array of values, put together by `all`, or a table; `example` shows both.
    pub(in crate::config) fn entry_array_or_table<T: 'static, U>(
        &mut self,
        raw: &Raw<'_>,
        scalar: &Scalar<T>,
        all: impl FnOnce(Vec<Spanned<T>>) -> U,
        read: impl FnOnce(&mut Section<'_, '_>) -> U,
        example: &str,
    ) -> Option<U> {
        if self.describing() {
            self.note_entry(|| Shape::list(scalar.shape()));
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
                self.wrong(self.place(raw.span()), wrong.help(help));
                None
            }
        }
    }

    fn note_entry(&mut self, shape: impl FnOnce() -> Shape) {
        let noted = self.noted.as_mut().and_then(|noted| noted.names.as_mut());
        if let Some(names) = noted {
            names.shapes.push(shape());
        }
    }
}
