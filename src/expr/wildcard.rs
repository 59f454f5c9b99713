//! `wildcard` patterns: the whole value, `*` for any sequence, `\*` for a star, `\\` for a
//! backslash. Linear: each literal part is searched once, leftmost first.

use super::find::Finder;

/// A prepared pattern.
#[derive(Clone, Debug)]
pub(super) struct Wildcard {
    /// Before the first star; the whole pattern if there is none.
    head: Box<[u8]>,
    /// From the first star on.
    rest: Option<Rest>,
    ignore_case: bool,
}

#[derive(Clone, Debug)]
struct Rest {
    /// Between two stars each.
    middle: Box<[Finder]>,
    /// The longest of them.
    longest: Box<[u8]>,
    /// After the last star.
    tail: Box<[u8]>,
}

// === impl Wildcard ===

impl Wildcard {
    /// Prepares `pattern`; the error is the reason why it cannot be one.
    pub(super) fn new(pattern: &[u8], ignore_case: bool) -> Result<Wildcard, &'static str> {
        let mut parts = split(pattern)?.into_iter();
        let head = parts.next().unwrap_or_default().into();
        let tail = parts.next_back();
        let middle: Vec<Vec<u8>> = parts.filter(|part| !part.is_empty()).collect();
        let longest = middle.iter().max_by_key(|part| part.len()).cloned();
        let finder = |part: &Vec<u8>| Finder::new(part, ignore_case);
        let rest = tail.map(|tail| Rest {
            middle: middle.iter().map(finder).collect(),
            longest: longest.unwrap_or_default().into(),
            tail: tail.into(),
        });
        Ok(Wildcard {
            head,
            rest,
            ignore_case,
        })
    }

    /// Whether upper and lower case are the same to it.
    pub(super) fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// How many stars it has; two in a row are one.
    pub(super) fn stars(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.middle.len() + 1)
    }

    /// Whether it has no star.
    pub(super) fn is_plain(&self) -> bool {
        self.rest.is_none()
    }

    /// What stands before the first star.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The longest part between two stars; empty if there is none.
    pub(super) fn middle(&self) -> &[u8] {
        self.rest.as_ref().map_or(&[], |rest| &rest.longest)
    }

    /// What stands after the last star.
    pub(super) fn tail(&self) -> &[u8] {
        self.rest.as_ref().map_or(&[], |rest| &rest.tail)
    }

    /// Whether the whole of `text` matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        match &self.rest {
            None => self.same(text, &self.head),
            Some(rest) => self.walk(text, rest, |_| {}).is_some(),
        }
    }

    /// What each star took, as little as it can, the first one first; `None`: no match.
    pub(super) fn captures<'t>(&self, text: &'t [u8]) -> Option<Vec<&'t [u8]>> {
        let Some(rest) = &self.rest else {
            return self.same(text, &self.head).then(Vec::new);
        };
        let mut taken = Vec::with_capacity(rest.middle.len() + 1);
        let last = self.walk(text, rest, |part| taken.push(part))?;
        taken.push(last);
        Some(taken)
    }

    /// Takes off both ends, then each middle part at its first place; what is left is the last
    /// star's.
    fn walk<'t>(
        &self,
        text: &'t [u8],
        rest: &Rest,
        mut taken: impl FnMut(&'t [u8]),
    ) -> Option<&'t [u8]> {
        let (head, text) = text.split_at_checked(self.head.len())?;
        let (middle, tail) = text.split_at_checked(text.len().checked_sub(rest.tail.len())?)?;
        if !self.same(head, &self.head) || !self.same(tail, &rest.tail) {
            return None;
        }
        rest.middle.iter().try_fold(middle, |text, part| {
            let (before, after) = part.around(text)?;
            taken(before);
            Some(after)
        })
    }

    fn same(&self, text: &[u8], part: &[u8]) -> bool {
        match self.ignore_case {
            true => text.eq_ignore_ascii_case(part),
            false => text == part,
        }
    }
}

/// The literal parts between the stars, escapes undone.
fn split(pattern: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut parts = Vec::new();
    let mut part = Vec::new();
    let mut bytes = pattern.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' => parts.push(std::mem::take(&mut part)),
            b'\\' => match bytes.next() {
                Some(next @ (b'*' | b'\\')) => part.push(next),
                _ => return Err("a backslash stands only before `*` or `\\` in a wildcard"),
            },
            byte => part.push(byte),
        }
    }
    parts.push(part);
    Ok(parts)
}
