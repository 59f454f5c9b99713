//! The access log: one line per request, as JSON or, on a terminal, as text.
//!
//! A line is started with the response head, while the fields are available, and finished after the
//! response. The caller redacts secret values: see [`Redactor`](super::Redactor).

pub(super) mod json_writer;

use std::net::IpAddr;
use std::time::Duration;

use self::json_writer::{JsonWriter, millis, show};
use super::escape;
use super::log::LogOutput;
use super::sink::LineSink;
use crate::clock::{Rfc3339, Timestamp};
use crate::expr::ScalarValue;

/// The buffer capacity for a line of usual length.
const USUAL_LENGTH: usize = 1024;

/// A field that a rule reads, by its name in the rule.
pub type KeyField<'a> = (&'a str, LoggedField<'a>);

/// The value of a field that a rule reads.
#[derive(Clone, Debug)]
pub enum LoggedField<'a> {
    /// The field is missing.
    Missing,
    /// One value.
    One(ScalarValue<'a>),
    /// A list of values.
    Many(Vec<ScalarValue<'a>>),
}

/// The properties of a request that are known when its response starts.
#[derive(Clone, Debug)]
pub struct AccessRecord<'a> {
    /// The time at which the request arrived.
    pub ts: Timestamp,
    /// The request's id.
    pub id: &'a str,
    /// The client address.
    pub client_ip: IpAddr,
    /// The TCP peer.
    pub peer_ip: IpAddr,
    /// The number of the client's autonomous system, if known.
    pub asn: Option<u32>,
    /// The client's country code, if known.
    pub country: Option<&'a str>,
    /// The JA3 hash.
    pub ja3: Option<&'a str>,
    /// The JA4 fingerprint.
    pub ja4: Option<&'a str>,
    /// The TLS version. `None` for a plain connection.
    pub tls: Option<&'a str>,
    /// The protocol, such as `HTTP/2`.
    pub proto: &'a str,
    /// The method.
    pub method: &'a str,
    /// The requested host.
    pub host: Option<&'a [u8]>,
    /// The normalised path.
    pub path: &'a [u8],
    /// The query, without `?`.
    pub query: Option<&'a [u8]>,
    /// The trace that the request belongs to. `None` without a valid `traceparent` header.
    pub trace_id: Option<&'a str>,
    /// The name of the listener, or its address.
    pub listener: &'a str,
    /// The name of the matched route, or its template.
    pub route: Option<&'a str>,
    /// The status sent to the client.
    pub status: u16,
    /// The upstream that sent the response. `None` if the gateway responded itself.
    pub upstream: Option<&'a str>,
    /// The server that sent the response, or the last one that failed. `None` if there was no attempt.
    pub server: Option<&'a str>,
    /// The number of times that the request was sent to a server, or a connection for it was opened.
    pub attempts: u32,
    /// The time until the upstream's response head.
    pub upstream_duration: Option<Duration>,
    /// The rule that applied or recorded an action.
    pub rule: Option<&'a str>,
    /// The action of that rule.
    pub action: Option<&'a str>,
    /// How long rules held the request. `None` if no rule did.
    pub held: Option<Duration>,
    /// Why the gateway itself responded with an error. `None` if it did not.
    pub error: Option<&'a str>,
    /// The `user-agent` header.
    pub user_agent: Option<&'a [u8]>,
    /// The `referer` header.
    pub referer: Option<&'a [u8]>,
    /// What the gateway's cookies prove. `None` if it gives clients no cookies.
    pub credentials: Option<CredentialRecord<'a>>,
    /// The fields that the rules' keys and expressions read.
    pub key_fields: &'a [KeyField<'a>],
    /// The fields of `log.fields`.
    pub fields: &'a [KeyField<'a>],
}

/// What the gateway's cookies prove about a client, and what happened to a challenge.
#[derive(Clone, Copy, Debug)]
pub struct CredentialRecord<'a> {
    /// Whether the client is known: `known` or `new`. `None` if no client can become known.
    pub client: Option<&'a str>,
    /// What identifies the cookie of a known client.
    pub client_id: Option<&'a str>,
    /// What identifies a clearance.
    pub clearance: Option<&'a str>,
    /// What happened to a challenge: `sent`, `passed`, `failed` or `solved`.
    pub challenge: Option<&'a str>,
}

/// The properties of a request that are known only at its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessEnd {
    /// The size of the request body in bytes.
    pub bytes_in: u64,
    /// The size of the response body in bytes.
    pub bytes_out: u64,
    /// The time from the last byte of the request head to the last byte of the response.
    pub duration: Duration,
    /// Why the response ended early. `None` if it is complete.
    pub cut: Option<AbortReason>,
    /// Which side ended a tunnel. `None` if no tunnel was opened.
    pub ended_by: Option<TunnelSide>,
}

/// The access log. Clones share the target.
#[derive(Clone, Debug)]
pub struct AccessLog {
    sink: LineSink,
    is_json: bool,
}

named! {
    /// Why a response ended early.
    pub enum AbortReason {
        /// The origin server closed its connection, reset its stream or sent invalid data.
        Upstream = "upstream",
        /// The client disconnected.
        Client = "client",
        /// The client did not read fast enough for `[limits]`.
        Slow = "slow_client",
        /// The request body was still being sent and ended early, was too slow or too large.
        RequestBody = "request_body",
        /// The gateway stopped and `drain_timeout` had passed.
        Drain = "drain",
        /// The gateway panicked.
        Panic = "panic",
    }
}

named! {
    /// Which side ended a tunnel.
    pub enum TunnelSide {
        /// The client closed or reset it, or is gone.
        Client = "client",
        /// The origin server closed or reset it, or is gone.
        Server = "server",
        /// The gateway stopped.
        Gateway = "gateway",
    }
}

/// The key of a field, including the separator.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}

// === impl AccessLog ===

impl AccessLog {
    /// Creates a log to `sink`: text if it is a terminal and `wanted` is not JSON, otherwise JSON.
    pub fn new(sink: LineSink, wanted: LogOutput) -> Self {
        let is_json = wanted == LogOutput::Json || !sink.is_terminal();
        Self { sink, is_json }
    }

    /// Starts a line with the properties that are known when the response starts.
    pub fn start(&self, record: &AccessRecord<'_>) -> Vec<u8> {
        let mut line = Vec::with_capacity(USUAL_LENGTH);
        if self.is_json {
            record.json(&mut line);
        } else {
            record.text(&mut line);
        }
        line
    }

    /// Finishes and writes the line that [`AccessLog::start`] started.
    pub fn finish(&self, line: &mut Vec<u8>, closing: &AccessEnd) {
        if self.is_json {
            closing.json(line);
        } else {
            closing.text(line);
        }
        self.sink.line(line);
    }

    /// Returns the sink of the log.
    pub fn sink(&self) -> &LineSink {
        &self.sink
    }
}

// === impl AccessRecord ===

impl AccessRecord<'_> {
    /// Appends the record as an unclosed JSON object. It has every field; unknown values are `null`.
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
        o.text(key!("trace_id"), self.trace_id);
        o.text(key!("listener"), Some(self.listener));
        o.text(key!("route"), self.route);
        o.number(key!("status"), Some(self.status.into()));
        o.text(key!("upstream"), self.upstream);
        o.text(key!("server"), self.server);
        o.number(key!("attempts"), Some(self.attempts.into()));
        o.millis(key!("upstream_ms"), self.upstream_duration);
        o.text(key!("rule"), self.rule);
        o.text(key!("action"), self.action);
        o.millis(key!("held_ms"), self.held);
        o.text(key!("error"), self.error);
        o.bytes(key!("user_agent"), self.user_agent);
        o.bytes(key!("referer"), self.referer);
        match &self.credentials {
            Some(proven) => {
                o.text(key!("client"), proven.client);
                o.text(key!("client_id"), proven.client_id);
                o.text(key!("clearance"), proven.clearance);
                o.text(key!("challenge"), proven.challenge);
            }
            None => {
                o.key(",\"client\":null,\"client_id\":null,\"clearance\":null,\"challenge\":null")
            }
        }
        o.fields(key!("key_fields"), self.key_fields);
        if !self.fields.is_empty() {
            o.fields(key!("fields"), self.fields);
        }
    }

    /// Appends the record as the start of a text line.
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
        let proven = self.credentials.as_ref();
        let (challenge, client) = (
            proven.and_then(|proven| proven.challenge),
            proven.and_then(|proven| proven.client),
        );
        for (name, value) in [
            ("rule", self.rule.map(str::as_bytes)),
            ("action", self.action.map(str::as_bytes)),
            ("challenge", challenge.map(str::as_bytes)),
            ("upstream", self.upstream.map(str::as_bytes)),
            ("error", self.error.map(str::as_bytes)),
            ("client", client.map(str::as_bytes)),
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
        o.text(key!("ended_by"), self.ended_by.map(TunnelSide::name));
        out.push(b'}');
    }

    /// Finishes the text line of a record.
    pub fn text(&self, out: &mut Vec<u8>) {
        show(out, format_args!(" {}B ", self.bytes_out));
        millis(out, self.duration);
        out.extend_from_slice(b"ms");
        if let Some(cut) = self.cut {
            show(out, format_args!(" cut={}", cut.name()));
        }
        if let Some(side) = self.ended_by {
            show(
                out,
                format_args!(" {}B in, ended_by={}", self.bytes_in, side.name()),
            );
        }
    }
}

#[cfg(test)]
mod tests;
