//! The messages of all warnings, as they stand in the code: the page lists each.
//!
//! `UPDATE_DOCS=1 cargo test` writes the list anew.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, iter};

use super::{PAGE, TURN};
use crate::docs::pages::{read, root};

const BEGIN: &str = "<!-- warnings -->\n";
const END: &str = "<!-- /warnings -->";

/// What calls that give a warning look like.
const CALLS: [&str; 3] = [".warning(", ".at(", ".within("];

#[test]
fn every_warning_of_the_code_stands_in_the_page() {
    let mut messages = BTreeSet::new();
    for (path, text) in sources(&root().join("src/config")) {
        for call in calls(&text) {
            let found = messages_of(&text, call);
            assert!(
                !found.is_empty(),
                "{path}: what does the warning at byte {call} say?"
            );
            messages.extend(found);
        }
    }
    assert!(messages.len() > 50, "only {} were found", messages.len());
    let list: String = messages.iter().map(|one| format!("- {one}\n")).collect();
    let _turn = TURN.lock().unwrap();
    let page = read(PAGE);
    let (before, rest) = page.split_once(BEGIN).expect("the list's beginning");
    let (written, after) = rest.split_once(END).expect("the list's end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let page = format!("{before}{BEGIN}{list}{END}{after}");
        return fs::write(root().join(PAGE), page).unwrap();
    }
    assert_eq!(written, list, "UPDATE_DOCS=1 cargo test writes it");
}

/// The files below a folder that are no tests.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push((
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            ));
        }
    }
    found
}

/// Where the calls are. Those of the functions that pass a message on are none.
fn calls(text: &str) -> Vec<usize> {
    let starts = CALLS.iter().flat_map(|call| {
        let found = text.match_indices(call);
        found.map(|(at, call)| at + call.len())
    });
    let passed_on = |at: &usize| {
        let line = text[..*at].rfind('\n').map_or(0, |line| line + 1);
        text[line..]
            .trim_start()
            .starts_with("self.out.warning(span, message)")
    };
    starts.filter(|at| !passed_on(at)).collect()
}

/// What a call says: the literal among its arguments, or those that `message` was made of.
fn messages_of(text: &str, call: usize) -> Vec<String> {
    let arguments = balanced(&text[call..]);
    let found = literals(arguments);
    if !found.is_empty() {
        return found;
    }
    if arguments.contains("wrong.message") {
        // Made for values that stand in several places.
        return vec!["`…` means all of `…`".to_owned()];
    }
    let before = &text[..call];
    let made = before.rfind("let message").map(|at| &before[at..]);
    made.map_or(Vec::new(), |made| {
        literals(made.split(";\n").next().unwrap())
    })
}

/// The text up to the bracket that closes what is open.
fn balanced(text: &str) -> &str {
    let mut depth = 1;
    let closes = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth == 0
    });
    &text[..closes.unwrap().0]
}

/// The strings in a piece of code, with `…` for what is filled in.
fn literals(code: &str) -> Vec<String> {
    let mut rest = code;
    iter::from_fn(|| {
        let (_, after) = rest.split_once('"')?;
        let end = after
            .match_indices('"')
            .find(|(at, _)| !after[..*at].ends_with('\\'))?
            .0;
        rest = &after[end + 1..];
        Some(shown(&after[..end]))
    })
    .collect()
}

fn shown(literal: &str) -> String {
    let literal = regex::Regex::new(r"\\\n\s*")
        .unwrap()
        .replace_all(literal, "");
    let literal = literal.replace("\\\"", "\"");
    let filled = regex::Regex::new(r"\{[a-z_]*\}").unwrap();
    filled.replace_all(&literal, "…").into_owned()
}
