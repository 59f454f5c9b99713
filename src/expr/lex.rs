//! Splits source text into tokens. Knows no fields and no grammar; reports all bad characters at once.

use std::ops::Range;

use super::ExprError;
use super::literal::{UnquotedLiteral, atom};

/// Byte offsets into the source.
pub(super) type Span = Range<usize>;

/// One token and its span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// The kinds of token. Word operators are names until the parser reads them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A field, a function or a word operator.
    Name(Box<str>),
    /// A string, not decoded yet: the meaning of an escape depends on the operator before it.
    Text { body: Span, raw: bool },
    /// A number, an address or a range of them.
    Atom(UnquotedLiteral),
    /// `$name`, without the dollar.
    List(Box<str>),
    /// `@name`, without the at sign.
    Named(Box<str>),
    /// Punctuation and symbolic operators.
    Sign(&'static str),
}

/// Longer signs come before their prefixes.
const SIGNS: [&str; 19] = [
    "==", "!=", "<=", ">=", "&&", "^^", "||", "(", ")", "{", "}", "[", "]", ",", "*", "<", ">",
    "~", "!",
];

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
    errors: Vec<ExprError>,
}

/// Splits `source` into tokens, or returns all errors in it.
pub(super) fn lex(source: &str) -> Result<Vec<Token>, Vec<ExprError>> {
    let mut lexer = Lexer {
        source,
        at: 0,
        tokens: Vec::new(),
        errors: Vec::new(),
    };
    while lexer.step() {}
    if lexer.errors.is_empty() {
        Ok(lexer.tokens)
    } else {
        Err(lexer.errors)
    }
}

// === impl Lexer ===

impl<'a> Lexer<'a> {
    fn step(&mut self) -> bool {
        let trimmed = self
            .remaining_text()
            .trim_start_matches([' ', '\t', '\r', '\n']);
        self.at = self.source.len() - trimmed.len();
        let Some(first) = trimmed.chars().next() else {
            return false;
        };
        match first {
            '"' => self.quoted(),
            'r' if hashes(trimmed).is_some() => self.raw(hashes(trimmed).unwrap_or(0)),
            '$' => self.list(),
            '@' => self.named(),
            c if is_word(c) => self.word(),
            c => self.sign(c),
        }
        true
    }

    fn remaining_text(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn push(&mut self, kind: TokenKind, len: usize) {
        let span = self.at..self.at + len;
        self.at = span.end;
        self.tokens.push(Token { kind, span });
    }

    fn fail(&mut self, len: usize, message: String, help: Option<&str>) {
        let span = self.at..self.at + len;
        self.at = span.end;
        self.errors.push(ExprError {
            span,
            message,
            help: help.map(str::to_owned),
        });
    }

    fn quoted(&mut self) {
        let mut escaped = false;
        let end = self
            .remaining_text()
            .char_indices()
            .skip(1)
            .find(|&(_, c)| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
        match end {
            Some((end, _)) => self.text(1, end, end + 1, false),
            None => self.unterminated("\""),
        }
    }

    fn raw(&mut self, hashes: usize) {
        let close = format!("\"{}", "#".repeat(hashes));
        let open = hashes + 2;
        match self
            .remaining_text()
            .get(open..)
            .and_then(|body| body.find(&close))
        {
            Some(len) => self.text(open, open + len, open + len + close.len(), true),
            None => self.unterminated(&close),
        }
    }

    fn text(&mut self, from: usize, to: usize, len: usize, raw: bool) {
        let body: Span = self.at + from..self.at + to;
        self.push(TokenKind::Text { body, raw }, len);
    }

    fn unterminated(&mut self, close: &str) {
        let help = format!("close it with `{close}`");
        self.fail(
            self.remaining_text().len(),
            "this string is never closed".into(),
            Some(&help),
        );
    }

    fn list(&mut self) {
        let name = self.remaining_text().get(1..).unwrap_or("");
        let len = name.find(|c: char| !is_list(c)).unwrap_or(name.len());
        match name.get(..len) {
            Some(name) if len > 0 => self.push(TokenKind::List(name.into()), len + 1),
            _ => self.fail(
                1,
                "`$` needs the name of a list".into(),
                Some("write `$office`"),
            ),
        }
    }

    fn named(&mut self) {
        let name = self.remaining_text().get(1..).unwrap_or("");
        let len = name.find(|c: char| !is_named(c)).unwrap_or(name.len());
        match name.get(..len) {
            Some(name) if len > 0 => self.push(TokenKind::Named(name.into()), len + 1),
            _ => self.fail(
                1,
                "`@` needs the name of an expression".into(),
                Some("write `@login`, and define `login` in `[expressions]`"),
            ),
        }
    }

    fn word(&mut self) {
        let rest = self.remaining_text();
        let len = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let word = rest.get(..len).unwrap_or("");
        if !word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || word.contains(':') {
            match atom(word) {
                Ok(atom) => self.push(TokenKind::Atom(atom), len),
                Err((message, help)) => self.fail(len, message, help),
            }
        } else if word.contains(['-', '/']) {
            let help = match word.rsplit_once('.') {
                Some((map, name)) if is_map(map) => format!("write `{map}[\"{name}\"]`"),
                _ => "strings need double quotes".to_owned(),
            };
            self.fail(len, format!("`{word}` is not a name"), Some(&help));
        } else {
            self.push(TokenKind::Name(word.into()), len);
        }
    }

    fn sign(&mut self, first: char) {
        if let Some(sign) = SIGNS
            .iter()
            .find(|sign| self.remaining_text().starts_with(**sign))
        {
            return self.push(TokenKind::Sign(sign), sign.len());
        }
        let message = format!("`{}` is not an operator", first.escape_debug());
        match first {
            '&' => self.push(TokenKind::Sign("&"), 1),
            '=' => self.fail(1, message, Some("write `eq` or `==`")),
            '|' => self.fail(1, message, Some("write `or` or `||`")),
            '^' => self.fail(1, message, Some("write `xor` or `^^`")),
            '\'' => self.quoted_otherwise(&['\'']),
            '“' | '”' | '„' => self.quoted_otherwise(&['“', '”']),
            '#' => self.fail(1, message, Some("an expression has no comments")),
            c => self.fail(c.len_utf8(), message, None),
        }
    }

    /// A string in typographic quotes, as word processors insert them.
    fn quoted_otherwise(&mut self, close: &[char]) {
        let mut chars = self
            .remaining_text()
            .char_indices()
            .map(|(at, c)| (at + c.len_utf8(), c));
        let open = chars.next().map_or(0, |(end, _)| end);
        let close = chars.find(|(_, c)| close.contains(c));
        self.fail(
            close.map_or(open, |(end, _)| end),
            "strings need double quotes".into(),
            Some("write `\"…\"`"),
        );
    }
}

/// The number of `#` at the start of a raw string. `None` if `text` does not start one.
fn hashes(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let body = after.trim_start_matches('#');
    body.starts_with('"').then(|| after.len() - body.len())
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-')
}

/// Whether a name is that of a map: `http.request.headers`.
fn is_map(name: &str) -> bool {
    ["headers", "cookies", "args"]
        .iter()
        .any(|map| name.ends_with(map))
}

fn is_list(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether the name of an expression can contain `c`.
fn is_named(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
