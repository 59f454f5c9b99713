//! `lockgate import`, `lockgate completions` and `lockgate man`, as a user runs them.
//!
//! Each `tests/data/cloudflare/NAME.json` has its output in `NAME.toml` and what is said about it in
//! `NAME.txt`. `UPDATE_GOLDEN=1` writes both anew; `UPDATE_DOCS=1` does so with the example of
//! docs/import-cloudflare.md.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::docs::pages::{blocks_of, read, root};
use crate::harness::{Folder, Process, Running};

/// What rules need to be a whole file.
const LISTENER: &str = "\n[[listeners]]\naddress = \"127.0.0.1:0\"\n";

#[test]
fn every_file_is_converted_to_its_golden_output() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut failed = String::new();
    for json in files() {
        let ran = import(&json);
        assert!(ran.status.success(), "{}", stderr(&ran));
        for (got, extension) in [(stdout(&ran), "toml"), (stderr(&ran), "txt")] {
            let golden = json.with_extension(extension);
            if update {
                fs::write(&golden, &got).unwrap();
            }
            if fs::read_to_string(&golden).unwrap_or_default() != got {
                failed += &format!("--- not as {}\n{got}", golden.display());
            }
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
}

#[test]
fn every_output_loads() {
    for json in files() {
        let folder = Folder::new();
        let config = stdout(&import(&json)) + LISTENER;
        folder.write("gateway.toml", config);
        let checked = Process::output(&folder, &["check"]);
        let said = stdout(&checked) + &stderr(&checked);
        assert!(checked.status.success(), "{}: {said}", json.display());
    }
}

#[test]
fn every_note_is_in_the_output_and_on_standard_error() {
    for json in files() {
        let ran = import(&json);
        let (toml, said) = (stdout(&ran), stderr(&ran));
        let lines: Vec<&str> = said.lines().collect();
        let (sum, notes) = lines.split_last().unwrap();
        assert!(sum.contains(&format!(" {} note", notes.len())), "{sum}");
        let written = toml.lines().filter(|line| line.starts_with("# note: "));
        assert_eq!(written.count(), notes.len(), "{}", json.display());
        for line in notes {
            let (_, about) = line.split_once(": ").unwrap();
            let note = about.strip_prefix("rule \"").map_or(about, |rule| {
                let (_, note) = rule.split_once("\": ").unwrap();
                note
            });
            assert!(toml.contains(note), "{note} is not in\n{toml}");
        }
    }
}

#[test]
fn a_dash_reads_standard_input() {
    let json = data().join("by-ip.json");
    let named = stdout(&import(&json)).replace("by-ip.json", "stdin");
    let piped = piped(&fs::read_to_string(json).unwrap());
    assert!(piped.status.success());
    assert_eq!(stdout(&piped), named);
}

#[test]
fn endless_input_is_refused() {
    let folder = Folder::new();
    let most = 16 << 20;
    folder.write("large.json", vec![b' '; most + 1]);
    folder.write("allowed.json", vec![b' '; most]);
    let run = |file| Process::output(&folder, &["import", "cloudflare", file]);
    for file in ["large.json", "/dev/zero"] {
        let ran = run(file);
        assert_eq!(ran.status.code(), Some(1));
        let said = stderr(&ran);
        let wanted = "larger than 16 MiB, too large for an export of rules\n";
        assert!(said.ends_with(wanted), "{said}");
        assert_eq!(stdout(&ran), "");
    }
    let allowed = run("allowed.json");
    assert!(
        stderr(&allowed).contains("found nothing"),
        "{}",
        stderr(&allowed)
    );
}

#[test]
fn a_file_without_rules_is_refused_with_its_content_described() {
    for (json, message) in [
        ("", "stdin: found nothing; expected a ruleset"),
        ("{\n  \"é\": 1,\n}", "stdin:3:1: not JSON: trailing comma"),
        ("{\"é\": x}", "stdin:1:7: not JSON: expected value"),
        ("{\"rules\":", "stdin:1:9: not JSON: EOF"),
        ("7", "stdin: found a number; expected a ruleset"),
        ("[]", "stdin: found an empty array; expected"),
        ("[1]", "stdin: found an array that begins with a number"),
        (
            r#"[{"threshold": 5, "match": {}}]"#,
            "stdin: found an array that begins with an object with the members `match`, \
             `threshold`; expected",
        ),
        (
            r#"{"zone": 1}"#,
            "stdin: found an object with the members `zone`; expected",
        ),
        ("{}", "stdin: found an empty object; expected"),
        (
            r#"{"rules": "x"}"#,
            "stdin: `rules` is a string; expected an array",
        ),
        (
            r#"{"success": false, "result": null, "errors": [{"code": 10000, "message": "Authentication error"}]}"#,
            "stdin: found an API response with errors: Authentication error; expected",
        ),
        (
            r#"{"success": true, "result": "x", "errors": []}"#,
            "stdin: found a string; expected",
        ),
        (
            r#"{"name": "default", "phase": "http_ratelimit", "rules": []}"#,
            "stdin: found no rules in ruleset \"default\" (http_ratelimit)",
        ),
        (
            r#"{"result": [{"id": "a", "name": "one", "phase": "p"}, {"id": "b", "kind": "zone"}]}"#,
            "stdin: found no rules in ruleset \"one\" (p), ID a, ruleset b; the list of rulesets \
             does not include them",
        ),
        (
            r#"[{"rules": []}, {"action": "block"}]"#,
            "stdin: found rulesets and an object with the members `action`; expected",
        ),
    ] {
        let ran = piped(json);
        assert_eq!(ran.status.code(), Some(1), "{json}");
        assert_eq!(stdout(&ran), "", "{json}");
        assert!(
            stderr(&ran).starts_with(message),
            "{json}: {}",
            stderr(&ran)
        );
    }
    let ran = Process::output(&Folder::new(), &["import", "cloudflare", "gone.json"]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(stderr(&ran).starts_with("gone.json: cannot read: "));
}

#[test]
fn terraform_files_are_refused_with_the_way_to_fetch_the_ruleset() {
    let message = "Terraform files are not read; fetch the deployed ruleset from the API, as \
                   `lockgate help import-cloudflare` shows\n";
    let hcl = "# Limits.\nresource \"cloudflare_ruleset\" \"limits\" {\n  kind = \"zone\"\n}\n";
    for text in [
        hcl,
        r#"{"format_version": "1.0", "terraform_version": "1.9.0", "values": {"root_module": {}}}"#,
        r#"{"version": 4, "terraform_version": "1.9.0", "resources": []}"#,
        r#"{"resource": {"cloudflare_ruleset": {"limits": {"rules": []}}}}"#,
    ] {
        let ran = piped(text);
        assert_eq!(ran.status.code(), Some(1), "{text}");
        assert_eq!(stderr(&ran), format!("stdin: {message}"), "{text}");
    }
    let folder = Folder::new();
    folder.write("limits.tf", "locals {}\n");
    let ran = Process::output(&folder, &["import", "cloudflare", "limits.tf"]);
    assert_eq!(stderr(&ran), format!("limits.tf: {message}"));
    let page = Process::output(&folder, &["help", "import-cloudflare"]);
    assert!(page.status.success(), "{}", stderr(&page));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = Process::command();
    command.current_dir(data()).stdout(full);
    command.args(["import", "cloudflare", "by-ip.json"]);
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(stderr(&ran).starts_with("lockgate: cannot write to standard output: "));
}

#[test]
fn an_imported_rule_works() {
    let rules = stdout(&import(&data().join("custom-response.json")));
    let gateway = Running::with(&rules);
    let client = gateway.client().from("203.0.113.7");
    let answers = client.get("/search").times(4).0;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 200, 420]);
    assert_eq!(answers[3].text(), r#"{"error":"enhance your calm"}"#);
    let content_type = ("content-type".to_owned(), "application/json".to_owned());
    assert!(answers[3].headers.contains(&content_type));
    let other = gateway.client().from("203.0.113.8");
    assert_eq!(other.get("/search").times(1).0[0].status, 200);
}

#[test]
fn the_documented_example_matches_the_output() {
    const PAGE: &str = "docs/import-cloudflare.md";
    let block = |kind: &str| {
        let mut blocks = blocks_of(PAGE).into_iter();
        blocks.find(|block| block.kind == kind).expect(kind).text
    };
    let folder = Folder::new();
    folder.write("ruleset.json", block("json"));
    let ran = Process::output(&folder, &["import", "cloudflare", "ruleset.json"]);
    assert!(ran.status.success());
    for (kind, real) in [("toml", stdout(&ran)), ("text", stderr(&ran))] {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let fenced = |text: &str| format!("```{kind}\n{text}```\n");
            let page = read(PAGE).replace(&fenced(&block(kind)), &fenced(&real));
            fs::write(root().join(PAGE), page).unwrap();
        }
        assert_eq!(real, block(kind), "UPDATE_DOCS=1 cargo test writes it");
    }
}

#[test]
fn completions_and_the_man_page_list_every_command() {
    let folder = Folder::new();
    let help = stdout(&Process::output(&folder, &["--help"]));
    let commands = help.split_once("Commands:\n").unwrap().1;
    let commands = commands.split("\n\n").next().unwrap().lines();
    let commands: Vec<&str> = commands
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert!(commands.contains(&"import"), "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = Process::output(&folder, &["completions", shell]);
        assert!(ran.status.success(), "{shell}");
        for command in &commands {
            assert!(stdout(&ran).contains(command), "{shell}: {command}");
        }
    }
    let page = stdout(&Process::output(&folder, &["man"]));
    assert!(page.contains(".TH lockgate 1"), "{page}");
    for command in &commands {
        let heading = format!(".SH \"LOCKGATE {}\"\n", command.to_uppercase());
        assert!(page.contains(&heading), "{command}");
    }
    let ran = Process::output(&folder, &["completions", "dos"]);
    assert_eq!(ran.status.code(), Some(2));
}

fn data() -> PathBuf {
    root().join("tests/data/cloudflare")
}

fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(data()).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    files
}

fn import(json: &Path) -> Output {
    let mut command = Process::command();
    command.current_dir(data()).args(["import", "cloudflare"]);
    command.arg(json.file_name().unwrap()).output().unwrap()
}

fn piped(json: &str) -> Output {
    let mut child = Process::command()
        .args(["import", "cloudflare", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(json.as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap()
}

fn stdout(ran: &Output) -> String {
    String::from_utf8(ran.stdout.clone()).unwrap()
}

fn stderr(ran: &Output) -> String {
    String::from_utf8(ran.stderr.clone()).unwrap()
}
