//! The warnings of `lockgate check`, as docs/check.md shows them.
//!
//! Each TOML block of the page is followed by what the command says about it. `UPDATE_DOCS=1 cargo
//! test` writes that anew.

use std::fs;
use std::sync::Mutex;

use lockgate::config::LintCode;

use crate::docs::pages::{Block, blocks_of, read, root};
use crate::harness::{Folder, Process};

const PAGE: &str = "docs/check.md";
const BEGIN: &str = "<!-- warnings -->\n";
const END: &str = "<!-- /warnings -->";
/// Two tests write the page.
static TURN: Mutex<()> = Mutex::new(());

const LISTENER: &str = "\n[[listeners]]\naddress = \"127.0.0.1:0\"\n";

#[test]
fn every_warning_in_the_documentation_is_reported() {
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
        let silent = found == "gateway.toml: ok\n";
        assert!(
            found.contains(": warning[") || silent && found == said.text,
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
fn a_name_that_does_not_resolve_is_a_warning() {
    let folder = Folder::new();
    let upstream = "[[upstreams]]\nname = \"a\"\nservers = [\"localhost:9000\", \"no-such-name.invalid:80\"]\n\
                    [[routes]]\nupstream = \"a\"\n";
    folder.write("gateway.toml", format!("{upstream}{LISTENER}"));
    let output = Process::output(&folder, &["check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let expected =
        "gateway.toml:3:30: warning[unresolved-server]: cannot resolve `no-such-name.invalid`: ";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.matches("warning[").count(), 1, "{text}");
}

#[test]
fn the_documentation_lists_exactly_the_warning_codes_of_the_code() {
    let _turn = TURN.lock().unwrap();
    let rows = LintCode::TABLE.iter();
    let rows = rows.map(|(_, code, meaning)| format!("| `{code}` | {meaning} |\n"));
    let table = format!(
        "| code | meaning |\n| --- | --- |\n{}",
        rows.collect::<String>()
    );
    let page = read(PAGE);
    let (before, rest) = page.split_once(BEGIN).expect("the table's beginning");
    let (written, after) = rest.split_once(END).expect("the table's end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let page = format!("{before}{BEGIN}{table}{END}{after}");
        return fs::write(root().join(PAGE), page).unwrap();
    }
    assert_eq!(written, table, "UPDATE_DOCS=1 cargo test writes it");
}

/// A listener with one warning about it.
const SUSPICIOUS: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n";

/// The exit code and the output of `check` with these arguments.
fn check(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Process::output(folder, &[&["check"], arguments].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text + &errors)
}

#[test]
fn warnings_can_be_denied_or_allowed() {
    let folder = Folder::new();
    folder.write("gateway.toml", SUSPICIOUS);
    let warning = "gateway.toml:3:1: warning[development-certificate]: ";
    let (code, text) = check(&folder, &[]);
    assert!(code == Some(0) && text.starts_with(warning), "{text}");
    let (code, text) = check(&folder, &["--deny-warnings"]);
    assert!(code == Some(1) && text.starts_with(warning), "{text}");
    let allow = ["--allow", "unused", "--allow", "development-certificate"];
    let denied = [&allow[..], &["--deny-warnings"]].concat();
    assert_eq!(
        check(&folder, &denied),
        (Some(0), "gateway.toml: ok\n".to_owned())
    );
    let comment = "[listeners.tls]\n";
    let allowed = format!("# lockgate: allow development-certificate\n{comment}");
    folder.write("gateway.toml", SUSPICIOUS.replace(comment, &allowed));
    assert_eq!(check(&folder, &["--deny-warnings"]).0, Some(0));
}

#[test]
fn a_warning_in_json_has_its_code() {
    let folder = Folder::new();
    folder.write("gateway.toml", SUSPICIOUS);
    let (_, text) = check(&folder, &["--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["diagnostics"][0]["code"], "development-certificate");
}

#[test]
fn an_unknown_code_is_refused() {
    let (code, text) = check(&Folder::new(), &["--allow", "shard-key"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("did you mean `shared-key`?"), "{text}");
}

#[test]
fn the_errors_of_all_files_are_reported_together() {
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
    match text.strip_suffix("gateway.toml: ok\n") {
        Some("") | None => text,
        Some(warnings) => warnings.to_owned(),
    }
}
