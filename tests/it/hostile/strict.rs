//! A reader that takes one spelling of a request and no other: what an origin gets from the
//! gateway must be that, to the byte.

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Message {
    /// `GET /path HTTP/1.1`.
    pub line: String,
    /// Fields in order.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Trailers in order.
    pub trailers: Vec<(String, String)>,
}

/// What the first bytes of a connection are.
pub enum Read {
    /// A request, and how many bytes it has.
    Whole(Message, usize),
    /// The beginning of one.
    More,
    /// Something else.
    Wrong(String),
}

type Step<T> = Result<T, Stop>;

enum Stop {
    More,
    Wrong(String),
}

impl Message {
    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Reads the first request in `bytes`.
pub fn read(bytes: &[u8]) -> Read {
    let mut rest = bytes;
    match message(&mut rest) {
        Ok(message) => Read::Whole(message, bytes.len() - rest.len()),
        Err(Stop::More) => Read::More,
        Err(Stop::Wrong(why)) => Read::Wrong(why),
    }
}

fn message(rest: &mut &[u8]) -> Step<Message> {
    let line = line(rest)?;
    check_line(&line)?;
    let fields = fields(rest)?;
    check_host(&fields)?;
    check_connection(&fields)?;
    let (body, trailers) = body(rest, &fields)?;
    Ok(Message {
        line,
        fields,
        body,
        trailers,
    })
}

/// A line without its end, which is CRLF; its bytes as Latin-1.
fn line(rest: &mut &[u8]) -> Step<String> {
    let end = rest.iter().position(|b| *b == b'\n').ok_or(Stop::More)?;
    let line = rest[..end].strip_suffix(b"\r");
    let line = line.ok_or_else(|| wrong("a line ends in LF alone", &rest[..end]))?;
    if line.contains(&b'\r') {
        return Err(wrong("a CR within a line", line));
    }
    *rest = &rest[end + 1..];
    Ok(line.iter().copied().map(char::from).collect())
}

fn check_line(line: &str) -> Step<()> {
    let parts: Vec<&str> = line.split(' ').collect();
    let right = match parts[..] {
        [method, target, "HTTP/1.1"] => {
            let any_server = method == "OPTIONS" && target == "*";
            let path = target.starts_with('/') && target.chars().all(|c| c > ' ' && c != '\u{7f}');
            let whole = target
                .split('?')
                .next()
                .unwrap()
                .chars()
                .all(|c| c < '\u{7f}');
            is_token(method) && (any_server || path && whole && !target.contains('#'))
        }
        _ => false,
    };
    right
        .then_some(())
        .ok_or_else(|| wrong("request line", line.as_bytes()))
}

fn fields(rest: &mut &[u8]) -> Step<Vec<(String, String)>> {
    let mut fields = Vec::new();
    loop {
        let line = line(rest)?;
        if line.is_empty() {
            return Ok(fields);
        }
        let field = line.split_once(": ").filter(|(name, value)| {
            let lower = !name.contains(|c: char| c.is_ascii_uppercase());
            let control = |c: char| c < ' ' && c != '\t' || c == '\u{7f}';
            let trimmed = value.trim_matches([' ', '\t']) == *value;
            is_token(name) && lower && trimmed && !value.contains(control)
        });
        let (name, value) = field.ok_or_else(|| wrong("field", line.as_bytes()))?;
        fields.push((name.to_owned(), value.to_owned()));
    }
}

/// One host, and one that every reader takes for the same.
fn check_host(fields: &[(String, String)]) -> Step<()> {
    let hosts: Vec<&str> = all(fields, "host").collect();
    let may = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._:[]".contains(c);
    match hosts[..] {
        [host] if host.chars().all(may) => Ok(()),
        _ => Err(Stop::Wrong(format!("hosts {hosts:?}"))),
    }
}

/// Nothing is left of what the client said about its own connection.
fn check_connection(fields: &[(String, String)]) -> Step<()> {
    for (name, value) in fields {
        let right = match name.as_str() {
            "connection" => ["te", "upgrade"].contains(&value.as_str()),
            "te" => value == "trailers",
            "upgrade" => value == "websocket",
            "http2-settings" | "keep-alive" | "proxy-connection" | "expect" => false,
            _ => !is_twin(name),
        };
        if !right {
            return Err(Stop::Wrong(format!("{name}: {value}")));
        }
    }
    Ok(())
}

/// Another spelling of a field that says who the client is or how long a body is.
fn is_twin(name: &str) -> bool {
    let plain = name.replace('_', "-");
    let guarded = [
        "x-forwarded-",
        "x-real-ip",
        "content-length",
        "transfer-encoding",
    ];
    plain != name && guarded.iter().any(|guarded| plain.starts_with(guarded))
}

type Body = (Vec<u8>, Vec<(String, String)>);

fn body(rest: &mut &[u8], fields: &[(String, String)]) -> Step<Body> {
    let lengths: Vec<&str> = all(fields, "content-length").collect();
    let codings: Vec<&str> = all(fields, "transfer-encoding").collect();
    match (&lengths[..], &codings[..]) {
        ([], []) => Ok(Body::default()),
        ([length], []) => {
            let number: usize = length.parse().unwrap_or(usize::MAX);
            if number.to_string() != *length {
                return Err(Stop::Wrong(format!("content-length: {length}")));
            }
            Ok((take(rest, number)?, Vec::new()))
        }
        ([], ["chunked"]) => chunks(rest),
        _ => Err(Stop::Wrong(format!("framed by {lengths:?} {codings:?}"))),
    }
}

fn chunks(rest: &mut &[u8]) -> Step<Body> {
    let mut body = Vec::new();
    loop {
        let written = line(rest)?;
        let size = usize::from_str_radix(&written, 16).unwrap_or(usize::MAX);
        if format!("{size:x}") != written.to_ascii_lowercase() {
            return Err(Stop::Wrong(format!("chunk size {written:?}")));
        }
        if size == 0 {
            return Ok((body, fields(rest)?));
        }
        body.extend(take(rest, size)?);
        if !line(rest)?.is_empty() {
            return Err(Stop::Wrong("a chunk without an end".into()));
        }
    }
}

fn take(rest: &mut &[u8], length: usize) -> Step<Vec<u8>> {
    let (taken, after) = rest.split_at_checked(length).ok_or(Stop::More)?;
    *rest = after;
    Ok(taken.to_vec())
}

fn all<'a>(fields: &'a [(String, String)], name: &str) -> impl Iterator<Item = &'a str> {
    let named = fields.iter().filter(move |(n, _)| n == name);
    named.map(|(_, value)| value.as_str())
}

fn is_token(text: &str) -> bool {
    let may = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(may)
}

fn wrong(what: &str, bytes: &[u8]) -> Stop {
    Stop::Wrong(format!("{what}: {:?}", String::from_utf8_lossy(bytes)))
}
