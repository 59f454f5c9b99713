//! `[lists]`: values in place or from a file, of one kind each: addresses, integers or strings.

use std::ops::Range;

use super::Context;
use crate::config::file::{self, Item, Items};
use crate::expr::{List, Lists};

/// Builds all lists.
pub fn lists(written: &[file::List], cx: &mut Context<'_>) -> Lists {
    let mut lists = Lists::default();
    for list in written {
        let values = match &list.items {
            Items::Inline(items) => inline(items),
            Items::File(path) => match cx.read(&path.value, &path.span) {
                Some(bytes) => lines(&bytes, &path.span),
                None => Vec::new(),
            },
        };
        let texts = values.iter().map(|(value, _)| value.as_str());
        match List::from_texts(texts) {
            Ok(built) => lists.insert(list.name.value.as_str(), built),
            Err((place, message)) => {
                let span = values.get(place).map_or(0..0, |(_, span)| span.clone());
                cx.diagnostics.error(span, message);
            }
        }
    }
    lists
}

fn inline(items: &[crate::config::Spanned<Item>]) -> Vec<(String, Range<usize>)> {
    items
        .iter()
        .map(|item| match &item.value {
            Item::Text(text) => (text.clone(), item.span.clone()),
            Item::Integer(integer) => (integer.to_string(), item.span.clone()),
        })
        .collect()
}

/// One value a line; what follows a `#` at the start or after a space is a comment.
fn lines(bytes: &[u8], span: &Range<usize>) -> Vec<(String, Range<usize>)> {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(|line| match line.split_once(" #") {
            Some((value, _)) => value.trim(),
            None => line.trim(),
        })
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| (line.to_owned(), span.clone()))
        .collect()
}
