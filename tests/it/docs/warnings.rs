//! The rules that readers copy give no warning that their page does not explain.

use super::pages::{Block, blocks_of};
use super::{fixtures, whole};
use crate::harness::{Folder, Process};

/// The pages with rules to copy.
const PAGES: [&str; 3] = ["docs/guide.md", "docs/rules.md", "docs/cookbook.md"];

/// Where the fields of the examples come from.
const SOURCES: &str = "\n[[listeners]]\naddress = \"127.0.0.1:1\"\n[listeners.tls]\n";
const NETWORK: &str = "\n[geo.overrides]\n\"203.0.113.0/24\" = { asn = 64500, country = \"ZZ\" }\n";

/// Warnings about the machine and about what surrounds an example; rules.md explains the last.
const ALLOWED: [&str; 6] = [
    "development-certificate",
    "cookies-no-secret-file",
    "unresolved-server",
    "unreachable-route",
    "unused",
    "ignored-key-part",
];

#[test]
fn the_rules_to_copy_give_no_warnings() {
    let folder = fixtures();
    let blocks: Vec<Block> = PAGES.iter().copied().flat_map(blocks_of).collect();
    let rules = blocks.iter().filter(|block| {
        let toml = block.kind == "toml";
        toml && block.text.contains("[[rules]]")
    });
    let (count, wrong) = rules.fold((0, String::new()), |(count, wrong), block| {
        (count + 1, wrong + &warnings(block, &folder))
    });
    assert!(count > 30, "only {count} examples were found");
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// What `check` prints about an example, with its place; empty: nothing.
fn warnings(block: &Block, folder: &Folder) -> String {
    let mut text = whole(&block.text) + SOURCES;
    if !text.contains("[geo") {
        text.push_str(NETWORK);
    }
    folder.write("gateway.toml", text);
    let allowed = ALLOWED.iter().flat_map(|code| ["--allow", code]);
    let arguments: Vec<&str> = ["check", "--deny-warnings"]
        .into_iter()
        .chain(allowed)
        .collect();
    let output = Process::output(folder, &arguments);
    if output.status.success() {
        return String::new();
    }
    let printed = [output.stdout, output.stderr].concat();
    format!(
        "{}:{}\n{}",
        block.file,
        block.line,
        String::from_utf8_lossy(&printed)
    )
}
