//! Each `tests/data/config/NAME.toml` has its rendered mistakes in `NAME.txt`.
//! `UPDATE_GOLDEN=1` writes them anew.

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::{Diagnostics, Source, read};

#[test]
fn every_file_is_answered_as_its_golden_text() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut failed = Vec::new();
    let files = toml_files();
    assert!(files.len() >= 40, "only {} cases", files.len());
    for toml in files {
        let golden = toml.with_extension("txt");
        let got = rendered(&toml);
        if update {
            fs::write(&golden, &got).unwrap();
        }
        let want = fs::read_to_string(&golden).unwrap_or_default();
        if got != want {
            failed.push(format!("{}\n{}", toml.display(), diff(&want, &got)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_file_without_mistakes_has_an_empty_golden_text() {
    let clean = toml_files()
        .into_iter()
        .filter(|f| name(f).starts_with("ok_"));
    for file in clean {
        assert_eq!(rendered(&file), "", "{}", file.display());
    }
}

fn rendered(toml: &Path) -> String {
    let text = fs::read_to_string(toml).unwrap();
    let source = Source::new(name(toml), text);
    let mut diagnostics = Diagnostics::new();
    read(&source, &mut diagnostics);
    diagnostics.render(&source, false)
}

fn toml_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/config");
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Lines that are missing or new. Good enough to see what changed.
fn diff(want: &str, got: &str) -> String {
    let missing = want.lines().filter(|l| !got.lines().any(|g| g == *l));
    let new = got.lines().filter(|l| !want.lines().any(|w| w == *l));
    let missing = missing.map(|l| format!("- {l}"));
    let lines: Vec<_> = missing.chain(new.map(|l| format!("+ {l}"))).collect();
    lines.join("\n")
}
