//! Constraints between the settings of a table: aliases, exclusive settings and required settings.

use std::ops::Range;

use crate::config::Spanned;
use crate::config::schema::ValueSchema;
use crate::config::suggest::either;

use super::{MissingSettings, SectionReader};

// === impl SectionReader ===

impl SectionReader<'_, '_> {
    /// Accepts `theirs` as an alias of the setting `ours`. Reports an error at the second if both are present.
    pub(in crate::config) fn alias(&mut self, ours: &'static str, theirs: &'static str) {
        self.recognized.extend([ours, theirs]);
        self.note_table(|noted| noted.aliases.push((ours, theirs)));
        match self.spans_of_both(ours, theirs) {
            Some((first, second)) => {
                let message = format!("`{ours}` and `{theirs}` are the same setting");
                self.out
                    .error(second, message)
                    .related(first, "already set here");
            }
            None if self.has(theirs) => self.aliases.push((ours, theirs)),
            None => {}
        }
    }

    /// Returns the name that the file uses for a setting.
    pub(in crate::config) fn written<'k>(&self, key: &'k str) -> &'k str {
        let alias = self.aliases.iter().find(|(ours, _)| *ours == key);
        alias.map_or(key, |(_, theirs)| theirs)
    }

    /// Returns the spans of two settings in file order. `None` unless both are present.
    fn spans_of_both(&self, one: &str, other: &str) -> Option<(Range<usize>, Range<usize>)> {
        let (a, b) = (self.key_span(one)?, self.key_span(other)?);
        Some(if a.start < b.start { (a, b) } else { (b, a) })
    }

    /// Refuses a table with both settings of a pair.
    pub(in crate::config) fn apart(&mut self, owner: &str, [ours, other]: [&'static str; 2]) {
        self.note_table(|noted| noted.apart.push((ours, other)));
        if let Some((first, second)) = self.spans_of_both(ours, other) {
            let named = self.written(ours);
            let message = format!("{owner} cannot have both `{named}` and `{other}`");
            self.out
                .error(second, message)
                .related(first, "already set here");
        }
    }

    /// Refuses settings that are documented but not implemented yet.
    pub(in crate::config) fn later(&mut self, keys: &[&'static str]) {
        self.note_table(|noted| noted.later.extend(keys));
        self.refuse(keys, "is not supported yet", "remove it");
    }

    /// Refuses known settings that do not apply here.
    pub(in crate::config) fn refuse(&mut self, keys: &[&'static str], why: &str, help: &str) {
        for &key in keys {
            self.unwanted.push(key);
            if let Some(span) = self.key_span(key) {
                self.out.error(span, format!("`{key}` {why}")).help(help);
            }
        }
    }

    /// Refuses a table with none or several of `keys`. `owner` describes the table in messages.
    pub(in crate::config) fn exactly_one(
        &mut self,
        owner: &str,
        keys: &'static [&'static str],
        example: &str,
    ) {
        self.note_table(|noted| noted.exactly_one.push(keys));
        let spans = keys.iter().filter_map(|key| self.key_span(key));
        let mut given: Vec<_> = spans.collect();
        given.sort_by_key(|span| span.start);
        let Some((first, rest)) = given.split_first() else {
            return self.none_of(owner, keys, example);
        };
        for span in rest {
            let message = format!("{owner} can have only one of {}", either(keys));
            self.out
                .error(span.clone(), message)
                .related(first.clone(), "already set here");
        }
    }

    /// Refuses a table with none of `keys`, under any of their names.
    pub(in crate::config) fn at_least_one(
        &mut self,
        owner: &str,
        keys: &'static [&'static str],
        example: &str,
    ) {
        self.note_table(|noted| noted.at_least_one.push(keys));
        if !keys.iter().any(|key| self.has(key)) {
            self.none_of(owner, keys, example);
        }
    }

    /// Reports that a setting is missing.
    pub(in crate::config) fn missing(&mut self, key: &'static str, example: &str) {
        let help = format!("for example `{key} = {example}`");
        self.none(&[key], format!("`{key}` is missing"), help);
    }

    fn none_of(&mut self, owner: &str, keys: &[&'static str], example: &str) {
        let message = format!("{owner} needs {}", either(keys));
        self.none(keys, message, format!("for example `{example}`"));
    }

    /// Reports that none of `keys` is present, unless one of them is misspelt.
    pub(in crate::config) fn none(
        &mut self,
        keys: &[&'static str],
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.missing.push(MissingSettings {
            keys: keys.to_vec(),
            span: self.span(),
            message: message.into(),
            help: help.into(),
        });
    }

    /// Returns whether a required setting is absent, so that its reader reports it.
    pub(in crate::config) fn lacks(&mut self, key: &'static str) -> bool {
        self.amend(key, |key| (key.required, key.default) = (true, None));
        !self.has(key)
    }

    /// Refuses an empty array.
    pub(in crate::config) fn not_empty(&mut self, key: &'static str, message: &str, help: &str) {
        self.amend(key, |key| {
            if let ValueSchema::List { least, .. } = &mut key.shape {
                *least = 1;
            }
        });
        let array = self.table.get(key).and_then(|raw| raw.get_ref().as_array());
        let span = self
            .key_span(key)
            .filter(|_| array.is_some_and(|a| a.is_empty()));
        if let Some(span) = span {
            self.out.error(span, message).help(help);
        }
    }

    /// Returns the values of an array without duplicates, which are errors.
    pub(in crate::config) fn each_once<T: PartialEq>(
        &mut self,
        key: &'static str,
        values: Vec<Spanned<T>>,
        message: &str,
    ) -> Vec<Spanned<T>> {
        self.amend(key, |key| {
            if let ValueSchema::List { unique, .. } = &mut key.shape {
                *unique = true;
            }
        });
        let mut seen: Vec<Spanned<T>> = Vec::new();
        for value in values {
            match seen.iter().find(|old| old.value == value.value) {
                None => seen.push(value),
                Some(first) => {
                    self.out
                        .error(value.span, message)
                        .related(first.span.clone(), "already listed here");
                }
            }
        }
        seen
    }
}
