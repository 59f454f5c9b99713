//! The sentence that says why a ban started.

use std::time::Duration;

use super::decision_record::cut_text;
use crate::observe::access::json_writer::show;
use crate::observe::escape;

/// The maximum length of a cause, in bytes.
const MAX_CAUSE: usize = 240;
/// The maximum number of bytes of a client's text in a cause.
const MAX_PART: usize = 80;

/// The request that started a ban.
#[derive(Clone, Debug)]
pub struct BanCause<'a> {
    /// The units that the key has used.
    pub count: u64,
    /// Whether each request counts as one unit.
    pub counts_requests: bool,
    /// The period of the limit. `None` if the rule limits requests in flight.
    pub period: Option<Duration>,
    /// The method.
    pub method: &'a str,
    /// The normalised path.
    pub path: &'a [u8],
    /// The status of the response. `None` if the ban started before it.
    pub status: Option<u16>,
    /// The `user-agent` header. `None` if the request has none.
    pub user_agent: Option<&'a [u8]>,
}

// === impl BanCause ===

impl BanCause<'_> {
    /// Returns the sentence, such as `6 × POST /login 401 in 10 s, python-requests/2.32`.
    pub fn to_text(&self) -> String {
        let mut out = Vec::with_capacity(MAX_CAUSE);
        if self.counts_requests {
            show(&mut out, format_args!("{} × ", self.count));
        } else {
            show(&mut out, format_args!("{} units, last ", self.count));
        }
        part(&mut out, self.method.as_bytes());
        out.push(b' ');
        part(&mut out, self.path);
        if let Some(status) = self.status {
            show(&mut out, format_args!(" {status}"));
        }
        match self.period {
            Some(period) => show(&mut out, format_args!(" in {}", length(period))),
            None => out.extend_from_slice(b" in flight"),
        }
        if let Some(user_agent) = self.user_agent {
            out.extend_from_slice(b", ");
            part(&mut out, user_agent);
        }
        cut_text(&String::from_utf8_lossy(&out), MAX_CAUSE).to_owned()
    }
}

/// Appends a client's text, escaped and cut.
fn part(out: &mut Vec<u8>, text: &[u8]) {
    match text.get(..MAX_PART) {
        None => escape::text(out, text),
        Some(start) => {
            escape::text(out, start);
            if text.len() > MAX_PART {
                out.extend_from_slice("…".as_bytes());
            }
        }
    }
}

/// Formats a period for people, in the largest unit that divides it.
fn length(period: Duration) -> String {
    let millis = period.as_millis();
    let units = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("min", 60_000),
        ("s", 1_000),
    ];
    let fits = units
        .iter()
        .find(|(_, unit)| millis >= *unit && millis.is_multiple_of(*unit));
    match fits {
        Some((name, unit)) => format!("{} {name}", millis / unit),
        None => format!("{millis} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: BanCause<'_> = BanCause {
        count: 6,
        counts_requests: true,
        period: Some(Duration::from_secs(10)),
        method: "POST",
        path: b"/login",
        status: Some(401),
        user_agent: Some(b"python-requests/2.32"),
    };

    #[test]
    fn a_cause_names_the_requests_and_the_client() {
        let text = LOGIN.to_text();
        assert_eq!(text, "6 × POST /login 401 in 10 s, python-requests/2.32");
        let early = BanCause {
            count: 900,
            counts_requests: false,
            period: Some(Duration::from_secs(3600)),
            status: None,
            user_agent: None,
            ..LOGIN
        };
        assert_eq!(early.to_text(), "900 units, last POST /login in 1 h");
        let in_flight = BanCause {
            period: None,
            ..early
        };
        assert!(in_flight.to_text().ends_with(" in flight"));
    }

    #[test]
    fn text_of_a_client_is_escaped_and_cut() {
        let hostile = BanCause {
            path: b"/\x1b[2J\n",
            user_agent: Some(&[0; 10_000]),
            ..LOGIN
        };
        let text = hostile.to_text();
        assert!(text.starts_with("6 × POST /\\u{001b}[2J\\n 401"));
        assert!(text.len() <= MAX_CAUSE);
        assert!(!text.contains(|c: char| c.is_control()));
    }
}
