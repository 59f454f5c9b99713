//! The document with a solution.

use std::borrow::Cow;

use crate::credential::WorkProof;
use crate::expr::json::{JsonStep, find};

/// A solution that is not verified yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PostedSolution<'a> {
    /// The token, which may be anything.
    pub(super) token: Cow<'a, [u8]>,
    /// The number for each part.
    pub(super) parts: [u32; WorkProof::PARTS],
}

// === impl PostedSolution ===

impl<'a> PostedSolution<'a> {
    /// Parses `{"token": "…", "solution": [878, …]}`. `None` if it is anything else.
    pub(super) fn parse(document: &'a [u8]) -> Option<Self> {
        let token = find(document, &[JsonStep::Name((*b"token").into())])?.text()?;
        let part = |index| {
            let name = JsonStep::Name((*b"solution").into());
            find(document, &[name, JsonStep::At(index)])
        };
        let mut parts = [0; WorkProof::PARTS];
        for (index, number) in parts.iter_mut().enumerate() {
            *number = part(index)?.int()?.try_into().ok()?;
        }
        part(WorkProof::PARTS)
            .is_none()
            .then_some(Self { token, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solution_is_a_token_and_eight_integers() {
        let parse = |text: &'static str| PostedSolution::parse(text.as_bytes());
        let found = parse(r#" {"solution": [878, 0, 4294967295, 3, 4, 5, 6, 7], "token": "a"}"#);
        let parts = [878, 0, u32::MAX, 3, 4, 5, 6, 7];
        let token = Cow::Borrowed(&b"a"[..]);
        assert_eq!(found, Some(PostedSolution { token, parts }));
        for wrong in [
            "",
            "[]",
            r#"{"token": "a"}"#,
            r#"{"solution": [1,2,3,4,5,6,7,8]}"#,
            r#"{"token": 1, "solution": [1,2,3,4,5,6,7,8]}"#,
            r#"{"token": "a", "solution": [1,2,3,4,5,6,7]}"#,
            r#"{"token": "a", "solution": [1,2,3,4,5,6,7,8,9]}"#,
            r#"{"token": "a", "solution": [1,2,3,4,5,6,7,-8]}"#,
            r#"{"token": "a", "solution": [1,2,3,4,5,6,7,4294967296]}"#,
            r#"{"token": "a", "solution": [1,2,3,4,5,6,7,8.0]}"#,
            r#"{"token": "a", "solution": [1,2,3,4,5,6,7,"8"]}"#,
            r#"{"token": "a", "solution": [1,2,3,4,5,6,7,8]"#,
            r#"{"token": "a", "solution": [1,2,3,4,5,6,7,8]} x"#,
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
