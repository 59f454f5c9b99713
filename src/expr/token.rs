//! What the lexer hands to the parser: tokens with byte spans.

use std::net::IpAddr;
use std::ops::Range;

use ipnet::IpNet;

/// Byte offsets into the source.
pub(super) type Span = Range<usize>;

/// One token and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// The kinds of token. Word operators are names until the parser reads them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A field, a function or a word operator.
    Name(Box<str>),
    /// A string, not decoded yet: what an escape means depends on the operator before it.
    Text { body: Span, raw: bool },
    /// A number, an address or a range of them.
    Atom(Atom),
    /// `$name`, without the dollar.
    List(Box<str>),
    /// Punctuation and symbolic operators.
    Sign(&'static str),
}

/// A literal that needs no quotes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Atom {
    Int(i64),
    IntRange(i64, i64),
    Ip(IpAddr),
    IpRange(IpAddr, IpAddr),
    Net(IpNet),
}
