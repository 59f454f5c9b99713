//! Arrays whose elements are values or tables.

use toml::de::DeValue;

use super::{Raw, Section, example};
use crate::config::Spanned;
use crate::config::scalar::{Scalar, kind};
use crate::config::schema::Shape;

// === impl Section ===

impl Section<'_, '_> {
    /// The elements of an array of tables.
    pub(super) fn several<T>(
        &mut self,
        raw: &Raw<'_>,
        key: &'static str,
        read: impl Fn(&mut Section<'_, '_>) -> T,
    ) -> Vec<T> {
        let Some(array) = raw.get_ref().as_array() else {
            return self.only_one(raw, key, read).into_iter().collect();
        };
        let items = array.iter();
        items
            .filter_map(|item| self.open_as(item, key, &read, example::of_element))
            .collect()
    }

    /// A value in place of an array of tables: an error. One table is read all the same, so that
    /// its own mistakes are told and its name is known.
    fn only_one<T>(
        &mut self,
        raw: &Raw<'_>,
        key: &'static str,
        read: impl FnOnce(&mut Section<'_, '_>) -> T,
    ) -> Option<T> {
        if self.is_torn(raw) {
            return None;
        }
        let wrong = kind("an array of tables", raw.get_ref());
        let wrong = match example::SEVERAL.contains(&key) {
            true => wrong.help(format!("write `[[{key}]]`")),
            false => wrong.help(format!("put it in brackets: `{key} = [ … ]`")),
        };
        self.wrong(self.place(raw.span()), wrong);
        match raw.get_ref().is_table() {
            true => self.open(raw, key, read),
            false => None,
        }
    }

    /// Whether the key is there with anything but an empty array.
    pub(in crate::config) fn holds(&self, key: &str) -> bool {
        let raw = self.find(key).map(|(_, raw)| raw);
        raw.is_some_and(|raw| {
            raw.get_ref()
                .as_array()
                .is_none_or(|array| !array.is_empty())
        })
    }

    /// The elements of an array, each a value that `one` takes or a table that `read` reads; absent
    /// is `None`. Wrong elements are reported and left out.
    pub(in crate::config) fn array_or_tables<T: 'static, U>(
        &mut self,
        key: &'static str,
        scalar: Scalar<T>,
        one: impl Fn(Spanned<T>) -> U,
        read: impl Fn(&mut Section<'_, '_>) -> Option<U>,
    ) -> Option<Vec<U>> {
        self.note(key, || {
            let table = Shape::Table(Section::describe(&read));
            Shape::list(Shape::Either(vec![scalar.shape(), table]))
        });
        let raw = self.ask(key)?;
        if self.is_torn(raw) {
            return None;
        }
        let Some(array) = raw.get_ref().as_array() else {
            let wrong = kind("an array", raw.get_ref());
            let help = format!("put it in brackets: `{key} = [ … ]`");
            self.wrong(self.place(raw.span()), wrong.help(help));
            return None;
        };
        let mut found = Vec::new();
        for item in array.iter() {
            found.extend(match item.get_ref() {
                DeValue::Table(_) => self.open(item, key, &read).flatten(),
                _ => self.parse(item, &scalar).map(&one),
            });
        }
        Some(found)
    }
}
