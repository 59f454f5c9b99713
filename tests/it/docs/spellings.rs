//! The tables of spellings in docs/keys.md: each row is what the code sees, and what somebody reads
//! differently is refused by the rules that stand below them.

use std::ops::ControlFlow;

use http::Request;
use http::request::Parts;
use lockgate::expr::{self, FieldFacts, NamedLists, Predicate};
use lockgate::facts::RequestFacts;

use super::env;
use super::pages::{blocks_of, read, section, ticked};
use crate::fuzz::checks::sample;

/// A row of either table.
struct Row {
    query: bool,
    spelling: Vec<u8>,
    /// Names and values, one behind the other.
    seen: Vec<Vec<u8>>,
    differs: String,
}

#[test]
fn every_spelling_is_read_as_documented() {
    for row in all() {
        let mut seen = None;
        sample::plain(&row.request(), &mut |facts| seen = Some(row.ask(facts)));
        let shown = String::from_utf8_lossy(&row.spelling);
        assert_eq!(seen.as_ref(), Some(&row.seen), "{shown}");
    }
}

#[test]
fn the_rules_refuse_spellings_that_servers_read_differently() {
    let rules = rules();
    for row in all() {
        let mut refused = false;
        sample::plain(&row.request(), &mut |facts| {
            refused = rules.iter().any(|rule| rule.test(facts));
        });
        let shown = String::from_utf8_lossy(&row.spelling);
        assert!(refused || row.differs.starts_with("none"), "{shown}");
    }
}

#[test]
fn the_rules_admit_requests_of_a_browser() {
    let rules = rules();
    let row = |query, spelling: &str| Row {
        query,
        spelling: spelling.into(),
        seen: Vec::new(),
        differs: String::new(),
    };
    for row in [
        row(false, "session=a1-B.c"),
        row(false, "_ga=GA1.2.3; session=abc; theme=%7B%22a%22%3A1%7D"),
        row(false, "theme=dark"),
        row(true, "user=anna&filter%5Bname%5D=x%20y"),
        row(true, "q=100%&user=%C3%A4"),
        row(true, ""),
    ] {
        sample::plain(&row.request(), &mut |facts| {
            let shown = String::from_utf8_lossy(&row.spelling);
            assert!(!rules.iter().any(|rule| rule.test(facts)), "{shown}");
        });
    }
}

// === impl Row ===

impl Row {
    fn request(&self) -> Parts {
        let builder = Request::builder().header("host", "shop.example");
        let builder = match self.query {
            true => builder.uri([b"/?", &self.spelling[..]].concat().as_slice()),
            false => builder.uri("/").header("cookie", &self.spelling[..]),
        };
        builder.body(()).unwrap().into_parts().0
    }

    /// Every name with the values that a rule gets for it, in the order of the names.
    fn ask(&self, facts: &RequestFacts<'_>) -> Vec<Vec<u8>> {
        let map = match self.query {
            true => sample::field("http.request.uri.args"),
            false => sample::field("http.request.cookies"),
        };
        let mut names: Vec<&[u8]> = self.seen.iter().step_by(2).map(|name| &name[..]).collect();
        names.dedup();
        let mut found = Vec::new();
        for name in names {
            facts.each(map, Some(name), &mut |value| {
                found.extend([name.to_vec(), value.to_vec()]);
                ControlFlow::Continue(())
            });
        }
        let mut all = 0;
        facts.each(map, None, &mut |_| {
            all += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(all * 2, found.len(), "names that are not in the row");
        found
    }
}

fn all() -> Vec<Row> {
    let text = read("docs/keys.md");
    let mut query = None;
    let mut found = Vec::new();
    for line in section(&text, "## How cookies and arguments are read").lines() {
        let line = line.strip_prefix("| ").and_then(|l| l.strip_suffix(" |"));
        let cells: Vec<&str> = line.map_or(Vec::new(), |line| line.split(" | ").collect());
        match (cells.as_slice(), query) {
            (["`Cookie`", "what a rule reads", _], _) => query = Some(false),
            (["query", "what a rule reads", _], _) => query = Some(true),
            ([spelling, seen, differs], Some(query)) if spelling.starts_with('`') => {
                found.push(Row {
                    query,
                    spelling: bytes(ticked(spelling).next().unwrap()),
                    seen: ticked(&seen.replace("(empty)", "``")).map(bytes).collect(),
                    differs: (*differs).to_owned(),
                });
            }
            _ => {}
        }
    }
    assert!(found.len() > 35, "only {} rows were found", found.len());
    found
}

/// `\xHH` is a byte, all else itself.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).unwrap());
        bytes.extend(rest.bytes());
    }
    bytes
}

/// The two rules that the document gives.
fn rules() -> Vec<Predicate> {
    let blocks = blocks_of("docs/keys.md");
    let block = blocks
        .iter()
        .find(|block| block.text.contains("one-session"));
    let file: toml::Table = block.unwrap().text.parse().unwrap();
    let rules = file["rules"].as_array().unwrap();
    let tests = rules.iter().map(|rule| rule["mitigate"].as_str().unwrap());
    let tests: Vec<Predicate> = tests
        .map(|test| expr::predicate(test, &env(&NamedLists::new())).unwrap())
        .collect();
    assert_eq!(tests.len(), 2);
    tests
}
