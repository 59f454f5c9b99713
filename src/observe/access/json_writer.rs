//! Writes the values of an access log record.

use std::fmt::Display;
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use super::{KeyField, LoggedField};
use crate::expr::ScalarValue;
use crate::observe::escape;

/// Writes a JSON object. Each key starts with a comma.
pub(in crate::observe) struct JsonWriter<'a>(pub(in crate::observe) &'a mut Vec<u8>);

// === impl JsonWriter ===

impl JsonWriter<'_> {
    pub(in crate::observe) fn key(&mut self, key: &str) {
        self.0.extend_from_slice(key.as_bytes());
    }

    /// Writes a value, or `null` for `None`.
    pub(in crate::observe) fn some<T>(
        &mut self,
        key: &str,
        value: Option<T>,
        write: impl FnOnce(&mut Vec<u8>, T),
    ) {
        self.key(key);
        match value {
            Some(value) => write(self.0, value),
            None => self.null(),
        }
    }

    pub(in crate::observe) fn bytes(&mut self, key: &str, value: Option<&[u8]>) {
        self.some(key, value, escape::json);
    }

    pub(in crate::observe) fn text(&mut self, key: &str, value: Option<&str>) {
        self.bytes(key, value.map(str::as_bytes));
    }

    pub(in crate::observe) fn address(&mut self, key: &str, value: IpAddr) {
        self.some(key, Some(value), address);
    }

    pub(in crate::observe) fn number(&mut self, key: &str, value: Option<u64>) {
        self.some(key, value, integer);
    }

    pub(in crate::observe) fn millis(&mut self, key: &str, value: Option<Duration>) {
        self.some(key, value, millis);
    }

    pub(in crate::observe) fn fields(&mut self, key: &str, fields: &[KeyField<'_>]) {
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
    pub(in crate::observe) fn list<T>(
        &mut self,
        [open, close]: &[u8; 2],
        items: &[T],
        write: impl Fn(&mut Self, &T),
    ) {
        self.0.push(*open);
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.0.push(b',');
            }
            write(self, item);
        }
        self.0.push(*close);
    }

    pub(in crate::observe) fn value(&mut self, value: &ScalarValue<'_>) {
        match value {
            ScalarValue::Bytes(bytes) => escape::json(self.0, bytes),
            ScalarValue::Int(int) => integer(self.0, *int),
            ScalarValue::Ip(ip) => address(self.0, *ip),
            ScalarValue::Bool(true) => self.key("true"),
            ScalarValue::Bool(false) => self.key("false"),
        }
    }

    pub(in crate::observe) fn boolean(&mut self, key: &str, value: bool) {
        self.key(key);
        self.key(if value { "true" } else { "false" });
    }

    pub(in crate::observe) fn null(&mut self) {
        self.key("null");
    }
}

pub(in crate::observe) fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

pub(in crate::observe) fn address(out: &mut Vec<u8>, ip: IpAddr) {
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

/// Writes milliseconds with three decimals.
pub(in crate::observe) fn millis(out: &mut Vec<u8>, duration: Duration) {
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

pub(in crate::observe) fn three_digits(out: &mut Vec<u8>, number: u32) {
    out.extend([number / 100, number / 10 % 10, number % 10].map(|digit| b'0' + digit as u8));
}

pub(in crate::observe) fn show(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a `Vec` cannot fail.
    let _ = write!(out, "{value}");
}
