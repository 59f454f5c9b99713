//! The text of a key in listings, and its inverse.
//!
//! Parts are joined by spaces. A string is quoted as in JSON if its text could be read as something else; `-` is a
//! missing part. Secret parts are hashed, and long strings end in `…`: such text cannot be read back.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::net::IpAddr;

use ipnet::IpNet;

use super::key::{Key, KeyPart, MissingPart};
use super::key_buffer::KeyBuffer;
use crate::expr::{ScalarValue, ValueType, unescape_json};

/// The longest text of a key in listings, in bytes.
const LONGEST_TEXT: usize = 256;

/// What ends text that was cut.
pub(super) const CUT: char = '…';

/// The start of a hash of a secret value, as `observe::Redactor` writes it.
const HASH_START: &str = "h:";

/// The text of a missing part.
const MISSING: &str = "-";

/// Why the text of a key cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyTextError {
    /// The text has another number of parts than the key.
    PartCount {
        /// The parts in the text.
        found: usize,
        /// The parts of the key, as written in the rule.
        expected: Vec<String>,
    },
    /// Text in quotes is not a JSON string.
    Quotes,
    /// This part is secret: its text is a hash.
    Hashed(String),
    /// The text of this part was cut, or it is not all of the bytes of the value.
    Cut(String),
    /// The text of this part is no such value.
    Value {
        /// The part, as written in the rule.
        part: String,
        /// What would be right.
        expected: &'static str,
    },
}

/// A part of a key as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownPart<'a> {
    /// The part, as written in the rule.
    pub field: &'a str,
    /// Whether the value is an address or a network.
    pub is_address: bool,
    /// The text, without quotes. `None` if the part is missing.
    pub value: Option<String>,
}

/// The text of one part.
struct PartText<'t> {
    text: Cow<'t, str>,
    is_quoted: bool,
    /// Whether more text follows the closing quote.
    is_cut: bool,
}

// === impl Key ===

impl Key {
    /// Formats the key's bytes for a listing: [`Key::describe`] with at most 256 bytes.
    pub fn list(&self, bytes: &[u8], hash: &dyn Fn(&[u8]) -> String) -> String {
        let mut text = self.describe(bytes, hash);
        if text.len() > LONGEST_TEXT {
            text.truncate(cut_text(&text, LONGEST_TEXT - CUT.len_utf8()).len());
            text.push(CUT);
        }
        text
    }

    /// Splits the text of [`Key::describe`] or [`Key::list`] into its parts. Parts that were cut off are left out.
    pub fn shown_parts(&self, text: &str) -> Vec<ShownPart<'_>> {
        let (mut rest, mut shown) = (text, Vec::new());
        for part in &self.parts {
            let Some((text, after)) = split_part(rest) else {
                break;
            };
            let is_missing = text.text == MISSING && !text.is_quoted;
            shown.push(ShownPart {
                field: part.scalar.source(),
                is_address: part.scalar.ty() == ValueType::Ip,
                value: (!is_missing).then(|| text.text.into_owned()),
            });
            rest = after;
        }
        shown
    }

    /// Splits the text of the first part off the text of a key, as it is written. `None` at the end.
    pub fn split_text_part(text: &[u8]) -> Option<(&[u8], &[u8])> {
        let mut is_quoted = false;
        let mut is_escaped = false;
        let end = text.iter().enumerate().position(|(index, byte)| {
            if *byte == b'"' && !is_escaped {
                is_quoted = index == 0;
            }
            is_escaped = *byte == b'\\' && is_quoted && !is_escaped;
            *byte == b' ' && !is_quoted
        });
        if text.is_empty() {
            return None;
        }
        let (part, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
        Some((part, rest.get(1..).unwrap_or_default()))
    }

    /// Reads the text of a listing back into the key's bytes. An address of a key that counts networks stands for its
    /// network.
    pub fn read(&self, text: &str) -> Result<Vec<u8>, KeyTextError> {
        let texts = split(text)?;
        if texts.len() != self.parts.len() {
            let parts = self.parts.iter();
            return Err(KeyTextError::PartCount {
                found: texts.len(),
                expected: parts.map(|p| p.scalar.source().to_owned()).collect(),
            });
        }
        let mut bytes = KeyBuffer::new();
        for (part, text) in self.parts.iter().zip(&texts) {
            part.read(text, self.missing, &mut bytes)?;
        }
        Ok(bytes.to_vec())
    }
}

// === impl KeyPart ===

impl KeyPart {
    fn read(
        &self,
        text: &PartText<'_>,
        missing: MissingPart,
        out: &mut KeyBuffer,
    ) -> Result<(), KeyTextError> {
        let name = || self.scalar.source().to_owned();
        let wrong = |expected| KeyTextError::Value {
            part: name(),
            expected,
        };
        if text.text == MISSING && !text.is_quoted {
            if missing == MissingPart::Skip {
                return Err(wrong("a value, because the rule skips requests without it"));
            }
            self.write_missing(out);
            return Ok(());
        }
        if self.secret {
            return Err(KeyTextError::Hashed(name()));
        }
        if text.is_cut || (text.text.ends_with(CUT) && !text.is_quoted) {
            return Err(KeyTextError::Cut(name()));
        }
        let value = match self.scalar.ty() {
            ValueType::Int => ScalarValue::Int(text.parse().ok_or(wrong("an integer"))?),
            ValueType::Bool => ScalarValue::Bool(text.parse().ok_or(wrong("true or false"))?),
            ValueType::Ip => ScalarValue::Ip(self.read_ip(text).ok_or(wrong(
                "an address, or a network of the length that the rule counts",
            ))?),
            ValueType::Bytes | ValueType::Map | ValueType::Array => {
                if text.text.contains(char::REPLACEMENT_CHARACTER) {
                    return Err(KeyTextError::Cut(name()));
                }
                ScalarValue::Bytes(Cow::Borrowed(text.text.as_bytes()))
            }
        };
        self.write(value, out);
        Ok(())
    }

    fn read_ip(&self, text: &PartText<'_>) -> Option<IpAddr> {
        if let Some(ip) = text.parse::<IpAddr>() {
            return Some(ip.to_canonical());
        }
        let network: IpNet = text.parse()?;
        let prefixes = self.prefixes?;
        (prefixes.length(network.addr()) == network.prefix_len()).then(|| network.network())
    }
}

// === impl PartText ===

impl PartText<'_> {
    /// Reads an unquoted value. `None` if the text is not an unquoted value.
    fn parse<T: std::str::FromStr>(&self) -> Option<T> {
        self.text.parse().ok().filter(|_| !self.is_quoted)
    }
}

/// Returns the start of `text`: whole characters of at most `longest` bytes.
pub fn cut_text(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev();
    let end = end.into_iter().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// Splits the text of a key at the spaces between its parts.
fn split(text: &str) -> Result<Vec<PartText<'_>>, KeyTextError> {
    let (mut rest, mut parts) = (text, Vec::new());
    while !rest.is_empty() {
        let (part, after) = split_part(rest).ok_or(KeyTextError::Quotes)?;
        parts.push(part);
        rest = after;
    }
    Ok(parts)
}

/// Splits the first part off. Returns what follows the space behind it.
fn split_part(text: &str) -> Option<(PartText<'_>, &str)> {
    if text.is_empty() {
        return None;
    }
    if text.starts_with('"') {
        return split_quoted(text);
    }
    let (word, after) = text.split_once(' ').unwrap_or((text, ""));
    let part = PartText {
        text: word.into(),
        is_quoted: false,
        is_cut: false,
    };
    Some((part, after))
}

/// Splits a quoted string off. Returns what follows the space behind it.
fn split_quoted(text: &str) -> Option<(PartText<'_>, &str)> {
    let mut is_escaped = false;
    let close = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    })?;
    let body = unescape_json(text.get(1..close.0)?.as_bytes())?;
    let after = text.get(close.0 + 1..)?;
    let (cut, after) = after.split_once(' ').unwrap_or((after, ""));
    let is_cut = cut.starts_with(CUT);
    let part = PartText {
        text: String::from_utf8(body).ok()?.into(),
        is_quoted: true,
        is_cut,
    };
    (cut.is_empty() || is_cut).then_some((part, after))
}

/// Appends a string as a word, or quoted as in JSON.
pub(super) fn show_string(bytes: &[u8], text: &mut String) {
    let string = String::from_utf8_lossy(bytes);
    if is_word(&string) {
        text.push_str(&string);
        return;
    }
    text.push('"');
    for c in string.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

/// Whether a string is not quoted.
fn is_word(string: &str) -> bool {
    let is_plain =
        |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\' | CUT);
    let looks_special = string.is_empty() || string == MISSING || string.starts_with(HASH_START);
    !looks_special && string.chars().all(is_plain)
}

fn parts_text(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} part{plural}")
}

// === impl KeyTextError ===

impl fmt::Display for KeyTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyTextError::PartCount { found, expected } if expected.is_empty() => {
                let found = parts_text(*found);
                write!(
                    f,
                    "the key has {found}, but the rule counts all requests together: its key is empty"
                )
            }
            KeyTextError::PartCount { found, expected } => {
                let (count, parts) = (expected.len(), expected.join(", "));
                let found = parts_text(*found);
                write!(
                    f,
                    "the key has {found}, but that of the rule has {count}: {parts}"
                )
            }
            KeyTextError::Quotes => {
                f.write_str("the key has text in quotes that is not a JSON string")
            }
            KeyTextError::Hashed(part) => write!(
                f,
                "{part} is secret, and listings show only its hash: use the id of the ban"
            ),
            KeyTextError::Cut(part) => write!(
                f,
                "{part} is not shown completely in listings: use the id of the ban"
            ),
            KeyTextError::Value { part, expected } => write!(f, "{part} must be {expected}"),
        }
    }
}

impl std::error::Error for KeyTextError {}
