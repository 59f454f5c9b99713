//! Names of rules and responses: `[A-Za-z0-9_-]{1,64}`, each only once.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::draft::FORBIDDEN;

const LONGEST: usize = 64;

/// Names that are taken, with the last number put behind each.
type Taken = HashMap<String, usize>;

/// The names given so far.
#[derive(Default)]
pub struct Names {
    rules: Taken,
    responses: Taken,
    count: usize,
}

// === impl Names ===

impl Names {
    /// The number of the next rule, from 1.
    pub fn next_number(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    /// A name for a rule: its description, else what Cloudflare calls it, else its number.
    pub fn rule(&mut self, number: usize, rule: Option<&Map<String, Value>>) -> String {
        let texts = ["description", "ref", "id"].into_iter();
        let texts = texts.filter_map(|key| rule?.get(key)?.as_str());
        let name = texts.map(slug).find(|slug| !slug.is_empty());
        free(
            name.unwrap_or_else(|| format!("rule-{number}")),
            &mut self.rules,
        )
    }

    /// A name for the response of a rule.
    pub fn response(&mut self, rule: &str) -> String {
        self.responses.entry(FORBIDDEN.to_owned()).or_insert(1);
        free(rule.to_owned(), &mut self.responses)
    }
}

/// The letters and digits of a text, with `-` for everything between them.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => slug.push(c.to_ascii_lowercase()),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    slug.truncate(LONGEST);
    slug.trim_end_matches('-').to_owned()
}

/// `name`, with a number at its end if it is taken.
fn free(name: String, taken: &mut Taken) -> String {
    let Some(mut number) = taken.get(&name).copied() else {
        taken.insert(name.clone(), 1);
        return name;
    };
    let mut candidate = name.clone();
    while taken.contains_key(&candidate) {
        number += 1;
        let end = format!("-{number}");
        candidate = name.clone();
        candidate.truncate(LONGEST - end.len());
        candidate.push_str(&end);
    }
    taken.insert(name, number);
    taken.insert(candidate.clone(), 1);
    candidate
}
