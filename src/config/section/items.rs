//! Arrays whose elements are values or tables.

use toml::de::DeValue;

use super::Section;
use crate::config::Spanned;
use crate::config::scalar::{Scalar, kind};
use crate::config::schema::Shape;

// === impl Section ===

impl Section<'_, '_> {
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
