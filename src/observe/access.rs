//! The access log: one line for each request, JSON or, for a person at a terminal, text.
//!
//! A line is begun when the answer begins, while the facts are at hand, and ended when the answer
//! has ended. Which values are secret is the caller's to know: see [`Redactor`](super::Redactor).

use std::fmt::Display;
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use super::cut::Cut;
use super::escape;
use super::log::Format;
use super::sink::Sink;
use crate::clock::{Rfc3339, Timestamp};
use crate::expr::Value;

/// Room for a line of usual length.
const USUAL_LENGTH: usize = 1024;

/// A field that a rule read, by the name the rule used.
pub type KeyField<'a> = (&'a str, Seen<'a>);

/// What a rule may have read of a field.
#[derive(Clone, Debug)]
pub enum Seen<'a> {
    /// Nothing: it was missing.
    Missing,
    /// Its value.
    One(Value<'a>),
    /// All its values.
    Many(Vec<Value<'a>>),
}

/// What is known of a request when its answer begins.
#[derive(Clone, Debug)]
pub struct Record<'a> {
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
pub struct Closing {
    /// Bytes of the request's body.
    pub bytes_in: u64,
    /// Bytes of the response's body.
    pub bytes_out: u64,
    /// From the head's last byte in to the response's last byte out.
    pub duration: Duration,
    /// What broke the response off; `None`: it came to its end.
    pub cut: Option<Cut>,
}

/// The access log. Clones share the target.
#[derive(Clone, Debug)]
pub struct AccessLog {
    sink: Sink,
    format: Format,
}

/// A JSON object being written.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    separator: u8,
}

// === impl AccessLog ===

impl AccessLog {
    /// A log to `sink`: text if that is wanted and a terminal is there to show it, else JSON.
    pub fn new(sink: Sink, wanted: Format) -> Self {
        let format = if sink.is_terminal() {
            wanted
        } else {
            Format::Json
        };
        Self { sink, format }
    }

    /// Begins a line with what is known when the answer begins.
    pub fn start(&self, record: &Record<'_>) -> Vec<u8> {
        let mut line = Vec::with_capacity(USUAL_LENGTH);
        match self.format {
            Format::Json => record.json(&mut line),
            Format::Text => record.text(&mut line),
        }
        line
    }

    /// Ends the line that [`AccessLog::start`] began, and writes it.
    pub fn finish(&self, line: &mut Vec<u8>, closing: &Closing) {
        match self.format {
            Format::Json => closing.json(line),
            Format::Text => closing.text(line),
        }
        self.sink.line(line);
    }

    /// Where the lines go.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }
}

// === impl Record ===

impl Record<'_> {
    /// Appends the record as a JSON object that is not closed yet. Every field is there; what is
    /// not known is `null`.
    pub fn json(&self, out: &mut Vec<u8>) {
        let mut o = Object::open(out);
        o.plain("ts", &Rfc3339(self.ts).to_bytes());
        o.text("id", Some(self.id));
        o.address("client_ip", self.client_ip);
        o.address("peer_ip", self.peer_ip);
        o.number("asn", self.asn.map(u64::from));
        o.text("country", self.country);
        o.text("ja3", self.ja3);
        o.text("ja4", self.ja4);
        o.text("tls", self.tls);
        o.text("proto", Some(self.proto));
        o.text("method", Some(self.method));
        o.bytes("host", self.host);
        o.bytes("path", Some(self.path));
        o.bytes("query", self.query);
        o.text("route", self.route);
        o.number("status", Some(self.status.into()));
        o.text("upstream", self.upstream);
        o.millis("upstream_ms", self.upstream_duration);
        o.text("rule", self.rule);
        o.text("action", self.action);
        o.millis("held_ms", self.held);
        o.bytes("user_agent", self.user_agent);
        o.bytes("referer", self.referer);
        o.fields("key_fields", self.key_fields);
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

// === impl Closing ===

impl Closing {
    /// Closes the JSON object of a record.
    pub fn json(&self, out: &mut Vec<u8>) {
        let mut o = Object {
            out,
            separator: b',',
        };
        o.number("bytes_in", Some(self.bytes_in));
        o.number("bytes_out", Some(self.bytes_out));
        o.millis("duration_ms", Some(self.duration));
        o.text("cut", self.cut.map(Cut::name));
        o.close();
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

// === impl Object ===

impl<'a> Object<'a> {
    fn open(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            separator: b'{',
        }
    }

    /// For names of our own, which need no escape.
    fn name(&mut self, name: &str) {
        self.out.push(std::mem::replace(&mut self.separator, b','));
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn bytes(&mut self, name: &str, value: Option<&[u8]>) {
        self.name(name);
        match value {
            Some(value) => escape::json(self.out, value),
            None => self.null(),
        }
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        self.bytes(name, value.map(str::as_bytes));
    }

    /// For values of our own, which need no escape.
    fn plain(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.out.push(b'"');
        self.out.extend_from_slice(value);
        self.out.push(b'"');
    }

    fn address(&mut self, name: &str, value: IpAddr) {
        self.name(name);
        address(self.out, value);
    }

    fn number(&mut self, name: &str, value: Option<u64>) {
        self.name(name);
        match value {
            Some(value) => integer(self.out, value),
            None => self.null(),
        }
    }

    fn millis(&mut self, name: &str, value: Option<Duration>) {
        self.name(name);
        match value {
            Some(value) => millis(self.out, value),
            None => self.null(),
        }
    }

    fn fields(&mut self, name: &str, fields: &[KeyField<'_>]) {
        self.name(name);
        self.out.push(b'{');
        for (i, (name, value)) in fields.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            escape::json(self.out, name.as_bytes());
            self.out.push(b':');
            match value {
                Seen::Missing => self.null(),
                Seen::One(one) => self.value(one),
                Seen::Many(many) => self.values(many),
            }
        }
        self.out.push(b'}');
    }

    fn values(&mut self, values: &[Value<'_>]) {
        self.out.push(b'[');
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            self.value(value);
        }
        self.out.push(b']');
    }

    fn value(&mut self, value: &Value<'_>) {
        match value {
            Value::Bytes(bytes) => escape::json(self.out, bytes),
            Value::Int(int) => integer(self.out, *int),
            Value::Ip(ip) => address(self.out, *ip),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
        }
    }

    fn null(&mut self) {
        self.out.extend_from_slice(b"null");
    }

    fn close(self) {
        self.out.push(b'}');
    }
}

fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn address(out: &mut Vec<u8>, ip: IpAddr) {
    show(out, format_args!("\"{ip}\""));
}

/// Milliseconds with three decimals.
fn millis(out: &mut Vec<u8>, duration: Duration) {
    let micros = duration.as_micros();
    integer(out, micros / 1000);
    show(out, format_args!(".{:03}", micros % 1000));
}

fn show(out: &mut Vec<u8>, value: impl Display) {
    // A Vec takes all that is written.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests;
