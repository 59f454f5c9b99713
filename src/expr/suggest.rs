//! The nearest known name to a misspelt one.

use strsim::osa_distance;

/// The candidate nearest to `name`, if one is near enough to be what was meant.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let suffix = format!(".{name}");
    let limit = name.chars().count() / 3 + 1;
    let distance = |candidate: &str| match candidate.ends_with(&suffix) {
        true => 1,
        false => osa_distance(name, candidate),
    };
    let best = known
        .into_iter()
        .map(|candidate| (distance(candidate), candidate));
    let (distance, candidate) = best.min_by_key(|(distance, _)| *distance)?;
    (distance <= limit && distance < candidate.chars().count()).then_some(candidate)
}
