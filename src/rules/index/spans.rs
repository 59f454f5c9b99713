//! Ranges that a value may lie in, overlapping as they like: a search tree in an array.

use super::Marks;

/// Ranges by their lower ends. The middle of each part of the array is the root of that part.
pub(super) struct Spans<T>(Box<[Span<T>]>);

/// A range, both ends in it.
#[derive(Clone, Copy)]
struct Span<T> {
    low: T,
    high: T,
    /// The highest end in the part that this is the root of.
    top: T,
    rule: u16,
}

// === impl Spans ===

impl<T: Copy + Ord> Spans<T> {
    pub(super) fn new(ranges: impl Iterator<Item = (T, T, u16)>) -> Spans<T> {
        let spans = ranges.map(|(low, high, rule)| Span {
            low,
            high,
            top: high,
            rule,
        });
        let mut spans: Box<[Span<T>]> = spans.collect();
        spans.sort_unstable_by_key(|span| span.low);
        raise(&mut spans);
        Spans(spans)
    }

    pub(super) fn ask(&self, value: T, marks: &mut Marks<'_>) {
        stab(&self.0, value, marks);
    }
}

/// Sets the tops, and returns the highest.
fn raise<T: Copy + Ord>(spans: &mut [Span<T>]) -> Option<T> {
    let (left, rest) = spans.split_at_mut_checked(spans.len() / 2)?;
    let (root, right) = rest.split_first_mut()?;
    let below = raise(left).max(raise(right));
    root.top = below.map_or(root.high, |top| top.max(root.high));
    Some(root.top)
}

fn stab<T: Copy + Ord>(spans: &[Span<T>], value: T, marks: &mut Marks<'_>) {
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
