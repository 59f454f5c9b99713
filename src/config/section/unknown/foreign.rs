//! What users of other gateways call things. A name here is no key of ours in its section: it is
//! still an error, but one that says what to write.

/// Sections by their paths, and below each the words that people write there (those of nginx,
/// HAProxy, Caddy, Traefik and Envoy, and what comes to mind) with what to write instead.
const TABLE: &str = include_str!("foreign.txt");

/// What to write instead of `name` in the section at `path`.
pub(in crate::config::section) fn meant(path: &str, name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace('-', "_");
    let mut rows = rows().filter(|row| row.section == path);
    let row = rows.find(|row| row.words.split(' ').any(|word| word == name));
    row.map(|row| row.help)
}

/// A line of the table.
struct Row {
    section: &'static str,
    words: &'static str,
    help: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    let mut section = "";
    TABLE.lines().filter_map(move |line| {
        let header = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        section = header.unwrap_or(section);
        let (words, help) = line.split_once(" | ")?;
        Some(Row {
            section,
            words,
            help,
        })
    })
}

#[cfg(test)]
mod tests;
