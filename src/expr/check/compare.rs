//! Comparisons: checks the operator and the right side against the type of the left side.

use regex::bytes::Regex;

use super::super::ast::{CompareOp, CompareTarget, LiteralKind, LiteralNode, Operand};
use super::super::error::nearest;
use super::super::lists::{ListTypeError, NamedList};
use super::super::literal::UnquotedLiteral;
use super::super::regexes::{self, RegexError};
use super::super::set::{IntSet, IpSet, StringSet};
use super::super::term::{
    BoolTerm, BytesTerm, BytesTest, CompiledTerm, IntTerm, IntTest, IpTest, OrderOp,
};
use super::super::transform::TransformCall;
use super::super::wildcard::WildcardPattern;
use super::{Checker, OperandShape, Span};

/// A comparison with a checked left side.
struct Comparison<'a> {
    /// The source text of the left side.
    left: &'a str,
    op: CompareOp,
    op_span: &'a Span,
    right: &'a CompareTarget,
}

// === impl Checker ===

impl Checker<'_> {
    pub(super) fn compare(
        &mut self,
        left: &Operand,
        op: CompareOp,
        op_span: &Span,
        right: &CompareTarget,
    ) -> Option<OperandShape> {
        let shape = self.operand(left)?.or_string();
        let c = Comparison {
            left: self.text(&left.span),
            op,
            op_span,
            right,
        };
        let (list, term) = match shape {
            OperandShape::One(term) => (None, term),
            OperandShape::Each(list, term) => (Some(list), term),
            OperandShape::List(list, term)
                if !matches!(term, CompiledTerm::Bytes(BytesTerm::Item)) =>
            {
                (Some(list), term)
            }
            shape => return self.not_single(shape, &left.span),
        };
        Some(super::shape(list, self.relate(term, &c, &left.span)?))
    }

    fn relate(&mut self, term: CompiledTerm, c: &Comparison, span: &Span) -> Option<BoolTerm> {
        match term {
            CompiledTerm::Bytes(BytesTerm::Literal(_)) | CompiledTerm::Int(IntTerm::Literal(_)) => {
                self.fail_with(
                    span,
                    "the left side must be a field or a function",
                    "write the field first",
                )
            }
            CompiledTerm::Bytes(bytes) => {
                let test = self.bytes_test(&bytes, c)?;
                Some(BoolTerm::Bytes(bytes, test))
            }
            CompiledTerm::Int(int) => {
                let test = self.int_test(&int, c)?;
                Some(BoolTerm::Int(int, test))
            }
            CompiledTerm::Ip(ip) => Some(BoolTerm::Ip(ip, self.ip_test(c)?)),
            CompiledTerm::Bool(test) => self.bool_test(test, c),
            CompiledTerm::Many(..)
            | CompiledTerm::List(..)
            | CompiledTerm::Map(_)
            | CompiledTerm::Regex(_) => self.fail(span, "this has many values"),
        }
    }

    fn bytes_test(&mut self, left: &BytesTerm, c: &Comparison) -> Option<BytesTest> {
        if c.op == CompareOp::In {
            return match c.right {
                CompareTarget::Set(items) => {
                    let items = self.all(items, c, "a string", LiteralKind::text)?;
                    Some(BytesTest::In(StringSet::new(items)))
                }
                _ => self
                    .listed(c, "a string", NamedList::strings)
                    .map(BytesTest::In),
            };
        }
        if c.op == CompareOp::BitAnd {
            return self.wrong_op(c, "works on integers", "a string");
        }
        let literal = value(c.right)?;
        let text = self.one(literal, c, "a string", LiteralKind::text)?;
        self.possible(left, c, &text, literal)?;
        Some(match c.op {
            CompareOp::Eq => BytesTest::Eq(text),
            CompareOp::Ne => BytesTest::Ne(text),
            CompareOp::Contains => BytesTest::Contains(text),
            CompareOp::Matches => BytesTest::Matches(self.regex(&text, literal)?),
            CompareOp::Wildcard => return self.wildcard(&text, literal, true),
            CompareOp::StrictWildcard => return self.wildcard(&text, literal, false),
            op => BytesTest::Order(order(op)?, text),
        })
    }

    /// Refuses a comparison such as `lower(x) eq "ABC"`, which is never true.
    fn possible(
        &mut self,
        left: &BytesTerm,
        c: &Comparison,
        text: &[u8],
        literal: &LiteralNode,
    ) -> Option<()> {
        let (wrong, case) = match left {
            BytesTerm::Changed(TransformCall::Lower, _) => {
                (text.iter().any(u8::is_ascii_uppercase), "upper")
            }
            BytesTerm::Changed(TransformCall::Upper, _) => {
                (text.iter().any(u8::is_ascii_lowercase), "lower")
            }
            _ => return Some(()),
        };
        if !wrong
            || !matches!(
                c.op,
                CompareOp::Eq | CompareOp::Ne | CompareOp::Contains | CompareOp::StrictWildcard
            )
        {
            return Some(());
        }
        let message = format!(
            "`{}` has no {case}-case letters, but this value has",
            c.left
        );
        self.fail(&literal.span, message)
    }

    pub(super) fn regex(&mut self, pattern: &[u8], literal: &LiteralNode) -> Option<Regex> {
        match self.budget.regex(pattern) {
            Ok(regex) => Some(regex),
            Err(refused) => {
                let fault = match (&refused, &literal.kind) {
                    (RegexError::Syntax(report), LiteralKind::Text { body, .. }) => {
                        regexes::fault(report, pattern, body)
                    }
                    _ => None,
                };
                self.fail(fault.as_ref().unwrap_or(&literal.span), refused.words())
            }
        }
    }

    fn wildcard(
        &mut self,
        pattern: &[u8],
        literal: &LiteralNode,
        ignore_case: bool,
    ) -> Option<BytesTest> {
        match WildcardPattern::new(pattern, ignore_case) {
            Ok(wildcard) => Some(BytesTest::Wildcard(wildcard)),
            Err(reason) => self.fail(&literal.span, reason),
        }
    }

    fn int_test(&mut self, left: &IntTerm, c: &Comparison) -> Option<IntTest> {
        match c.op {
            CompareOp::In => self.int_set(c),
            CompareOp::Contains
            | CompareOp::Matches
            | CompareOp::Wildcard
            | CompareOp::StrictWildcard => self.wrong_op(c, "works on strings", "an integer"),
            op => {
                let literal = value(c.right)?;
                let int = self.one(literal, c, "an integer", LiteralKind::int)?;
                if int < 0
                    && matches!(left, IntTerm::Len(_) | IntTerm::Count(_))
                    && op != CompareOp::BitAnd
                {
                    return self.fail(&literal.span, "a length is never negative");
                }
                Some(match op {
                    CompareOp::Eq => IntTest::Eq(int),
                    CompareOp::Ne => IntTest::Ne(int),
                    CompareOp::BitAnd => IntTest::Bits(int),
                    op => IntTest::Order(order(op)?, int),
                })
            }
        }
    }

    fn int_set(&mut self, c: &Comparison) -> Option<IntTest> {
        match c.right {
            CompareTarget::Set(items) => {
                let items = self.all(items, c, "an integer", LiteralKind::ints)?;
                Some(IntTest::In(IntSet::new(items)))
            }
            _ => self
                .listed(c, "an integer", NamedList::ints)
                .map(IntTest::In),
        }
    }

    fn ip_test(&mut self, c: &Comparison) -> Option<IpTest> {
        match (c.op, c.right) {
            (CompareOp::In, CompareTarget::Set(items)) => {
                let items = self.all(items, c, "an address", LiteralKind::ips)?;
                Some(IpTest::In(IpSet::new(items)))
            }
            (CompareOp::In, _) => self.listed(c, "an address", NamedList::ips).map(IpTest::In),
            (CompareOp::Eq | CompareOp::Ne, CompareTarget::Value(literal)) => {
                let ip = self.one(literal, c, "an address", LiteralKind::ip)?;
                Some(if c.op == CompareOp::Eq {
                    IpTest::Eq(ip)
                } else {
                    IpTest::Ne(ip)
                })
            }
            (CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge, _) => {
                let help = "write `in {192.0.2.1..192.0.2.9}`";
                self.fail_with(c.op_span, "addresses have no order", help)
            }
            (CompareOp::BitAnd, _) => self.wrong_op(c, "works on integers", "an address"),
            _ => self.wrong_op(c, "works on strings", "an address"),
        }
    }

    fn bool_test(&mut self, test: BoolTerm, c: &Comparison) -> Option<BoolTerm> {
        let wanted = match (c.op, c.right) {
            (CompareOp::Eq | CompareOp::Ne, CompareTarget::Value(literal)) => {
                self.one(literal, c, "a boolean", LiteralKind::truth)? == (c.op == CompareOp::Eq)
            }
            _ => {
                let message = format!("`{}` is a boolean and needs no comparison", c.left);
                let help = format!("write `{0}` or `not {0}`", c.left);
                return self.fail_with(c.op_span, message, help);
            }
        };
        match test {
            BoolTerm::Field(field, _) => Some(BoolTerm::Field(field, wanted)),
            test if wanted => Some(test),
            // `not` and `eq false` differ if a value is missing; only `not` is unambiguous.
            _ => self.fail_with(
                c.op_span,
                "a test is negated with `not`",
                format!("write `not {}`", c.left),
            ),
        }
    }

    fn one<T>(
        &mut self,
        literal: &LiteralNode,
        c: &Comparison,
        wants: &str,
        read: fn(&LiteralKind) -> Option<T>,
    ) -> Option<T> {
        if let Some(value) = read(&literal.kind) {
            return Some(value);
        }
        let text = self.text(&literal.span);
        match literal.kind {
            LiteralKind::Atom(
                UnquotedLiteral::IntRange(..)
                | UnquotedLiteral::IpRange(..)
                | UnquotedLiteral::Net(_),
            ) => {
                let message = format!("`{text}` is more than one value");
                self.fail_with(&literal.span, message, format!("write `in {{{text}}}`"))
            }
            _ => self.wrong_literal(literal, c, wants),
        }
    }

    fn all<T>(
        &mut self,
        literals: &[LiteralNode],
        c: &Comparison,
        wants: &str,
        read: fn(&LiteralKind) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items: Vec<Option<T>> = (literals.iter())
            .map(|literal| read(&literal.kind).or_else(|| self.wrong_literal(literal, c, wants)))
            .collect();
        items.into_iter().collect()
    }

    fn wrong_literal<T>(
        &mut self,
        literal: &LiteralNode,
        c: &Comparison,
        wants: &str,
    ) -> Option<T> {
        let kind = match literal.kind {
            LiteralKind::Text { .. } => "a string",
            LiteralKind::Bool(_) => "a boolean",
            LiteralKind::Atom(UnquotedLiteral::Int(_) | UnquotedLiteral::IntRange(..)) => {
                "an integer"
            }
            LiteralKind::Atom(_) => "an address",
        };
        let text = self.text(&literal.span);
        let message = format!("`{}` is {wants}; `{text}` is {kind}", c.left);
        match wants {
            "a string" => self.fail_with(&literal.span, message, format!("write `\"{text}\"`")),
            _ if kind == "a string" => {
                self.fail_with(&literal.span, message, "write it without the quotes")
            }
            _ => self.fail(&literal.span, message),
        }
    }

    /// The list on the right side, converted to the type of the left side.
    fn listed<T>(
        &mut self,
        c: &Comparison,
        is: &str,
        read: fn(&NamedList) -> Result<T, ListTypeError>,
    ) -> Option<T> {
        let CompareTarget::List { name, span } = c.right else {
            return None;
        };
        let Some(list) = self.env.lists.get(name) else {
            return self.unknown_list(name, span);
        };
        match read(list) {
            Ok(set) => Some(set),
            Err(misfit) => {
                let message = format!("`{}` is {is}; `${name}` holds {misfit}", c.left);
                self.fail_with(span, message, values_of(is))
            }
        }
    }

    fn unknown_list<T>(&mut self, name: &str, span: &Span) -> Option<T> {
        if name.starts_with("cf.") {
            let message = format!("only Cloudflare has the list `${name}`");
            let help = "define your own list in `[lists]`, or test `ip.src.asnum in {…}`";
            return self.fail_with(span, message, help);
        }
        let message = match nearest(name, self.env.lists.names()) {
            Some(near) => format!("unknown list `${name}`; did you mean `${near}`?"),
            None => format!("unknown list `${name}`"),
        };
        self.fail(span, message)
    }

    fn wrong_op<T>(&mut self, c: &Comparison, works: &str, is: &str) -> Option<T> {
        let op = self.text(c.op_span);
        self.fail(c.op_span, format!("`{op}` {works}; `{}` is {is}", c.left))
    }
}

/// The single value that the parser puts after every operator but `in`.
fn value(right: &CompareTarget) -> Option<&LiteralNode> {
    match right {
        CompareTarget::Value(literal) => Some(literal),
        _ => None,
    }
}

/// A description of the values that a list must have.
fn values_of(is: &str) -> &'static str {
    match is {
        "an integer" => "each value must be an integer or a range such as `1..5`",
        "an address" => "write each value as `192.0.2.1`, `192.0.2.0/24` or `192.0.2.1..192.0.2.9`",
        _ => "a string cannot be in a block or a range of addresses",
    }
}

fn order(op: CompareOp) -> Option<OrderOp> {
    match op {
        CompareOp::Lt => Some(OrderOp::Lt),
        CompareOp::Le => Some(OrderOp::Le),
        CompareOp::Gt => Some(OrderOp::Gt),
        CompareOp::Ge => Some(OrderOp::Ge),
        _ => None,
    }
}
