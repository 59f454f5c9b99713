//! Links between the documents: every anchor is a heading, and the index links to every page.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::pages::{documents, read};

const INDEX: &str = "docs/README.md";

#[test]
fn every_anchor_is_a_heading() {
    let mut wrong = Vec::new();
    for file in documents() {
        let text = read(&file);
        for target in targets(&text) {
            let Some((path, anchor)) = target.split_once('#') else {
                continue;
            };
            let page = page(&file, path);
            if page.ends_with(".md") && !anchors(&read(&page)).contains(anchor) {
                wrong.push(format!("{file}: {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "no such heading:\n{}", wrong.join("\n"));
}

#[test]
fn the_index_links_to_every_page() {
    let text = read(INDEX);
    let linked: BTreeSet<String> = targets(&text)
        .map(|target| page(INDEX, target.split('#').next().unwrap()))
        .collect();
    for file in documents().iter().filter(|file| file.starts_with("docs/")) {
        assert!(file == INDEX || linked.contains(file), "{file}");
    }
}

/// The targets of the links to other documents and to headings.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.match_indices("](");
    let targets = links.map(|(at, _)| text[at + 2..].split(')').next().unwrap());
    targets.filter(|target| !target.contains("://"))
}

/// The document that a link in `file` leads to, from the root of the repository.
fn page(file: &str, path: &str) -> String {
    if path.is_empty() {
        return file.to_owned();
    }
    let mut page = PathBuf::from(file);
    page.pop();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => drop(page.pop()),
            other => page.push(other),
        }
    }
    page.display().to_string()
}

/// The anchors of the headings of a document, as GitHub forms them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        in_block ^= line.starts_with("```");
        if !in_block && line.starts_with('#') {
            found.insert(anchor(line.trim_start_matches('#').trim()));
        }
    }
    found
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    });
    kept.flat_map(char::to_lowercase).collect()
}
