//! The documents as text: their fenced blocks, tables and sections. Knows nothing of the gateway.

use std::fs;
use std::path::Path;

/// A fenced block of a document.
pub struct Block {
    /// The document, from the root of the repository.
    pub file: String,
    /// The line of its first line.
    pub line: usize,
    /// What stands behind the fence.
    pub kind: String,
    /// What is in it.
    pub text: String,
}

// === impl Block ===

impl Block {
    /// Its lines that are not comments, with their places.
    pub fn lines(&self) -> impl Iterator<Item = (String, &str)> {
        let lines = self.text.lines().enumerate();
        lines
            .map(|(n, line)| (format!("{}:{}", self.file, self.line + n), line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    }
}

/// All fenced blocks of this kind in all documents.
pub fn blocks(kind: &str) -> Vec<Block> {
    let files = documents().into_iter();
    let all = files.flat_map(|file| blocks_of(&file));
    all.filter(|block| block.kind == kind).collect()
}

/// The fenced blocks of a document.
pub fn blocks_of(file: &str) -> Vec<Block> {
    let text = read(file);
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => {
                open = Some(Block {
                    file: file.to_owned(),
                    line: number + 2,
                    kind: kind.to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{file} has a fence that is not closed");
    found
}

pub fn documents() -> Vec<String> {
    let mut found: Vec<String> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(str::to_owned)
        .to_vec();
    found.push("deploy/README.md".to_owned());
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            found.push(format!("docs/{name}"));
        }
    }
    found.sort();
    found
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// The reference: the first TOML block of its section.
pub fn reference() -> Block {
    let blocks = blocks_of("docs/configuration.md");
    let mut all = blocks.into_iter().filter(|b| b.kind == "toml");
    all.find(|b| b.text.starts_with("# The reference"))
        .expect("the reference")
}

/// A row of the tables of keys in docs/configuration.md.
pub struct Row {
    /// The section that it stands below.
    pub section: String,
    /// The key; one within another's value has a dot.
    pub key: String,
    /// The default as written: `required`, `none`, a value between backticks.
    pub default: String,
    /// What it means.
    pub meaning: String,
}

// === impl Row ===

impl Row {
    /// The dotted path of the key.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }

    /// The default if it is a value, else nothing.
    pub fn value(&self) -> String {
        let value = self.default.strip_prefix('`').unwrap_or("");
        value.strip_suffix('`').unwrap_or("").to_owned()
    }
}

/// All rows of these tables.
pub fn key_rows() -> Vec<Row> {
    let text = read("docs/configuration.md");
    let mut found = Vec::new();
    let mut heading = None;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.strip_prefix('`').and_then(|t| t.split('`').next());
        }
        let (Some(section), true) = (heading, line.starts_with("| `")) else {
            continue;
        };
        let cells: Vec<&str> = line.split(" | ").collect();
        found.push(Row {
            section: section.trim_matches(['[', ']']).to_owned(),
            key: ticked(cells[0]).next().unwrap().to_owned(),
            default: cells[1].to_owned(),
            meaning: cells[2].trim_end_matches(" |").to_owned(),
        });
    }
    found
}

/// `section.key` and default of each row whose key is not within another's value.
pub fn key_tables() -> Vec<(String, String)> {
    let rows = key_rows().into_iter().filter(|row| !row.key.contains('.'));
    rows.map(|row| (row.path(), row.value())).collect()
}

/// `section.key` and value of each line of the reference, those in comments included.
pub fn keys_of(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    // What stands before all sections has its row in the table of sections.
    let lines = text.lines().skip_while(|line| !line.starts_with('['));
    for line in lines {
        let line = line.strip_prefix("# ").unwrap_or(line);
        if line.starts_with('[') {
            let name = line.split(['#', ' ']).next().unwrap();
            section = name.trim_matches(['[', ']']).to_owned();
            if section.starts_with("responses.") {
                section = "responses.NAME".to_owned();
            }
        } else if let (true, Some((key, value))) = (
            !["lists", "expressions"].contains(&&*section),
            line.split_once(" = "),
        ) {
            let key = key.trim();
            if !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                let value = value.split("  #").next().unwrap().trim();
                found.push((format!("{section}.{key}"), value.to_owned()));
            }
        }
    }
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

/// From a heading to the next of its kind.
pub fn section<'t>(text: &'t str, heading: &str) -> &'t str {
    let (_, rest) = text.split_once(&format!("\n{heading}\n")).expect(heading);
    rest.split("\n## ").next().unwrap()
}

/// The rows of a table, without its head.
pub fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.starts_with("| `"))
}

/// What stands between backticks.
pub fn ticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
