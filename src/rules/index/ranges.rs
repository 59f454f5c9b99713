//! Ranges that a value may lie in, which may overlap: a search tree in an array.

use super::Marks;

/// Ranges ordered by lower end. The middle of each subarray is the root of that subtree.
pub(super) struct RangeGuards<T>(Box<[GuardRange<T>]>);

/// An inclusive range.
#[derive(Clone, Copy)]
struct GuardRange<T> {
    low: T,
    high: T,
    /// The highest end in the subtree of this range.
    top: T,
    rule: u16,
}

// === impl RangeGuards ===

impl<T: Copy + Ord> RangeGuards<T> {
    pub(super) fn new(ranges: impl Iterator<Item = (T, T, u16)>) -> RangeGuards<T> {
        let spans = ranges.map(|(low, high, rule)| GuardRange {
            low,
            high,
            top: high,
            rule,
        });
        let mut spans: Box<[GuardRange<T>]> = spans.collect();
        spans.sort_unstable_by_key(|span| span.low);
        raise(&mut spans);
        RangeGuards(spans)
    }

    pub(super) fn mark_matches(&self, value: T, marks: &mut Marks<'_>) {
        stab(&self.0, value, marks);
    }
}

/// Sets `top` of every range and returns the highest.
fn raise<T: Copy + Ord>(spans: &mut [GuardRange<T>]) -> Option<T> {
    let (left, rest) = spans.split_at_mut_checked(spans.len() / 2)?;
    let (root, right) = rest.split_first_mut()?;
    let below = raise(left).max(raise(right));
    root.top = below.map_or(root.high, |top| top.max(root.high));
    Some(root.top)
}

fn stab<T: Copy + Ord>(spans: &[GuardRange<T>], value: T, marks: &mut Marks<'_>) {
    let halves = spans.split_at_checked(spans.len() / 2);
    let Some((left, [root, right @ ..])) = halves else {
        return;
    };
    if root.top < value {
        return;
    }
    stab(left, value, marks);
    if root.low <= value {
        if value <= root.high {
            marks.add(&[root.rule]);
        }
        stab(right, value, marks);
    }
}
