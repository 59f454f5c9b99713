//! `[lists]`: inline values, or values from a file. The rule that reads a list determines their type.

use super::CompileContext;
use crate::config::Spanned;
use crate::config::file::{self, ListItem, ListItems};
use crate::config::scalar::warn_of_host_bits;
use crate::expr::{ListEntry, NamedList, NamedLists};

/// Some editors write it at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Builds all lists. An unreadable list is empty, so that rules that read it get no further errors.
pub fn lists(written: &[file::ListSettings], cx: &mut CompileContext<'_>) -> NamedLists {
    let mut lists = NamedLists::default();
    for list in written {
        let built = match &list.items {
            ListItems::Inline(items) => inline(items, cx),
            ListItems::File(path) => from_file(path, cx),
        };
        let name = list.name.value.as_str();
        // A response may keep the previous snapshot alive for hours, so unchanged lists are shared with it.
        let before = cx
            .previous
            .and_then(|snapshot| snapshot.settings.lists.get(name));
        lists.insert(
            name,
            match before {
                Some(before) => built.or_same(before),
                None => built,
            },
        );
    }
    lists
}

fn inline(items: &[Spanned<ListItem>], cx: &mut CompileContext<'_>) -> NamedList {
    for item in items {
        if let ListItem::Text(text) = &item.value
            && let Ok(network) = text.parse()
        {
            warn_of_host_bits(network, &item.span, cx.diagnostics);
        }
    }
    let entry = |item: &Spanned<ListItem>| ListEntry {
        text: match &item.value {
            ListItem::Text(text) => text.as_str().into(),
            ListItem::Integer(integer) => integer.to_string().into(),
        },
        line: number(cx.source.position(item.span.start).line),
    };
    let start = items.first().map_or(0, |item| item.span.start);
    let file = cx.source.part(start).path;
    NamedList::from_file(file, items.iter().map(entry).collect())
}

fn from_file(path: &Spanned<std::path::PathBuf>, cx: &mut CompileContext<'_>) -> NamedList {
    let name = path.value.display().to_string();
    let bytes = cx.read(&path.value, &path.span).unwrap_or_default();
    let entries = entries(&bytes).unwrap_or_else(|line| {
        cx.diagnostics
            .error(path.span.clone(), format!("{name}:{line}: not UTF-8"))
            .help("save the file as UTF-8");
        Vec::new()
    });
    for entry in &entries {
        if let Ok(network) = entry.text.parse()
            && let Some(warning) = warn_of_host_bits(network, &path.span, cx.diagnostics)
        {
            let position = format!("the entry is in {name}:{}", entry.line);
            warning.help.insert(0, position);
            // One warning is enough to show how the other values are written.
            break;
        }
    }
    NamedList::from_file(&name, entries)
}

/// Splits into one trimmed value per line. The error is the number of the line that is not UTF-8.
fn entries(bytes: &[u8]) -> Result<Vec<ListEntry>, usize> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let mut entries = Vec::new();
    for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let text = value(std::str::from_utf8(text).map_err(|_| line)?);
        if !text.is_empty() {
            entries.push(ListEntry {
                text: text.into(),
                line: number(line),
            });
        }
    }
    Ok(entries)
}

/// Returns the text before a `#` that starts the line or follows a space.
fn value(line: &str) -> &str {
    let mut before = ' ';
    let comment = line.char_indices().find(|(_, c)| {
        let begins = *c == '#' && before.is_whitespace();
        before = *c;
        begins
    });
    let end = comment.map_or(line.len(), |(at, _)| at);
    line.get(..end).unwrap_or_default().trim()
}

fn number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::entries;

    fn values(bytes: &[u8]) -> Vec<(String, u32)> {
        let entries = entries(bytes).unwrap().into_iter();
        entries
            .map(|entry| (entry.text.into(), entry.line))
            .collect()
    }

    #[test]
    fn a_line_is_a_value() {
        let text =
            "\u{feff}# scanners\r\nsqlmap\r\n\n  \t\n  Mozilla/5.0 (X11)\t# old\nC#\n#\na #b\u{a0}";
        let expected = [("sqlmap", 2), ("Mozilla/5.0 (X11)", 5), ("C#", 6), ("a", 8)];
        let expected = expected.map(|(text, line)| (text.to_owned(), line));
        assert_eq!(values(text.as_bytes()), expected);
        assert_eq!(values(b""), []);
        assert_eq!(values(b"\n# nothing\n"), []);
    }

    #[test]
    fn invalid_utf8_is_reported_with_its_line() {
        assert_eq!(entries(b"one\ntw\xffo\nthree").unwrap_err(), 2);
        assert_eq!(entries(b"\xff").unwrap_err(), 1);
    }
}
