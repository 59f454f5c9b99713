//! What each key means, in the words of docs/configuration.md: its tables are the one place where
//! that stands.

use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/configuration.md");

/// The heading of the table of sections, where keys outside of all sections stand too.
const SECTIONS: &str = "Sections";

/// The meaning of each key, by its dotted path.
pub struct SettingDocs {
    by_path: BTreeMap<String, &'static str>,
}

// === impl SettingDocs ===

impl SettingDocs {
    /// Reads the tables: of the sections, whose rows begin with `[name]` or `[[name]]`, and of the
    /// keys of each section, which stand below its heading.
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
            let path = match name.starts_with('[') || section == SECTIONS {
                true => bare(name),
                false => format!("{section}.{name}"),
            };
            by_path.insert(path, note);
        }
        Self { by_path }
    }

    /// What the key at `path` means.
    pub fn of(&self, path: &str) -> Option<&'static str> {
        self.by_path.get(path).copied()
    }

    /// What another name of the key `ours` in the section at `path` means.
    pub fn alias(&self, path: &str, ours: &str) -> String {
        let note = self.of(&format!("{path}.{ours}")).unwrap_or_default();
        format!("Cloudflare's name of `{ours}`: {note}")
    }
}

/// The name in the first cell of a row, and its last cell.
fn row(line: &'static str) -> Option<(&'static str, &'static str)> {
    let cells = line.strip_prefix("| `")?.strip_suffix(" |")?;
    let (name, _) = cells.split_once('`')?;
    let (_, note) = cells.rsplit_once(" | ")?;
    Some((name, note.trim())).filter(|(_, note)| !note.is_empty())
}

/// The path in a heading: `` `[[name]]` `` and the like.
fn bare(heading: &str) -> String {
    heading.trim_matches(['`', '[', ']']).to_owned()
}
