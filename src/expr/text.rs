//! Decoding of quoted strings. Which escapes exist depends on who reads the string: a regex has
//! its own, and `\*` means something to `wildcard` alone.

use super::Error;
use super::token::Span;

/// Who reads the string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// A comparison or a function.
    Plain,
    /// `matches`: all but `\"` goes through.
    Regex,
    /// `wildcard`: `\*` goes through too.
    Wildcard,
}

/// The bytes that the text at `body` stands for.
pub(super) fn decode(source: &str, body: Span, reader: Reader) -> Result<Box<[u8]>, Error> {
    let mut out = Vec::with_capacity(body.len());
    let mut at = body.start;
    while let Some(rest) = source.get(at..body.end).filter(|rest| !rest.is_empty()) {
        let plain = rest.find('\\').unwrap_or(rest.len());
        out.extend_from_slice(rest.get(..plain).unwrap_or("").as_bytes());
        at += plain;
        if let Some(rest) = rest.get(plain..).filter(|rest| !rest.is_empty()) {
            at += escape(rest, reader, &mut out).map_err(|len| unknown(rest, at, len))?;
        }
    }
    Ok(out.into())
}

/// Decodes the escape that `rest` starts with and returns its length; the error is the length of
/// what is wrong.
fn escape(rest: &str, reader: Reader, out: &mut Vec<u8>) -> Result<usize, usize> {
    let next = rest.chars().nth(1).ok_or(1usize)?;
    let len = 1 + next.len_utf8();
    match (next, reader) {
        ('"', _) => out.push(b'"'),
        (_, Reader::Regex) | ('*', Reader::Wildcard) => {
            out.extend_from_slice(rest.get(..len).unwrap_or("").as_bytes());
        }
        ('\\', _) => out.push(b'\\'),
        ('x', _) => return number(rest, 2, 16, 2, out),
        ('0'..='7', _) => return number(rest, 1, 8, 3, out),
        _ => return Err(len),
    }
    Ok(len)
}

fn number(
    rest: &str,
    from: usize,
    radix: u32,
    digits: usize,
    out: &mut Vec<u8>,
) -> Result<usize, usize> {
    let text = rest.get(from..from + digits).ok_or(from)?;
    if !text.chars().all(|c| c.is_digit(radix)) {
        return Err(from);
    }
    out.push(u8::from_str_radix(text, radix).map_err(|_| from + digits)?);
    Ok(from + digits)
}

fn unknown(rest: &str, at: usize, len: usize) -> Error {
    let text = rest.get(..len).unwrap_or("\\");
    Error {
        span: at..at + len,
        message: format!("unknown escape `{text}`"),
        help: Some("escapes are `\\\"`, `\\\\`, `\\xHH` and `\\OOO`; r\"…\" has none".into()),
    }
}
