//! Suggests the name that was probably meant.

/// Returns the name closest to `written`. `None` if none is close enough to be a typo.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let lower = written.to_lowercase();
    let near = |name: &&'a str| distance(&lower, name) <= slips(&lower);
    names
        .into_iter()
        .filter(near)
        .min_by_key(|name| distance(&lower, name))
}

/// Returns `; did you mean `x`?` for a message about an unknown name, or an empty string.
pub(super) fn did_you_mean<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(written, names) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

/// Joins names for a message: `` `a`, `b` or `c` ``.
pub(super) fn either<N: std::fmt::Display>(names: &[N]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn distance(lower: &str, name: &str) -> usize {
    strsim::damerau_levenshtein(lower, &name.to_lowercase())
}

/// The maximum length of a name to compare, because the comparison takes quadratic time.
const LONGEST: usize = 256;

/// Returns how many typos a name of this length may have. `x` is not a misspelling of `y`.
fn slips(written: &str) -> usize {
    match written.chars().count() {
        0..=1 => 0,
        2..=4 => 1,
        5..=8 => 2,
        len => len / 3,
    }
}
