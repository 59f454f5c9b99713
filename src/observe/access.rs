//! The access log: one line for each request, JSON or, for a person at a terminal, text.
//!
//! A line is begun when the answer begins, while the facts are at hand, and ended when the answer
//! has ended. Which values are secret is the caller's to know: see [`Redactor`](super::Redactor).

use std::fmt::Display;
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use super::escape;
use super::log::LogOutput;
use super::sink::LineSink;
use crate::clock::{Rfc3339, Timestamp};
use crate::expr::ScalarValue;

/// Room for a line of usual length.
const USUAL_LENGTH: usize = 1024;

/// A field that a rule read, by the name the rule used.
pub type KeyField<'a> = (&'a str, LoggedField<'a>);

/// What a rule may have read of a field.
#[derive(Clone, Debug)]
pub enum LoggedField<'a> {
    /// Nothing: it was missing.
    Missing,
    /// Its value.
    One(ScalarValue<'a>),
    /// All its values.
    Many(Vec<ScalarValue<'a>>),
}

/// What is known of a request when its answer begins.
#[derive(Clone, Debug)]
pub struct AccessRecord<'a> {
    /// When the request came.
    pub ts: Timestamp,
    /// The request's id.
    pub id: &'a str,
    /// The client.
    pub client_ip: IpAddr,
    /// The TCP peer.
    pub peer_ip: IpAddr,
    /// The client's autonomous system.
    pub asn: Option<u32>,
    /// The client's country.
    pub country: Option<&'a str>,
    /// The JA3 hash.
    pub ja3: Option<&'a str>,
    /// The JA4 fingerprint.
    pub ja4: Option<&'a str>,
    /// The TLS version; `None`: plain.
    pub tls: Option<&'a str>,
    /// The protocol, `HTTP/2`.
    pub proto: &'a str,
    /// The method.
    pub method: &'a str,
    /// The host asked for.
    pub host: Option<&'a [u8]>,
    /// The path, in its normal form.
    pub path: &'a [u8],
    /// The query, without `?`.
    pub query: Option<&'a [u8]>,
    /// The matched route's template.
    pub route: Option<&'a str>,
    /// The status that the client got.
    pub status: u16,
    /// The upstream that answered.
    pub upstream: Option<&'a str>,
    /// How long the upstream took to its response head.
    pub upstream_duration: Option<Duration>,
    /// The rule that acted or recorded.
    pub rule: Option<&'a str>,
    /// What that rule did.
    pub action: Option<&'a str>,
    /// How long rules held the request; `None`: they did not.
    pub held: Option<Duration>,
    /// The `user-agent` header.
    pub user_agent: Option<&'a [u8]>,
    /// The `referer` header.
    pub referer: Option<&'a [u8]>,
    /// Whatever the rules' keys and expressions read.
    pub key_fields: &'a [KeyField<'a>],
}

/// What is known of a request only when it is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessEnd {
    /// Bytes of the request's body.
    pub bytes_in: u64,
    /// Bytes of the response's body.
    pub bytes_out: u64,
    /// From the head's last byte in to the response's last byte out.
    pub duration: Duration,
    /// What broke the response off; `None`: it came to its end.
    pub cut: Option<AbortReason>,
}

/// The access log. Clones share the target.
#[derive(Clone, Debug)]
pub struct AccessLog {
    sink: LineSink,
    is_json: bool,
}

/// A JSON object that is being written; each key starts with its comma.
struct JsonWriter<'a>(&'a mut Vec<u8>);

named! {
    /// Why a response that had begun broke off before its end.
    pub enum AbortReason {
        /// The origin server closed its connection, reset its stream or sent nonsense.
        Upstream = "upstream",
        /// The client disconnected.
        Client = "client",
        /// The client did not read fast enough for `[limits]`.
        Slow = "slow_client",
        /// The request's body was still being sent and broke off, was too slow or too large.
        RequestBody = "request_body",
        /// The gateway stopped, and `drain_timeout` was over.
        Drain = "drain",
        /// The gateway failed.
        Panic = "panic",
    }
}

/// The key of a field, with what separates it from the field before.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}

// === impl AccessLog ===

impl AccessLog {
    /// A log to `sink`: text if that is a terminal and JSON is not wanted, else JSON.
    pub fn new(sink: LineSink, wanted: LogOutput) -> Self {
        let is_json = wanted == LogOutput::Json || !sink.is_terminal();
        Self { sink, is_json }
    }

    /// Begins a line with what is known when the answer begins.
    pub fn start(&self, record: &AccessRecord<'_>) -> Vec<u8> {
        let mut line = Vec::with_capacity(USUAL_LENGTH);
        if self.is_json {
            record.json(&mut line);
        } else {
            record.text(&mut line);
        }
        line
    }

    /// Ends the line that [`AccessLog::start`] began, and writes it.
    pub fn finish(&self, line: &mut Vec<u8>, closing: &AccessEnd) {
        if self.is_json {
            closing.json(line);
        } else {
            closing.text(line);
        }
        self.sink.line(line);
    }

    /// Where the lines go.
    pub fn sink(&self) -> &LineSink {
        &self.sink
    }
}

// === impl AccessRecord ===

impl AccessRecord<'_> {
    /// Appends the record as a JSON object that is not closed yet. Every field is there; what is
    /// not known is `null`.
    pub fn json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"ts\":\"");
        out.extend_from_slice(&Rfc3339(self.ts).to_bytes());
        out.push(b'"');
        let mut o = JsonWriter(out);
        o.text(key!("id"), Some(self.id));
        o.address(key!("client_ip"), self.client_ip);
        o.address(key!("peer_ip"), self.peer_ip);
        o.number(key!("asn"), self.asn.map(u64::from));
        o.text(key!("country"), self.country);
        o.text(key!("ja3"), self.ja3);
        o.text(key!("ja4"), self.ja4);
        o.text(key!("tls"), self.tls);
        o.text(key!("proto"), Some(self.proto));
        o.text(key!("method"), Some(self.method));
        o.bytes(key!("host"), self.host);
        o.bytes(key!("path"), Some(self.path));
        o.bytes(key!("query"), self.query);
        o.text(key!("route"), self.route);
        o.number(key!("status"), Some(self.status.into()));
        o.text(key!("upstream"), self.upstream);
        o.millis(key!("upstream_ms"), self.upstream_duration);
        o.text(key!("rule"), self.rule);
        o.text(key!("action"), self.action);
        o.millis(key!("held_ms"), self.held);
        o.bytes(key!("user_agent"), self.user_agent);
        o.bytes(key!("referer"), self.referer);
        o.fields(key!("key_fields"), self.key_fields);
    }

    /// Appends the record as the beginning of a line for people.
    pub fn text(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&Rfc3339(self.ts).to_bytes());
        show(out, format_args!(" {} \"", self.client_ip));
        escape::text(out, self.method.as_bytes());
        out.push(b' ');
        escape::text(out, self.host.unwrap_or_default());
        escape::text(out, self.path);
        if let Some(query) = self.query {
            out.push(b'?');
            escape::text(out, query);
        }
        out.push(b' ');
        escape::text(out, self.proto.as_bytes());
        show(out, format_args!("\" {}", self.status));
        self.pairs(out);
    }

    fn pairs(&self, out: &mut Vec<u8>) {
        for (name, value) in [
            ("rule", self.rule.map(str::as_bytes)),
            ("action", self.action.map(str::as_bytes)),
            ("upstream", self.upstream.map(str::as_bytes)),
            ("country", self.country.map(str::as_bytes)),
            ("ja4", self.ja4.map(str::as_bytes)),
            ("agent", self.user_agent),
            ("id", Some(self.id.as_bytes())),
        ] {
            let Some(value) = value else { continue };
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            escape::word(out, value);
        }
    }
}

// === impl AccessEnd ===

impl AccessEnd {
    /// Closes the JSON object of a record.
    pub fn json(&self, out: &mut Vec<u8>) {
        let mut o = JsonWriter(out);
        o.number(key!("bytes_in"), Some(self.bytes_in));
        o.number(key!("bytes_out"), Some(self.bytes_out));
        o.millis(key!("duration_ms"), Some(self.duration));
        o.text(key!("cut"), self.cut.map(AbortReason::name));
        out.push(b'}');
    }

    /// Ends the line of a record.
    pub fn text(&self, out: &mut Vec<u8>) {
        show(out, format_args!(" {}B ", self.bytes_out));
        millis(out, self.duration);
        out.extend_from_slice(b"ms");
        if let Some(cut) = self.cut {
            show(out, format_args!(" cut={}", cut.name()));
        }
    }
}

// === impl JsonWriter ===

impl JsonWriter<'_> {
    fn key(&mut self, key: &str) {
        self.0.extend_from_slice(key.as_bytes());
    }

    /// Writes a value, or `null`.
    fn some<T>(&mut self, key: &str, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
        self.key(key);
        match value {
            Some(value) => write(self.0, value),
            None => self.null(),
        }
    }

    fn bytes(&mut self, key: &str, value: Option<&[u8]>) {
        self.some(key, value, escape::json);
    }

    fn text(&mut self, key: &str, value: Option<&str>) {
        self.bytes(key, value.map(str::as_bytes));
    }

    fn address(&mut self, key: &str, value: IpAddr) {
        self.some(key, Some(value), address);
    }

    fn number(&mut self, key: &str, value: Option<u64>) {
        self.some(key, value, integer);
    }

    fn millis(&mut self, key: &str, value: Option<Duration>) {
        self.some(key, value, millis);
    }

    fn fields(&mut self, key: &str, fields: &[KeyField<'_>]) {
        self.key(key);
        self.list(b"{}", fields, |o, (name, value)| {
            escape::json(o.0, name.as_bytes());
            o.0.push(b':');
            match value {
                LoggedField::Missing => o.null(),
                LoggedField::One(one) => o.value(one),
                LoggedField::Many(many) => o.list(b"[]", many, Self::value),
            }
        });
    }

    /// Writes `items` between two brackets.
    fn list<T>(&mut self, [open, close]: &[u8; 2], items: &[T], write: impl Fn(&mut Self, &T)) {
        self.0.push(*open);
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.0.push(b',');
            }
            write(self, item);
        }
        self.0.push(*close);
    }

    fn value(&mut self, value: &ScalarValue<'_>) {
        match value {
            ScalarValue::Bytes(bytes) => escape::json(self.0, bytes),
            ScalarValue::Int(int) => integer(self.0, *int),
            ScalarValue::Ip(ip) => address(self.0, *ip),
            ScalarValue::Bool(true) => self.key("true"),
            ScalarValue::Bool(false) => self.key("false"),
        }
    }

    fn null(&mut self) {
        self.key("null");
    }
}

fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn address(out: &mut Vec<u8>, ip: IpAddr) {
    out.push(b'"');
    match ip {
        IpAddr::V4(ip) => {
            let [first, rest @ ..] = ip.octets();
            integer(out, first);
            for octet in rest {
                out.push(b'.');
                integer(out, octet);
            }
        }
        IpAddr::V6(ip) => show(out, ip),
    }
    out.push(b'"');
}

/// Milliseconds with three decimals.
fn millis(out: &mut Vec<u8>, duration: Duration) {
    let (secs, micros) = (duration.as_secs(), duration.subsec_micros());
    if secs == 0 {
        integer(out, micros / 1000);
    } else {
        integer(out, secs);
        three_digits(out, micros / 1000);
    }
    out.push(b'.');
    three_digits(out, micros % 1000);
}

fn three_digits(out: &mut Vec<u8>, number: u32) {
    out.extend([number / 100, number / 10 % 10, number % 10].map(|digit| b'0' + digit as u8));
}

fn show(out: &mut Vec<u8>, value: impl Display) {
    // A Vec takes all that is written.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests;
