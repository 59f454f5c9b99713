//! Each `tests/data/config/NAME.toml` has its rendered diagnostics in `NAME.txt`, as does each
//! folder `tests/data/include/NAME` with a `gateway.toml` that includes others. The text for
//! `tests/data/check/NAME.toml` is the whole output of `lockgate check`, with real certificates.
//! `UPDATE_GOLDEN=1` rewrites the files.

use std::fs;
use std::path::{Path, PathBuf};

use super::fixtures;
use crate::config::{ConfigSource, Diagnostics, compile, load, read};

#[test]
fn every_file_has_its_golden_diagnostics() {
    let files = toml_files("config");
    assert!(files.len() >= 40, "only {} cases", files.len());
    compare(&files, rendered);
}

#[test]
fn every_error_in_an_included_file_names_the_file() {
    let folders = included();
    assert!(folders.len() >= 4, "only {} cases", folders.len());
    compare(&folders, |folder| whole(folder).0);
}

#[test]
fn check_reports_all_errors_at_once() {
    let folder = fixtures::folder();
    let files = toml_files("check");
    assert!(files.len() >= 4, "only {} cases", files.len());
    compare(&files, |file| {
        let copy = folder.join(name(file));
        fs::copy(file, &copy).unwrap();
        checked(&copy, &folder).0
    });
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn included_files_are_sorted_by_name() {
    let folders = included();
    let folder = folders.iter().find(|folder| name(folder) == "order");
    let (rendered, rules) = whole(folder.unwrap());
    assert_eq!(rules, ["first", "second", "third"], "{rendered}");
    assert_eq!(rendered, "");
}

fn compare(cases: &[PathBuf], render: impl Fn(&Path) -> String) {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut failed = Vec::new();
    for case in cases {
        let golden = case.with_extension("txt");
        let got = render(case);
        if update {
            fs::write(&golden, &got).unwrap();
        }
        let want = fs::read_to_string(&golden).unwrap_or_default();
        if got != want {
            failed.push(format!("{}\n{}", case.display(), diff(&want, &got)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Returns the diagnostics of a whole configuration, and its rules in order.
fn whole(folder: &Path) -> (String, Vec<String>) {
    checked(&folder.join("gateway.toml"), folder)
}

fn checked(file: &Path, folder: &Path) -> (String, Vec<String>) {
    let mut diagnostics = Diagnostics::new();
    let (source, file) = load(file, &mut diagnostics);
    let mut rules = Vec::new();
    if let Some(file) = file {
        rules = file.rules.iter().map(|r| r.name.value.clone()).collect();
        compile(&file, &source, fixtures::NOW, None, &mut diagnostics);
    }
    let rendered = diagnostics.render(&source, false);
    (
        rendered.replace(&format!("{}/", folder.display()), ""),
        rules,
    )
}

fn included() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/include");
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[test]
fn a_valid_file_has_no_diagnostics() {
    let clean = toml_files("config")
        .into_iter()
        .filter(|f| name(f).starts_with("ok_"));
    for file in clean {
        assert_eq!(rendered(&file), "", "{}", file.display());
    }
}

fn rendered(toml: &Path) -> String {
    let text = fs::read_to_string(toml).unwrap();
    let source = ConfigSource::new(name(toml), text);
    let mut diagnostics = Diagnostics::new();
    read(&source, &mut diagnostics);
    diagnostics.render(&source, false)
}

fn toml_files(kind: &str) -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folder = data.join(kind);
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

/// Returns missing and new lines, which is enough to see what changed.
fn diff(want: &str, got: &str) -> String {
    let missing = want.lines().filter(|l| !got.lines().any(|g| g == *l));
    let new = got.lines().filter(|l| !want.lines().any(|w| w == *l));
    let missing = missing.map(|l| format!("- {l}"));
    let lines: Vec<_> = missing.chain(new.map(|l| format!("+ {l}"))).collect();
    lines.join("\n")
}
