//! A decision about a request, as the event stream and the client look-up show it.

use std::net::IpAddr;
use std::sync::Arc;

use crate::clock::{Rfc3339, Timestamp};
use crate::observe::access::json_writer::JsonWriter;

/// The maximum number of bytes of a text that a client sent. Longer ones are cut.
pub const MAX_TEXT: usize = 256;

/// A decision about a request. The caller has redacted secret values.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRecord {
    /// When the request arrived.
    pub ts: Timestamp,
    /// The request's id.
    pub id: Box<str>,
    /// The client address.
    pub client_ip: IpAddr,
    /// The number of the client's autonomous system, if known.
    pub asn: Option<u32>,
    /// The client's country code, if known.
    pub country: Option<[u8; 2]>,
    /// The JA4 fingerprint. `None` for a plain connection.
    pub ja4: Option<Box<str>>,
    /// The method.
    pub method: Box<str>,
    /// The requested host.
    pub host: Box<[u8]>,
    /// The normalised path.
    pub path: Box<[u8]>,
    /// The query, without `?`.
    pub query: Option<Box<[u8]>>,
    /// The status sent to the client.
    pub status: u16,
    /// The `user-agent` header.
    pub user_agent: Option<Box<[u8]>>,
    /// The rule that acted, or would have acted. `None` if none did.
    pub rule: Option<Arc<str>>,
    /// The action of that rule, or `forward`.
    pub action: &'static str,
    /// The readable key. `None` if no rule acted.
    pub key: Option<Box<str>>,
    /// Whether the rule is a dry run, so the action was not taken.
    pub dry_run: bool,
    /// Whether the key is banned.
    pub banned: bool,
    /// The units that the key has used. `None` for a banned key and for a rule without a limit.
    pub count: Option<u64>,
    /// The limit. `None` for a rule without one.
    pub limit: Option<u64>,
    /// The number of equal decisions that this one stands for, itself included.
    pub repeat: u32,
}

/// The key of a field, including the separator.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}

// === impl DecisionRecord ===

impl DecisionRecord {
    /// Appends the decision as a JSON object on one line.
    pub fn json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"ts\":\"");
        out.extend_from_slice(&Rfc3339(self.ts).to_bytes());
        out.push(b'"');
        let mut o = JsonWriter(out);
        o.text(key!("id"), Some(&self.id));
        o.address(key!("client_ip"), self.client_ip);
        o.number(key!("asn"), self.asn.map(u64::from));
        o.bytes(key!("country"), self.country.as_ref().map(|code| &code[..]));
        o.text(key!("ja4"), self.ja4.as_deref());
        o.text(key!("method"), Some(&self.method));
        o.bytes(key!("host"), Some(&self.host));
        o.bytes(key!("path"), Some(&self.path));
        o.bytes(key!("query"), self.query.as_deref());
        o.number(key!("status"), Some(self.status.into()));
        o.bytes(key!("user_agent"), self.user_agent.as_deref());
        o.text(key!("rule"), self.rule.as_deref());
        o.text(key!("action"), Some(self.action));
        o.text(key!("key"), self.key.as_deref());
        o.boolean(key!("dry_run"), self.dry_run);
        o.boolean(key!("banned"), self.banned);
        o.number(key!("count"), self.count);
        o.number(key!("limit"), self.limit);
        o.number(key!("repeat"), Some(self.repeat.into()));
        out.push(b'}');
    }

    /// Returns the decision as a JSON object on one line.
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(512);
        self.json(&mut out);
        // The writer escapes everything that is not UTF-8.
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Returns the memory that the record takes, in bytes.
    pub(super) fn size(&self) -> usize {
        let optional = [&self.query, &self.user_agent];
        let optional: usize = optional
            .iter()
            .filter_map(|text| Some(text.as_ref()?.len()))
            .sum();
        let texts = [&self.ja4, &self.key].map(|text| text.as_ref().map_or(0, |text| text.len()));
        size_of::<Self>()
            + optional
            + texts.iter().sum::<usize>()
            + self.id.len()
            + self.method.len()
            + self.host.len()
            + self.path.len()
    }
}

/// Returns the first [`MAX_TEXT`] bytes of `text`.
pub fn shortened(text: &[u8]) -> &[u8] {
    text.get(..MAX_TEXT).unwrap_or(text)
}

/// Returns the first `max` bytes of `text`, without a part of a character.
pub fn cut_text(text: &str, max: usize) -> &str {
    let longest = max.min(text.len());
    let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A blocked request of `client_ip` for `path`.
    pub(in crate::observe::activity) fn blocked(rule: &str, client_ip: [u8; 4]) -> DecisionRecord {
        DecisionRecord {
            ts: Timestamp::from_millis(1_700_000_000_123),
            id: "0123".into(),
            client_ip: client_ip.into(),
            asn: Some(64_500),
            country: Some(*b"ZZ"),
            ja4: None,
            method: "POST".into(),
            host: b"shop.example".as_slice().into(),
            path: b"/login\n".as_slice().into(),
            query: None,
            status: 429,
            user_agent: Some(b"curl/8 \xff".as_slice().into()),
            rule: Some(rule.into()),
            action: "block",
            key: Some("192.0.2.1".into()),
            dry_run: false,
            banned: false,
            count: Some(6),
            limit: Some(5),
            repeat: 1,
        }
    }

    /// A forwarded request that is shown as a sample.
    pub(in crate::observe::activity) fn forwarded() -> DecisionRecord {
        DecisionRecord {
            rule: None,
            action: "forward",
            key: None,
            count: None,
            limit: None,
            ..blocked("", [192, 0, 2, 9])
        }
    }

    #[test]
    fn a_decision_is_one_line_of_json() {
        assert_eq!(
            blocked("login", [192, 0, 2, 1]).to_json(),
            r#"{"ts":"2023-11-14T22:13:20.123Z","id":"0123","client_ip":"192.0.2.1","asn":64500,"country":"ZZ","ja4":null,"method":"POST","host":"shop.example","path":"/login\n","query":null,"status":429,"user_agent":"curl/8 \\xff","rule":"login","action":"block","key":"192.0.2.1","dry_run":false,"banned":false,"count":6,"limit":5,"repeat":1}"#
        );
        let forwarded = forwarded().to_json();
        assert!(forwarded.contains(r#""rule":null,"action":"forward","key":null"#));
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let text = format!("{}é", "x".repeat(MAX_TEXT - 1));
        assert_eq!(cut_text(&text, MAX_TEXT), &text[..MAX_TEXT - 1]);
        assert_eq!(cut_text("é", MAX_TEXT), "é");
        assert_eq!(shortened(text.as_bytes()).len(), MAX_TEXT);
    }
}
