//! What users of other gateways call settings and values. Such a name is an error here, but one that
//! says what to write.

/// Sections by their paths, and below each the words of nginx, HAProxy, Caddy, Traefik, Envoy and
/// Cloudflare with what to write instead. The last section, `=`, lists values instead of settings.
const TABLE: &str = include_str!("vocabulary.txt");

/// The section of the table with values.
const VALUES: &str = "=";

/// A line of the table.
struct Row {
    section: &'static str,
    words: &'static str,
    ours: &'static str,
}

/// Help for a setting `name` of another gateway in the section at `path`.
pub(super) fn foreign_setting(path: &str, name: &str) -> Option<&'static str> {
    let mut rows = rows().filter(|row| row.section == path);
    rows.find(|row| row.has(name)).map(|row| row.ours)
}

/// The value of `known` that another gateway calls `written`. The same word may mean two of our
/// values; only those that can be chosen count.
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
    /// Whether the row lists a word, in any case and with `-` for `_`.
    fn has(&self, written: &str) -> bool {
        let written = written.to_lowercase().replace(['-', ' '], "_");
        self.words.split(' ').any(|word| word == written)
    }
}

#[cfg(test)]
mod tests;
