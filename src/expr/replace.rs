//! `regex_replace` and `wildcard_replace`: a pattern and the replacement of its match.

use std::borrow::Cow;

use regex::bytes::Regex;

use super::wildcard::WildcardPattern;

/// The longest result; a longer one is missing, because references can multiply a client's input.
pub(super) const MAX_RESULT: usize = 64 << 10;
/// The most references in a replacement.
const MAX_REFERENCES: usize = 8;

/// A prepared replacement.
#[derive(Clone, Debug)]
pub(super) struct ReplaceCall {
    pattern: ReplacePattern,
    with: Vec<ReplacementPart>,
}

/// The pattern of a replacement.
#[derive(Clone, Debug)]
pub(super) enum ReplacePattern {
    /// Replaces the first match.
    Regex(Regex),
    /// Replaces the whole value.
    Wildcard(WildcardPattern),
}

#[derive(Clone, Debug)]
enum ReplacementPart {
    Text(Box<[u8]>),
    /// The text of a group or a star; 0 is the whole match.
    Group(usize),
}

// === impl ReplaceCall ===

impl ReplaceCall {
    /// Prepares a replacement: `${1}` is the first group or star, `$$` a dollar. The error is the
    /// reason why it is invalid.
    pub(super) fn new(pattern: ReplacePattern, with: &[u8]) -> Result<ReplaceCall, String> {
        let with = parts(with)?;
        let groups = with.iter().filter_map(|part| match part {
            ReplacementPart::Group(group) => Some(*group),
            ReplacementPart::Text(_) => None,
        });
        if groups.clone().count() > MAX_REFERENCES {
            return Err(format!("more than {MAX_REFERENCES} references"));
        }
        let (last, has) = (groups.max().unwrap_or(0), pattern.groups());
        if last > has {
            let what = pattern.word(has);
            return Err(format!(
                "`${{{last}}}` does not exist: the pattern has {has} {what}"
            ));
        }
        Ok(ReplaceCall { pattern, with })
    }

    /// The value with the match replaced; unchanged if nothing matches. `None` if the result is too long.
    pub(super) fn apply<'a>(&self, value: Cow<'a, [u8]>) -> Option<Cow<'a, [u8]>> {
        let replaced = match &self.pattern {
            ReplacePattern::Regex(regex) => regex.captures(&value).map(|groups| {
                let whole = groups.get(0).map_or(0..0, |whole| whole.range());
                let group = |at| groups.get(at).map(|group| group.as_bytes());
                self.build(&value, whole, group)
            }),
            ReplacePattern::Wildcard(pattern) => pattern.captures(&value).map(|stars| {
                let group = |at: usize| match at.checked_sub(1) {
                    None => Some(&*value),
                    Some(at) => stars.get(at).copied(),
                };
                self.build(&value, 0..value.len(), group)
            }),
        };
        match replaced {
            Some(replaced) => replaced.map(Cow::Owned),
            None => Some(value),
        }
    }

    fn build<'v>(
        &self,
        value: &'v [u8],
        whole: std::ops::Range<usize>,
        group: impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Option<Vec<u8>> {
        // A group that did not participate in the match is empty.
        let with = self.with.iter().map(|part| match part {
            ReplacementPart::Text(text) => &**text,
            ReplacementPart::Group(at) => group(*at).unwrap_or_default(),
        });
        let around = [value.get(..whole.start)?, value.get(whole.end..)?];
        let [before, after] = around;
        let length: usize = with.clone().chain(around).map(<[u8]>::len).sum();
        if length > MAX_RESULT {
            return None;
        }
        let mut out = Vec::with_capacity(length);
        let parts = std::iter::once(before).chain(with).chain([after]);
        parts.for_each(|part| out.extend_from_slice(part));
        Some(out)
    }
}

// === impl ReplacePattern ===

impl ReplacePattern {
    fn groups(&self) -> usize {
        match self {
            ReplacePattern::Regex(regex) => regex.captures_len() - 1,
            ReplacePattern::Wildcard(pattern) => pattern.stars(),
        }
    }

    fn word(&self, count: usize) -> &'static str {
        match (self, count) {
            (ReplacePattern::Regex(_), 1) => "group",
            (ReplacePattern::Regex(_), _) => "groups",
            (ReplacePattern::Wildcard(_), 1) => "star",
            (ReplacePattern::Wildcard(_), _) => "stars",
        }
    }
}

fn parts(with: &[u8]) -> Result<Vec<ReplacementPart>, String> {
    let mut parts = Vec::new();
    let mut text = Vec::new();
    let mut rest = with;
    while let Some((&first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'$', [b'$', after @ ..]) => {
                text.push(b'$');
                after
            }
            (b'$', after) => {
                let (group, after) = reference(after)
                    .ok_or("in a replacement, `$` must be followed by `{1}` or another `$`")?;
                parts.push(ReplacementPart::Text(std::mem::take(&mut text).into()));
                parts.push(ReplacementPart::Group(group));
                after
            }
            (byte, after) => {
                text.push(byte);
                after
            }
        };
    }
    parts.push(ReplacementPart::Text(text.into()));
    Ok(parts)
}

/// Parses `{1}`.
fn reference(text: &[u8]) -> Option<(usize, &[u8])> {
    let text = text.strip_prefix(b"{")?;
    let (digits, rest) = text.split_at_checked(memchr::memchr(b'}', text)?)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let plain =
        !digits.is_empty() && digits.len() <= 2 && digits.bytes().all(|b| b.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| plain)?, rest.get(1..)?))
}
