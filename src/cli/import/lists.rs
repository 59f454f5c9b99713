//! Lists that a rule reads: `$name`. Cloudflare keeps them apart from the rules, so their values
//! are not in the file.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::judge::Judge;

/// Lists that Cloudflare itself keeps begin so.
const MANAGED: &str = "cf.";
/// How many lists a rule may read. What it reads beyond them is refused as unknown.
const MOST: usize = 64;

/// Notes the lists that a rule reads.
pub fn find(draft: &mut Draft, judge: &Judge) {
    let found: BTreeSet<String> = draft.expressions.iter().flat_map(|e| dollars(e)).collect();
    if found.is_empty() {
        return;
    }
    let (managed, own): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|name| name.starts_with(MANAGED));
    draft.lists = own.into_iter().filter(|name| is_name(name)).collect();
    draft.lists.truncate(MOST);
    keep_needed(draft, judge);
    for name in draft.lists.clone() {
        draft.note(format!(
            "`${name}` is a list whose values are not in this file; fill `{name}` in `[lists]`, \
             which is empty as it is written"
        ));
    }
    tell_managed(managed, draft, judge);
}

/// No list of the user's own can be called so: the gateway refuses the rule.
fn tell_managed(names: Vec<String>, draft: &mut Draft, judge: &Judge) {
    let errors = judge.errors(&draft.fragment());
    let refused = |name: &str| errors.iter().any(|e| e.contains(&format!("`${name}`")));
    for name in names.iter().filter(|name| refused(name)) {
        let own = name.trim_start_matches(MANAGED).replace('.', "_");
        draft.note(format!(
            "`${name}` is a list that only Cloudflare keeps; nearest: a list of your own, \
             `{own} = {{ file = \"{own}.txt\" }}` in `[lists]`"
        ));
    }
}

/// A dollar may also stand in a string or a regular expression. The gateway knows which is a list:
/// without it there is a mistake more.
fn keep_needed(draft: &mut Draft, judge: &Judge) {
    let all = draft.lists.clone();
    let mistakes = judge.errors(&draft.fragment()).len();
    let mut needed = Vec::new();
    for name in &all {
        draft.lists = all.iter().filter(|other| *other != name).cloned().collect();
        if judge.errors(&draft.fragment()).len() > mistakes {
            needed.push(name.clone());
        }
    }
    draft.lists = needed;
}

/// What follows each dollar.
fn dollars(expression: &str) -> impl Iterator<Item = String> {
    let after = expression.split('$').skip(1);
    after
        .map(|rest| {
            let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            rest.chars().take_while(|c| legal(*c)).collect::<String>()
        })
        .filter(|name| !name.is_empty())
}

fn is_name(name: &str) -> bool {
    name.len() <= 64 && !name.contains('.')
}
