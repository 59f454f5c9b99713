//! Determines which tests of expressions imply others, always hold or exclude each other. Two tests
//! are compared only if they read one field with equal transformations.

use super::{LintCode, ParsedExpr, Warnings};
use crate::expr::{ExprOutline, GivenValue, TestOutline, TestRelation, WrittenValue};
use crate::facts::fields::{self, ValueFormat};

/// The maximum number of compared pairs before the result is "unknown". An `or` in an `and` in an
/// `or` has exponentially many pairs, and a reload waits for the result.
const STEPS: u32 = 2_000;

/// Warns of tests joined by `and` that never hold together, in a part of an expression.
pub(super) fn warn(part: &ExprOutline, parsed: &ParsedExpr<'_>, warnings: &mut Warnings<'_>) {
    match part {
        ExprOutline::And(_) => {
            let parts = part.conjuncts();
            for (at, part) in parts.iter().enumerate() {
                let before = parts.get(..at).unwrap_or_default();
                if let Some(other) = before.iter().find(|other| excludes(other, part)) {
                    conflict(other, part, parsed, warnings);
                }
                warn(part, parsed, warnings);
            }
        }
        ExprOutline::Or(parts) | ExprOutline::Xor(parts) => {
            parts.iter().for_each(|part| warn(part, parsed, warnings));
        }
        ExprOutline::Not(inner) => warn(inner, parsed, warnings),
        ExprOutline::Const(_) | ExprOutline::Leaf(_) => {}
    }
}

/// Returns whether `wide` holds whenever `narrow` does. `false` means unknown.
pub(super) fn covers(wide: &ExprOutline, narrow: &ExprOutline) -> bool {
    let mut steps = STEPS;
    covers_within(wide, narrow, &mut steps)
}

/// Is [`covers`] with at most `steps` more comparisons.
fn covers_within(wide: &ExprOutline, narrow: &ExprOutline, steps: &mut u32) -> bool {
    use ExprOutline::{And, Leaf, Not, Or};
    let Some(left) = steps.checked_sub(1) else {
        return false;
    };
    *steps = left;
    if always(wide) || wide.is_equivalent(narrow) {
        return true;
    }
    let mut covers = |wide, narrow| covers_within(wide, narrow, steps);
    match (wide, narrow) {
        (_, Or(parts)) => parts.iter().all(|part| covers(wide, part)),
        (And(parts), _) => parts.iter().all(|part| covers(part, narrow)),
        (Or(parts), _) if parts.iter().any(|part| covers(part, narrow)) => true,
        (_, And(parts)) => parts.iter().any(|part| covers(wide, part)),
        (Not(wide), Not(narrow)) => covers(narrow, wide),
        (Not(wide), Leaf(narrow)) => {
            matches!(&**wide, Leaf(wide) if leaves_exclude(wide, narrow))
        }
        (Leaf(wide), Leaf(narrow)) => leaf_covers(wide, narrow),
        _ => false,
    }
}

/// Returns whether the expression holds for every request. `false` means unknown.
pub(super) fn always(outline: &ExprOutline) -> bool {
    match outline {
        ExprOutline::Const(value) => *value,
        ExprOutline::And(parts) => parts.iter().all(always),
        ExprOutline::Or(parts) => {
            let opposite = |part: &ExprOutline| match part {
                ExprOutline::Not(inner) => parts.iter().any(|other| other.is_equivalent(inner)),
                _ => false,
            };
            parts.iter().any(|part| always(part) || opposite(part))
        }
        ExprOutline::Not(inner) => never(inner),
        ExprOutline::Leaf(leaf) => leaf_always(leaf),
        ExprOutline::Xor(_) => false,
    }
}

fn never(outline: &ExprOutline) -> bool {
    match outline {
        ExprOutline::Const(value) => !*value,
        ExprOutline::Or(parts) => parts.iter().all(never),
        ExprOutline::Not(inner) => always(inner),
        ExprOutline::And(parts) => parts.iter().any(never),
        ExprOutline::Leaf(_) | ExprOutline::Xor(_) => false,
    }
}

/// Returns whether a test always holds: every path starts with `/`.
fn leaf_always(leaf: &TestOutline) -> bool {
    use TestRelation::{Contains, Matches, StartsWith, StrictWildcard, Wildcard};
    let field = leaf.subject.plain().and_then(fields::find);
    let format = field.map(|field| fields::by_id(field).format);
    let on_path = matches!(format, Some(ValueFormat::Path | ValueFormat::Uri));
    let with = leaf.values.first().and_then(text_of);
    let any: &[&[u8]] = match leaf.relation {
        StartsWith | Contains => &[b"/", b""],
        Wildcard | StrictWildcard => &[b"*", b"/*"],
        Matches => &[b"", b".*", b"/", b"^/", b"^/.*", b"^.*$"],
        _ => &[],
    };
    on_path && with.is_some_and(|with| any.contains(&with))
}

fn conflict(
    first: &ExprOutline,
    second: &ExprOutline,
    parsed: &ParsedExpr<'_>,
    warnings: &mut Warnings<'_>,
) {
    let (Some(a), Some(b)) = (span(first), span(second)) else {
        return;
    };
    let other = parsed.text.value.get(a.clone()).unwrap_or_default();
    let message = format!("this test and `{other}` are never both true");
    let related = parsed.text.inner(warnings.source, a);
    warnings
        .within(LintCode::Contradiction, parsed.text, b, message)
        .related(related, "`and` requires both")
        .help("use `or`, or a set: `in {\"a\" \"b\"}`");
}

fn span(outline: &ExprOutline) -> Option<std::ops::Range<usize>> {
    let leaves = outline.leaves();
    Some(leaves.first()?.span.start..leaves.last()?.span.end)
}

/// Returns whether both can never hold for one request.
pub(super) fn excludes(a: &ExprOutline, b: &ExprOutline) -> bool {
    use ExprOutline::{Leaf, Not};
    match (a, b) {
        (Not(a), b) if covers(a, b) => true,
        (a, Not(b)) if covers(b, a) => true,
        (Leaf(a), Leaf(b)) => leaves_exclude(a, b),
        _ => false,
    }
}

fn leaf_covers(wide: &TestOutline, narrow: &TestOutline) -> bool {
    if wide.subject != narrow.subject || wide.subject.field.is_none() {
        return false;
    }
    let points = matches!(narrow.relation, TestRelation::Eq | TestRelation::In);
    if points && !narrow.values.is_empty() {
        return narrow.values.iter().all(|given| admits(wide, &given.value));
    }
    match (&wide.relation, &narrow.relation) {
        (TestRelation::StartsWith, TestRelation::StartsWith) => {
            pair(wide, narrow, |wide, narrow| narrow.starts_with(wide))
        }
        (TestRelation::EndsWith, TestRelation::EndsWith) => {
            pair(wide, narrow, |wide, narrow| narrow.ends_with(wide))
        }
        (
            TestRelation::Contains,
            TestRelation::Contains | TestRelation::StartsWith | TestRelation::EndsWith,
        ) => pair(wide, narrow, |wide, narrow| contains(narrow, wide)),
        _ => false,
    }
}

/// Returns whether a test certainly holds for all of a written value.
fn admits(leaf: &TestOutline, value: &GivenValue) -> bool {
    let mut given = leaf.values.iter().map(|given| &given.value);
    match (&leaf.relation, value) {
        (_, GivenValue::Ints(low, high)) => {
            let admitted = integers(leaf);
            admitted.iter().any(|(from, to)| from <= low && high <= to)
        }
        (TestRelation::Eq | TestRelation::In, GivenValue::Ips(low, high)) => given.any(|wide| {
            matches!(wide, GivenValue::Ips(from, to)
                if from.is_ipv4() == low.is_ipv4() && from <= low && high <= to)
        }),
        (TestRelation::Eq | TestRelation::In, value) => given.any(|wide| wide == value),
        (relation, GivenValue::Text(text)) => {
            let with = leaf.values.first().and_then(text_of).unwrap_or_default();
            match relation {
                TestRelation::StartsWith => text.starts_with(with),
                TestRelation::EndsWith => text.ends_with(with),
                TestRelation::Contains => contains(text, with),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Returns the ranges of integers for which a test holds. Empty if the relation is not supported.
fn integers(leaf: &TestOutline) -> Vec<(i64, i64)> {
    let range = |given: &WrittenValue| match given.value {
        GivenValue::Ints(low, high) => Some((low, high)),
        _ => None,
    };
    let ranges = leaf.values.iter().filter_map(range);
    let ranges = ranges.filter_map(|(low, high)| match leaf.relation {
        TestRelation::Eq | TestRelation::In => Some((low, high)),
        TestRelation::Lt => Some((i64::MIN, low.checked_sub(1)?)),
        TestRelation::Le => Some((i64::MIN, low)),
        TestRelation::Gt => Some((low.checked_add(1)?, i64::MAX)),
        TestRelation::Ge => Some((low, i64::MAX)),
        _ => None,
    });
    ranges.collect()
}

/// Returns whether two tests of one single value can never hold together.
fn leaves_exclude(a: &TestOutline, b: &TestOutline) -> bool {
    let walks = |leaf: &TestOutline| {
        let mut names = leaf.subject.functions.iter();
        names.any(|name| matches!(&**name, "any" | "all"))
    };
    if a.subject != b.subject || a.subject.field.is_none() || walks(a) {
        return false;
    }
    match (&a.relation, &b.relation) {
        (TestRelation::Eq | TestRelation::In, _) if known(a) && !a.values.is_empty() => {
            known(b) && a.values.iter().all(|given| refuses(b, &given.value))
        }
        (_, TestRelation::Eq | TestRelation::In) if known(b) && !b.values.is_empty() => {
            known(a) && b.values.iter().all(|given| refuses(a, &given.value))
        }
        (TestRelation::StartsWith, TestRelation::StartsWith) => {
            pair(a, b, |a, b| !a.starts_with(b) && !b.starts_with(a))
        }
        (TestRelation::EndsWith, TestRelation::EndsWith) => {
            pair(a, b, |a, b| !a.ends_with(b) && !b.ends_with(a))
        }
        _ => false,
    }
}

/// Returns whether this file can decide the relation for a written value.
fn known(leaf: &TestOutline) -> bool {
    use TestRelation::{Contains, EndsWith, Eq, Ge, Gt, In, Le, Lt, StartsWith};
    matches!(
        leaf.relation,
        Eq | In | StartsWith | EndsWith | Contains | Lt | Le | Gt | Ge
    )
}

/// Returns whether a test certainly fails for all of a written value. For single values that is the
/// opposite of `admits`; ranges may overlap.
fn refuses(leaf: &TestOutline, value: &GivenValue) -> bool {
    let mut given = leaf.values.iter().map(|given| &given.value);
    match (&leaf.relation, value) {
        (_, GivenValue::Ints(low, high)) => {
            let admitted = integers(leaf);
            admitted.iter().all(|(from, to)| high < from || to < low)
        }
        (TestRelation::Eq | TestRelation::In, GivenValue::Ips(low, high)) => given.all(|other| {
            matches!(other, GivenValue::Ips(from, to)
                if from.is_ipv4() != low.is_ipv4() || high < from || to < low)
        }),
        _ => !admits(leaf, value),
    }
}

fn pair(a: &TestOutline, b: &TestOutline, holds: impl Fn(&[u8], &[u8]) -> bool) -> bool {
    let a = a.values.first().and_then(text_of);
    let b = b.values.first().and_then(text_of);
    a.zip(b).is_some_and(|(a, b)| holds(a, b))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

fn text_of(given: &WrittenValue) -> Option<&[u8]> {
    match &given.value {
        GivenValue::Text(text) => Some(text),
        _ => None,
    }
}
