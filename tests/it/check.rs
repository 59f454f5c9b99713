//! The warnings of `lockgate check`, as docs/check.md shows them.
//!
//! Each TOML block of the page is followed by what the command says about it. `UPDATE_DOCS=1 cargo
//! test` writes that anew.

use std::fs;

use crate::docs::pages::{Block, blocks_of, read, root};
use crate::harness::{Folder, Process};

const PAGE: &str = "docs/check.md";
const LISTENER: &str = "\n[[listeners]]\naddress = \"127.0.0.1:0\"\n";

#[test]
fn every_warning_of_the_page_is_given() {
    let blocks = blocks_of(PAGE);
    let pairs: Vec<_> = blocks.chunks(2).collect();
    assert!(pairs.len() >= 12, "only {} examples", pairs.len());
    let mut page = read(PAGE);
    for pair in pairs {
        let [file, said] = pair else {
            panic!("{}: an example without its warnings", PAGE);
        };
        assert_eq!(
            (&*file.kind, &*said.kind),
            ("toml", "text"),
            "{}",
            file.line
        );
        let found = warnings(file);
        assert!(
            found.contains(": warning: "),
            "{PAGE}:{}: {found}",
            file.line
        );
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let shown = |text: &str| format!("```toml\n{}```\n\n```text\n{text}```\n", file.text);
            page = page.replace(&shown(&said.text), &shown(&found));
            continue;
        }
        assert_eq!(said.text, found, "{PAGE}:{}", said.line);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(PAGE), page).unwrap();
    }
}

/// What the command says about the file of a block. A warning is no failure.
fn warnings(block: &Block) -> String {
    let folder = Folder::new();
    folder.write("gateway.toml", format!("{}{LISTENER}", block.text));
    let output = Process::output(&folder, &["check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}:{}: {text}",
        block.file,
        block.line
    );
    text.replace("gateway.toml: ok\n", "")
}
