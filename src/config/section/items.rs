//! Arrays whose elements are values or tables.

use toml::de::DeValue;

use super::{Raw, Section, example, meant};
use crate::config::scalar::{Scalar, kind};
use crate::config::schema::{Shape, Value};
use crate::config::{Spanned, Text};

// === impl Section ===

impl Section<'_, '_> {
    /// An array of tables; absent is empty.
    pub(in crate::config) fn tables<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut Section<'_, '_>) -> T,
    ) -> Vec<T> {
        self.note(key, || Shape::list(Shape::Table(Section::describe(&read))));
        self.amend(key, |key| key.default = Some(Value::List(Vec::new())));
        self.asked.push(key);
        let mut found = match self.table.get(key) {
            Some(raw) => self.several(raw, key, &read),
            None => Vec::new(),
        };
        let stand_ins: Vec<_> = self.stand_ins(key).map(|(_, raw)| raw).collect();
        for raw in stand_ins {
            found.extend(match raw.get_ref().is_table() {
                // That there may be several is told with the right name.
                true => self.open(raw, key, &read).into_iter().collect(),
                false => self.several(raw, key, &read),
            });
        }
        found
    }

    /// The elements of an array of tables.
    fn several<T>(
        &mut self,
        raw: &Raw<'_>,
        key: &'static str,
        read: impl Fn(&mut Section<'_, '_>) -> T,
    ) -> Vec<T> {
        if self.names_its_elements(raw, key) {
            return self.named_elements(raw, key, read);
        }
        let Some(array) = raw.get_ref().as_array() else {
            return self.only_one(raw, key, read).into_iter().collect();
        };
        let items = array.iter();
        items
            .filter_map(|item| self.open_as(item, key, &read, example::of_element))
            .collect()
    }

    /// Whether it is written `[upstreams.app]`: with a name for each in its header.
    fn names_its_elements(&self, raw: &Raw<'_>, key: &'static str) -> bool {
        let whole = self.path.is_empty() && example::SEVERAL.contains(&key);
        let table = raw.get_ref().as_table().filter(|_| whole);
        table.is_some_and(|table| {
            let mut entries = table.iter();
            let named = |name: &str| !meant::is_key(key, name);
            !table.is_empty()
                && entries.all(|(name, value)| value.get_ref().is_table() && named(name.get_ref()))
        })
    }

    /// Refuses such headers, and reads the elements all the same.
    fn named_elements<T>(
        &mut self,
        raw: &Raw<'_>,
        key: &'static str,
        read: impl Fn(&mut Section<'_, '_>) -> T,
    ) -> Vec<T> {
        let entries = raw.get_ref().as_table().into_iter().flat_map(|t| t.iter());
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let mut found = Vec::new();
        for (name, value) in entries {
            let Some(table) = value.get_ref().as_table() else {
                continue;
            };
            let (span, name) = (self.place(name.span()), name.get_ref());
            let help = match meant::is_key(key, "name") {
                true => format!("write `[[{key}]]`, and below it `name = \"{name}\"`"),
                false => format!("write `[[{key}]]`"),
            };
            let message = format!("the headers of `{key}` have no names in them");
            self.out.error(span.clone(), message).help(help);
            let at = self.place(value.span());
            let mut section = Section::new(table, key.to_owned(), at, self.start, self.out);
            section.named = Some(Spanned::new(name.to_string(), span));
            found.push(read(&mut section));
            section.finish();
        }
        found
    }

    /// The name of the table, if it stands in its header and nowhere else.
    pub(in crate::config) fn header_name(&self) -> Option<Text> {
        self.named.clone().filter(|_| !self.has("name"))
    }

    /// How a value is written that must be in brackets.
    pub(super) fn bracketed(key: &str, value: &DeValue<'_>) -> String {
        let text = value.as_str().filter(|text| text.len() < 80);
        let inner = text.map_or(" … ".to_owned(), |text| format!("{text:?}"));
        format!("put it in brackets: `{key} = [{inner}]`")
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
            let help = Self::bracketed(key, raw.get_ref());
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
