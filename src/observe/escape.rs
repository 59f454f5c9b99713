//! Escapes untrusted bytes for output. The result is one line of valid UTF-8 without control characters
//! and without characters that reorder or hide text.

/// How to write a character that must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Json,
    Text,
}

/// Appends a JSON string with quotes. A byte that is not UTF-8 becomes the four characters `\xHH`, because
/// JSON has no escape for bytes.
pub(super) fn json(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    escaped(out, value, Style::Json);
    out.push(b'"');
}

/// Appends a value for text output: unquoted if it is one plain word, otherwise quoted.
pub(super) fn word(out: &mut Vec<u8>, value: &[u8]) {
    let is_bare = |b: &u8| plain(*b) && !matches!(b, b' ' | b'=');
    if !value.is_empty() && value.iter().all(is_bare) {
        return out.extend_from_slice(value);
    }
    out.push(b'"');
    text(out, value);
    out.push(b'"');
}

/// Appends a value for text output without quotes.
pub(super) fn text(out: &mut Vec<u8>, value: &[u8]) {
    escaped(out, value, Style::Text);
}

fn escaped(out: &mut Vec<u8>, value: &[u8], style: Style) {
    if is_plain(value) {
        return out.extend_from_slice(value);
    }
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            one(out, c, style);
        }
        for b in chunk.invalid() {
            byte(out, *b, style);
        }
    }
}

/// Returns whether no byte needs an escape. Compares eight bytes at once: without branches the compiler can
/// vectorize it. The last eight bytes may overlap the previous ones.
fn is_plain(value: &[u8]) -> bool {
    let all_plain = |chunk: &[u8; 8]| chunk.iter().fold(true, |all, b| all & plain(*b));
    match value.last_chunk() {
        Some(last) => all_plain(last) && value.as_chunks().0.iter().all(all_plain),
        None => value.iter().all(|b| plain(*b)),
    }
}

const fn plain(b: u8) -> bool {
    matches!(b, 0x20..=0x7e) & (b != b'"') & (b != b'\\')
}

fn one(out: &mut Vec<u8>, c: char, style: Style) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        c if is_unsafe(c) => code(out, u32::from(c), style),
        c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Returns whether a character is a control character, a line separator, or a format character that can
/// disguise a line. All are in the basic plane, so one JSON escape is enough.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{61c}' | '\u{feff}')
}

fn code(out: &mut Vec<u8>, code: u32, style: Style) {
    let (open, close): (&[u8], &[u8]) = match style {
        Style::Json => (b"\\u", b""),
        Style::Text => (b"\\u{", b"}"),
    };
    out.extend_from_slice(open);
    out.extend([12, 8, 4, 0].map(|shift| hex(code >> shift)));
    out.extend_from_slice(close);
}

fn byte(out: &mut Vec<u8>, b: u8, style: Style) {
    if style == Style::Json {
        out.push(b'\\');
    }
    out.extend_from_slice(b"\\x");
    out.push(hex(u32::from(b) >> 4));
    out.push(hex(u32::from(b)));
}

/// Returns the lowest four bits as a hexadecimal digit.
const fn hex(nibble: u32) -> u8 {
    match (nibble & 15) as u8 {
        digit @ 0..10 => b'0' + digit,
        letter => b'a' + letter - 10,
    }
}

#[cfg(test)]
mod tests;
