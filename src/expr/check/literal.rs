//! What a literal can stand for, and where a regex in one is wrong.

use std::net::IpAddr;

use super::super::ast::{Literal, LiteralKind};
use super::super::token::{Atom, Span};

pub(super) fn text(kind: &LiteralKind) -> Option<Box<[u8]>> {
    match kind {
        LiteralKind::Text { bytes, .. } => Some(bytes.clone()),
        _ => None,
    }
}

pub(super) fn truth(kind: &LiteralKind) -> Option<bool> {
    match kind {
        LiteralKind::Bool(value) => Some(*value),
        _ => None,
    }
}

pub(super) fn int(kind: &LiteralKind) -> Option<i64> {
    match kind {
        LiteralKind::Atom(Atom::Int(int)) => Some(*int),
        _ => None,
    }
}

pub(super) fn int_range(kind: &LiteralKind) -> Option<(i64, i64)> {
    match kind {
        LiteralKind::Atom(Atom::Int(int)) => Some((*int, *int)),
        LiteralKind::Atom(Atom::IntRange(low, high)) => Some((*low, *high)),
        _ => None,
    }
}

pub(super) fn ip(kind: &LiteralKind) -> Option<IpAddr> {
    match kind {
        LiteralKind::Atom(Atom::Ip(ip)) => Some(*ip),
        _ => None,
    }
}

pub(super) fn ip_range(kind: &LiteralKind) -> Option<(IpAddr, IpAddr)> {
    match kind {
        LiteralKind::Atom(Atom::Ip(ip)) => Some((*ip, *ip)),
        LiteralKind::Atom(Atom::IpRange(low, high)) => Some((*low, *high)),
        LiteralKind::Atom(Atom::Net(net)) => Some((net.network(), net.broadcast())),
        _ => None,
    }
}

/// Where a regex is wrong and why, from the report of the regex crate: the pattern on one line,
/// carets under the fault, then `error: ` and the reason.
pub(super) fn regex_fault(report: &str, pattern: &str, literal: &Literal) -> (Span, String) {
    let reason = report
        .lines()
        .filter_map(|line| line.strip_prefix("error: "))
        .next_back();
    let reason = reason
        .unwrap_or("it cannot be read")
        .trim_end_matches('.')
        .to_owned();
    let carets = report
        .lines()
        .find(|line| line.trim_start().starts_with('^'));
    let LiteralKind::Text { body, .. } = &literal.kind else {
        return (literal.span.clone(), reason);
    };
    let same = body.len() == pattern.len() && !pattern.contains('\n');
    let Some(carets) = carets.filter(|_| same) else {
        return (literal.span.clone(), reason);
    };
    let from = (carets.len() - carets.trim_start().len()).saturating_sub(4);
    let count = carets.matches('^').count();
    let offset = |chars| {
        pattern
            .char_indices()
            .nth(chars)
            .map_or(pattern.len(), |(at, _)| at)
    };
    (
        body.start + offset(from)..body.start + offset(from + count),
        reason,
    )
}
