//! The description of each setting, read from the tables in docs/configuration.md, its only source.

use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/configuration.md");

/// The heading of the table of sections, which also lists settings outside of all sections.
const SECTIONS: &str = "Sections";

/// The description of each setting, by dotted path.
pub struct SettingDocs {
    by_path: BTreeMap<String, &'static str>,
}

// === impl SettingDocs ===

impl SettingDocs {
    /// Parses the tables: the table of sections, with rows for `[name]` or `[[name]]`, and the
    /// table of settings below each section's heading.
    pub fn read() -> Self {
        let mut by_path = BTreeMap::new();
        let mut section = String::new();
        for line in PAGE.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                section = bare(heading);
            }
            let Some((name, note)) = row(line) else {
                continue;
            };
            let path = if name.starts_with('[') || section == SECTIONS {
                bare(name)
            } else {
                format!("{section}.{name}")
            };
            by_path.insert(path, note);
        }
        Self { by_path }
    }

    /// Returns the description of the setting at `path`. `None` if it has none.
    pub fn of(&self, path: &str) -> Option<&'static str> {
        self.by_path.get(path).copied()
    }

    /// Returns the description of an alias of the setting `ours` in the section at `path`.
    pub fn alias(&self, path: &str, ours: &str) -> String {
        let note = self.of(&format!("{path}.{ours}")).unwrap_or_default();
        format!("Cloudflare's name of `{ours}`: {note}")
    }
}

/// Returns the name in the first cell of a row, and the last cell.
fn row(line: &'static str) -> Option<(&'static str, &'static str)> {
    let cells = line.strip_prefix("| `")?.strip_suffix(" |")?;
    let (name, _) = cells.split_once('`')?;
    let (_, note) = cells.rsplit_once(" | ")?;
    Some((name, note.trim())).filter(|(_, note)| !note.is_empty())
}

/// Returns the path in a heading such as `` `[[name]]` ``.
fn bare(heading: &str) -> String {
    heading.trim_matches(['`', '[', ']']).to_owned()
}
