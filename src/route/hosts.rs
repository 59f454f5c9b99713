//! The hosts of a route.

use crate::facts::host;

/// One host of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Any host.
    Any,
    /// This name; `None`: on any port.
    Exact(Box<str>, Option<Box<str>>),
    /// Every name that ends so, dot included; `None`: on any port.
    Below(Box<str>, Option<Box<str>>),
}

// === impl HostPattern ===

impl HostPattern {
    /// Reads a host of a route; the error is one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        // Port 0 is nobody's default: whatever port is written stays.
        let host = host::parse(name, 0).ok_or_else(|| mistake(text))?;
        let port = host.port.map(|port| port.to_string().into());
        match below {
            true if host.name.starts_with('[') => Err(mistake(text)),
            true => Ok(Self::Below(format!(".{}", host.name).into(), port)),
            false => Ok(Self::Exact(host.name.into(), port)),
        }
    }

    /// Whether `host`, in normal form with or without a port, is meant.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(name, port) => {
                let rest = host.strip_prefix(&**name);
                rest.is_some_and(|rest| is_port(rest, port.as_deref()))
            }
            Self::Below(suffix, port) => {
                let (name, rest) = split_port(host);
                name.len() > suffix.len()
                    && name.ends_with(&**suffix)
                    && is_port(rest, port.as_deref())
            }
        }
    }
}

/// Whether what follows a name is the port wanted.
fn is_port(rest: &str, wanted: Option<&str>) -> bool {
    match (rest.strip_prefix(':'), wanted) {
        (given, Some(wanted)) => given == Some(wanted),
        (None, None) => rest.is_empty(),
        (Some(_), None) => true,
    }
}

/// The name, and the port with its colon.
fn split_port(host: &str) -> (&str, &str) {
    let colon = host.rfind(':').filter(|_| !host.ends_with(']'));
    host.split_at_checked(colon.unwrap_or(host.len()))
        .unwrap_or((host, ""))
}

fn mistake(text: &str) -> String {
    let hint = if text.contains("://") {
        "leave the scheme out"
    } else if text.contains('/') {
        "leave the path out"
    } else if !text.is_ascii() {
        "write its ASCII form (`xn--…`)"
    } else if text.contains('*') {
        "`*` stands only for the first labels, as in `*.example.com`"
    } else {
        "a host is a name or an address, as in `example.com`, `*.example.com` or `[::1]`"
    };
    format!("`{text}` is not a host; {hint}")
}
