//! Names of settings and values in other gateways. Such a name is an error with a suggestion.

/// Sections by path, each with the words of nginx, HAProxy, Caddy, Traefik, Envoy and Cloudflare
/// and their replacements. The last section, `=`, lists values instead of settings.
const TABLE: &str = include_str!("vocabulary.txt");

/// The section of the table with values.
const VALUES: &str = "=";

/// A line of the table.
struct Row {
    section: &'static str,
    words: &'static str,
    ours: &'static str,
}

/// Returns help for a setting `name` of another gateway in the section at `path`. `None` if it is unknown.
pub(super) fn foreign_setting(path: &str, name: &str) -> Option<&'static str> {
    let mut rows = rows().filter(|row| row.section == path);
    rows.find(|row| row.has(name)).map(|row| row.ours)
}

/// Returns the value of `known` that another gateway calls `written`. If a word has two meanings,
/// only the values in `known` are considered.
pub(super) fn foreign_value(written: &str, known: &[&'static str]) -> Option<&'static str> {
    let mut rows = rows().filter(|row| row.section == VALUES && known.contains(&row.ours));
    rows.find(|row| row.has(written)).map(|row| row.ours)
}

fn rows() -> impl Iterator<Item = Row> {
    let mut section = "";
    TABLE.lines().filter_map(move |line| {
        let header = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        section = header.unwrap_or(section);
        let (words, ours) = line.split_once(" | ")?;
        Some(Row {
            section,
            words,
            ours,
        })
    })
}

// === impl Row ===

impl Row {
    /// Returns whether the row lists a word, ignoring case and treating `-` and spaces as `_`.
    fn has(&self, written: &str) -> bool {
        let written = written.to_lowercase().replace(['-', ' '], "_");
        self.words.split(' ').any(|word| word == written)
    }
}

#[cfg(test)]
mod tests;
