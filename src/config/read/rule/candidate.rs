//! Reads `candidate` of a rule.

use super::counting::{algorithm, burst, period, queue, slices};
use super::meaning;
use crate::config::file::Candidate;
use crate::config::scalar::integer;
use crate::config::section::Section;
use crate::limit::Algorithm;

/// `of_rule`: how the rule counts; `None` if that is not known.
pub(super) fn candidate(s: &mut Section<'_, '_>, of_rule: Option<Algorithm>) -> Candidate {
    let candidate = Candidate {
        span: s.span(),
        algorithm: s.optional("algorithm", algorithm()),
        limit: s.optional("limit", integer(1..=u32::MAX)),
        period: s.optional("period", period()),
        burst: s.optional("burst", burst()),
        slices: s.optional("slices", slices()),
        queue: s.optional("queue", queue()),
    };
    let own = candidate.algorithm.as_ref().map(|a| a.value);
    let counted = if s.has("algorithm") { own } else { of_rule };
    if let Some(algorithm) = counted {
        meaning::by_algorithm(s, algorithm);
    }
    candidate
}
