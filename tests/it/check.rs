//! The warnings of `lockgate check`, as docs/check.md shows them.
//!
//! Each TOML block of the page is followed by what the command says about it. `UPDATE_DOCS=1 cargo
//! test` writes that anew.

mod messages;

use std::fs;
use std::sync::Mutex;

use crate::docs::pages::{Block, blocks_of, read, root};
use crate::harness::{Folder, Process};

const PAGE: &str = "docs/check.md";
/// Two tests write the page.
static TURN: Mutex<()> = Mutex::new(());

const LISTENER: &str = "\n[[listeners]]\naddress = \"127.0.0.1:0\"\n";

#[test]
fn every_warning_of_the_page_is_given() {
    let _turn = TURN.lock().unwrap();
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

#[test]
fn a_name_that_leads_nowhere_is_a_warning() {
    let folder = Folder::new();
    let upstream = "[[upstreams]]\nname = \"a\"\nservers = [\"localhost:9000\", \"no-such-name.invalid:80\"]\n\
                    [[routes]]\nupstream = \"a\"\n";
    folder.write("gateway.toml", format!("{upstream}{LISTENER}"));
    let output = Process::output(&folder, &["check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let expected = "gateway.toml:3:30: warning: cannot look up `no-such-name.invalid`: ";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.matches("warning:").count(), 1, "{text}");
}

#[test]
fn the_mistakes_of_all_files_come_in_one_go() {
    let folder = Folder::new();
    let main = "include = [\"rules.d/*.toml\"]\n[[listeners]]\naddress = \"127.0.0.1:x\"\n\
                [listeners.tls]\ncertificates = [{ cert = \"missing.pem\", key = \"missing.key\" }]\n";
    folder.write("gateway.toml", main);
    fs::create_dir(folder.path().join("rules.d")).unwrap();
    folder.write(
        "rules.d/a.toml",
        "[[rules]]\nname = \"a\nmitigate = 'ip.scr eq 1'\n",
    );
    folder.write(
        "rules.d/b.toml",
        "[[rules]]\nname = \"b\"\nmitigate = 'http.hots eq 1'\n",
    );
    let output = Process::output(&folder, &["check", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = said["diagnostics"].as_array().unwrap().iter();
    let places: Vec<String> = found
        .map(|one| format!("{}:{}", one["file"].as_str().unwrap(), one["line"]))
        .collect();
    let expected = [
        "gateway.toml:3",
        "gateway.toml:5",
        "gateway.toml:5",
        "rules.d/a.toml:2",
        "rules.d/a.toml:3",
        "rules.d/b.toml:3",
    ];
    assert_eq!(places, expected, "{said:#}");
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
