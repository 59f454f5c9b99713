//! A second reader of request heads, which shares nothing with the gateway: RFC 9112 to the letter,
//! and `None` for whatever is not in it.

use lockgate::facts::BodyLength;

/// A head as it stands in bytes.
#[derive(Debug)]
pub struct Seen<'b> {
    pub method: &'b str,
    pub target: &'b str,
    pub fields: Vec<(&'b str, &'b [u8])>,
    pub length: BodyLength,
}

// === impl Seen ===

impl<'b> Seen<'b> {
    /// Reads a head of HTTP/1.1 with nothing behind it.
    pub fn read(bytes: &'b [u8]) -> Option<Self> {
        let lines = bytes.strip_suffix(b"\r\n\r\n")?;
        let mut lines = split(lines)?.into_iter();
        let line = std::str::from_utf8(lines.next()?).ok()?;
        let [method, target, "HTTP/1.1"] = line.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let fields = lines.map(field).collect::<Option<Vec<_>>>()?;
        let length = length(&fields)?;
        let visible = |b: u8| b > b' ' && b != 0x7f && b != b'#';
        let plain = target.bytes().all(visible);
        let path = target.starts_with('/') || target == "*" && method == "OPTIONS";
        let host = fields.iter().filter(|(name, _)| *name == "host").count();
        (is_token(method) && plain && path && host == 1).then_some(Self {
            method,
            target,
            fields,
            length,
        })
    }

    /// The value of a field that stands there once.
    pub fn only(&self, name: &str) -> &'b [u8] {
        let mut found = self.fields.iter().filter(|(own, _)| *own == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => value,
            (first, _) => panic!("{name} stands there {first:?} times in {self:?}"),
        }
    }
}

/// Lines that end with CR LF; a CR or LF anywhere else is none.
fn split(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let count = bytes.iter().filter(|byte| **byte == b'\n').count();
    let lines = lines.enumerate().map(|(at, line)| match at == count {
        true => Some(line),
        false => line.strip_suffix(b"\r"),
    });
    let lines = lines.collect::<Option<Vec<_>>>()?;
    let bare = |line: &&[u8]| line.contains(&b'\r') || line.contains(&0);
    (!lines.iter().any(bare)).then_some(lines)
}

/// In lower case, with one space and no control characters.
fn field(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at(colon);
    let name = std::str::from_utf8(name).ok()?;
    let value = value.strip_prefix(b": ")?;
    let control = |byte: &u8| *byte != b'\t' && byte.is_ascii_control();
    let lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    (is_token(name) && lower && !value.iter().any(control)).then_some((name, value))
}

/// One length, or chunks, or none.
fn length(fields: &[(&str, &[u8])]) -> Option<BodyLength> {
    let all = |name: &str| -> Vec<&[u8]> {
        let own = fields.iter().filter(|field| field.0 == name);
        own.map(|field| field.1).collect()
    };
    match (&all("content-length")[..], &all("transfer-encoding")[..]) {
        ([], []) => Some(BodyLength::None),
        ([], [b"chunked"]) => Some(BodyLength::Unknown),
        ([digits], []) if digits.iter().all(u8::is_ascii_digit) => {
            let text = std::str::from_utf8(digits).ok()?;
            text.parse().ok().map(BodyLength::Declared)
        }
        _ => None,
    }
}

fn is_token(text: &str) -> bool {
    let may = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(may)
}
