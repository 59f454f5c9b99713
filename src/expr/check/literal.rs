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

/// Where a regex is wrong, from the report of the regex crate: the pattern on one line, carets
/// under the fault. The whole literal where that cannot be told.
pub(super) fn regex_fault(report: &str, pattern: &[u8], literal: &Literal) -> Span {
    fault(report, pattern, literal).unwrap_or_else(|| literal.span.clone())
}

fn fault(report: &str, pattern: &[u8], literal: &Literal) -> Option<Span> {
    let LiteralKind::Text { body, .. } = &literal.kind else {
        return None;
    };
    let pattern = std::str::from_utf8(pattern).ok()?;
    if body.len() != pattern.len() || pattern.contains('\n') {
        return None;
    }
    let carets = report
        .lines()
        .find(|line| line.trim_start().starts_with('^'))?;
    let from = (carets.len() - carets.trim_start().len()).saturating_sub(4);
    let count = carets.matches('^').count();
    let offset = |chars| {
        let at = pattern.char_indices().nth(chars);
        at.map_or(pattern.len(), |(at, _)| at)
    };
    Some(body.start + offset(from)..body.start + offset(from + count))
}
