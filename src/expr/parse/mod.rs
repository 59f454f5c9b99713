//! Parses tokens into a tree. Knows the grammar and its precedence, but no fields and no types.
//!
//! ```text
//! or      = xor { ("or" | "||") xor }
//! xor     = and { ("xor" | "^^") and }
//! and     = not { ("and" | "&&") not }
//! not     = ("not" | "!") not | "(" or ")" | operand [ operator right ]
//! operand = ( field | function "(" or { "," or } ")" | literal ) { "[" index "]" }
//! ```
//!
//! Depth is limited, so that hostile input cannot exhaust the stack; long chains are flat.

mod operand;

use super::ExprError;
use super::ast::{
    CompareOp, CompareTarget, ExprNode, LiteralKind, LiteralNode, LogicOp, NodeKind, Operand,
};
use super::error::{error, fail, no_item, no_set, turned_round, unknown_operator};
use super::lex::lex;
use super::lex::{Span, Token, TokenKind};
use super::literal::{LiteralUse, decode};
use super::named::not_inlined;

/// The longest expression, in characters.
const MAX_CHARS: usize = 4096;
/// The deepest nesting of parentheses, calls and `not`.
const MAX_DEPTH: usize = 64;
/// Words that cannot be field names.
const RESERVED: [&str; 7] = ["and", "or", "xor", "not", "strict", "true", "false"];

type Parsed<T> = Result<T, ExprError>;

/// Parses a whole expression as a test.
pub(super) fn predicate(source: &str) -> Result<ExprNode, Vec<ExprError>> {
    whole(source, |parser| parser.or())
}

/// Parses a whole expression as a value.
pub(super) fn value(source: &str) -> Result<Operand, Vec<ExprError>> {
    whole(source, |parser| {
        let value = parser.operand()?;
        let (at, span) = (parser.at, parser.here());
        if let Ok(Some(_)) = parser.operator() {
            let help = Some("a value is a field or a function of fields");
            return fail(span, "expected a value, not a test", help);
        }
        parser.at = at;
        Ok(value)
    })
}

fn whole<T>(source: &str, rule: fn(&mut Parser) -> Parsed<T>) -> Result<T, Vec<ExprError>> {
    if let Some((end, _)) = source.char_indices().nth(MAX_CHARS) {
        let message = format!("the expression is longer than {MAX_CHARS} characters");
        return Err(vec![error(
            end..source.len(),
            message,
            Some("split the rule, or use a list"),
        )]);
    }
    let tokens = lex(source)?;
    let named = tokens.iter().filter_map(|token| match &token.kind {
        TokenKind::Named(name) => Some(not_inlined(name, token.span.clone())),
        _ => None,
    });
    let named: Vec<ExprError> = named.collect();
    if !named.is_empty() {
        return Err(named);
    }
    let mut parser = Parser {
        source,
        tokens: &tokens,
        at: 0,
        depth: 0,
    };
    rule(&mut parser)
        .and_then(|tree| parser.end().map(|()| tree))
        .map_err(|error| vec![error])
}

struct Parser<'a> {
    source: &'a str,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

// === impl Parser ===

impl<'a> Parser<'a> {
    fn or(&mut self) -> Parsed<ExprNode> {
        self.join(LogicOp::Or, ["or", "||"], Self::xor)
    }

    fn xor(&mut self) -> Parsed<ExprNode> {
        self.join(LogicOp::Xor, ["xor", "^^"], Self::and)
    }

    fn and(&mut self) -> Parsed<ExprNode> {
        self.join(LogicOp::And, ["and", "&&"], Self::not)
    }

    fn join(
        &mut self,
        logic: LogicOp,
        words: [&str; 2],
        part: fn(&mut Self) -> Parsed<ExprNode>,
    ) -> Parsed<ExprNode> {
        let first = part(self)?;
        if !words.iter().any(|word| self.peeks(word)) {
            return Ok(first);
        }
        let start = first.span.start;
        let mut parts = vec![first];
        while words.iter().any(|word| self.take(word)) {
            parts.push(part(self)?);
        }
        Ok(ExprNode {
            span: start..self.last_end(),
            kind: NodeKind::Join(logic, parts),
        })
    }

    fn not(&mut self) -> Parsed<ExprNode> {
        let start = self.here();
        if self.take("not") || self.take("!") {
            let inner = self.deeper(start.clone(), Self::not)?;
            let span = start.start..inner.span.end;
            return Ok(ExprNode {
                span,
                kind: NodeKind::Not(Box::new(inner)),
            });
        }
        if self.take("(") {
            let inner = self.deeper(start.clone(), Self::or)?;
            self.close(")", start)?;
            return Ok(inner);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parsed<ExprNode> {
        let left = self.operand()?;
        if self.peeks("not") {
            let operator = self.tokens.get(self.at + 1);
            let operator = operator.map_or("in", |token| self.text(&token.span));
            return Err(turned_round(self.here(), self.text(&left.span), operator));
        }
        let start = left.span.start;
        let kind = match self.operator()? {
            None => NodeKind::Alone(left),
            Some((op, op_span)) => {
                let right = self.right(op)?;
                NodeKind::Compare {
                    left,
                    op,
                    op_span,
                    right,
                }
            }
        };
        Ok(ExprNode {
            span: start..self.last_end(),
            kind,
        })
    }

    fn operator(&mut self) -> Parsed<Option<(CompareOp, Span)>> {
        let span = self.here();
        if self.take("strict") {
            return if self.take("wildcard") {
                Ok(Some((
                    CompareOp::StrictWildcard,
                    span.start..self.last_end(),
                )))
            } else {
                fail(span, "`strict` is allowed only before `wildcard`", None)
            };
        }
        let word = match self.peek() {
            Some(TokenKind::Name(word)) => &**word,
            Some(TokenKind::Sign(sign)) => sign,
            _ => return Ok(None),
        };
        match CompareOp::spelt(word) {
            Some(op) => {
                self.at += 1;
                Ok(Some((op, span)))
            }
            None if matches!(self.peek(), Some(TokenKind::Sign(_))) || is_reserved(word) => {
                Ok(None)
            }
            None => Err(unknown_operator(span, word)),
        }
    }

    fn right(&mut self, op: CompareOp) -> Parsed<CompareTarget> {
        let span = self.here();
        if let Some(TokenKind::List(name)) = self.peek() {
            self.at += 1;
            return match op {
                CompareOp::In => Ok(CompareTarget::List {
                    name: name.clone(),
                    span,
                }),
                _ => fail(span, "a list is compared with `in`", None),
            };
        }
        if self.take("{") {
            let set = self.set(span.clone())?;
            return match op {
                CompareOp::In => Ok(CompareTarget::Set(set)),
                _ => fail(
                    span.start..self.last_end(),
                    "a set is compared with `in`",
                    None,
                ),
            };
        }
        if op == CompareOp::In {
            return Err(no_set(self.found(), self.text(&self.found())));
        }
        if op == CompareOp::Matches && self.peeks("*") {
            let help = Some("`matches \"(?i)…\"` ignores case");
            return fail(self.here(), "`~*` is not an operator", help);
        }
        let reader = match op {
            CompareOp::Matches => LiteralUse::Regex,
            CompareOp::Wildcard | CompareOp::StrictWildcard => LiteralUse::Wildcard,
            _ => LiteralUse::Plain,
        };
        self.literal(reader)?
            .map(CompareTarget::Value)
            .ok_or_else(|| self.no_value())
    }

    fn no_value(&self) -> ExprError {
        let quotes = "strings need double quotes";
        let (message, help) = match self.peek() {
            Some(TokenKind::Name(name)) if !is_reserved(name) => (
                format!("the right side must be a value, not the name `{name}`"),
                if name.contains('.') {
                    quotes.into()
                } else {
                    format!("{quotes}: `\"{name}\"`")
                },
            ),
            _ => (
                "a value is missing after the operator".into(),
                quotes.into(),
            ),
        };
        error(self.found(), message, Some(&help))
    }

    fn set(&mut self, open: Span) -> Parsed<Vec<LiteralNode>> {
        let mut items = Vec::new();
        while !self.take("}") {
            if self.peeks(",") {
                let help = Some("write `{1 2 3}`");
                return fail(
                    self.here(),
                    "the values of a set are separated by spaces",
                    help,
                );
            }
            match self.literal(LiteralUse::Plain)? {
                Some(item) => items.push(item),
                None if self.peek().is_none() => {
                    return fail(open, "this set is never closed", Some("close it with `}`"));
                }
                None => return Err(no_item(self.here(), self.text(&self.here()))),
            }
        }
        if items.is_empty() {
            fail(open.start..self.last_end(), "this set is empty", None)
        } else {
            Ok(items)
        }
    }

    fn literal(&mut self, reader: LiteralUse) -> Parsed<Option<LiteralNode>> {
        let span = self.here();
        let kind = match self.peek() {
            Some(TokenKind::Atom(atom)) => LiteralKind::Atom(*atom),
            Some(TokenKind::Name(name)) if &**name == "true" => LiteralKind::Bool(true),
            Some(TokenKind::Name(name)) if &**name == "false" => LiteralKind::Bool(false),
            Some(TokenKind::Text { body, raw }) => {
                let text = self.source.get(body.clone()).unwrap_or("");
                let bytes = if *raw {
                    text.as_bytes().into()
                } else {
                    decode(self.source, body.clone(), reader)?
                };
                LiteralKind::Text {
                    bytes,
                    body: body.clone(),
                }
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(LiteralNode { span, kind }))
    }

    fn end(&self) -> Parsed<()> {
        match self.peek() {
            None => Ok(()),
            Some(TokenKind::Sign(")")) => {
                fail(self.here(), "this parenthesis was never opened", None)
            }
            Some(TokenKind::Name(word)) if LogicOp::spelt(&word.to_ascii_lowercase()) => {
                Err(unknown_operator(self.here(), word))
            }
            Some(_) => fail(
                self.here(),
                "the expression should end here",
                Some("join tests with `and`, `xor` or `or`"),
            ),
        }
    }

    fn deeper<T>(&mut self, span: Span, rule: fn(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} levels deep");
            return fail(span, message, None);
        }
        self.depth += 1;
        let parsed = rule(self);
        self.depth -= 1;
        parsed
    }

    fn close(&mut self, sign: &'static str, open: Span) -> Parsed<()> {
        if self.take(sign) {
            return Ok(());
        }
        if self.peek().is_none() {
            let what = if sign == ")" {
                "parenthesis"
            } else {
                "bracket"
            };
            let help = format!("close it with `{sign}`");
            return fail(open, format!("this {what} is never closed"), Some(&help));
        }
        fail(self.here(), format!("expected `{sign}` here"), None)
    }

    fn peek(&self) -> Option<&'a TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn peeks(&self, word: &str) -> bool {
        match self.peek() {
            Some(TokenKind::Name(name)) => &**name == word,
            Some(TokenKind::Sign(sign)) => *sign == word,
            _ => false,
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peeks(word);
        self.at += usize::from(found);
        found
    }

    /// The span of the next token; empty at the end.
    fn here(&self) -> Span {
        let end = self.source.len();
        self.tokens
            .get(self.at)
            .map_or(end..end, |token| token.span.clone())
    }

    fn text(&self, span: &Span) -> &'a str {
        self.source.get(span.clone()).unwrap_or_default()
    }

    /// The span of an error about something missing: the next token, or the last one at the end.
    fn found(&self) -> Span {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(0..self.source.len(), |token| token.span.clone())
    }

    fn last_end(&self) -> usize {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        before.map_or(0, |token| token.span.end)
    }
}

fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word) || CompareOp::spelt(word).is_some()
}
