//! A request with a hot key, in the form of an `explain` request.

use std::net::IpAddr;

use super::decision_record::{MAX_TEXT, shortened};
use crate::observe::access::json_writer::{JsonWriter, show};
use crate::observe::escape;

/// The maximum size of the headers in a sample, in bytes as sent. Further headers are left out.
const MAX_HEADERS: usize = 2 << 10;

/// A request with a hot key. The caller has redacted secret values.
#[derive(Debug)]
pub struct RequestSample<'a> {
    /// The method.
    pub method: &'a str,
    /// Whether the request arrived over TLS.
    pub https: bool,
    /// The requested host, with the port unless it is the default one.
    pub authority: &'a str,
    /// The path and the query.
    pub target: &'a str,
    /// The client address.
    pub ip: IpAddr,
    /// The number of the client's autonomous system, if known.
    pub asn: Option<u32>,
    /// The client's country code, if known.
    pub country: Option<&'a [u8; 2]>,
    /// The JA3 hash. `None` for a plain connection.
    pub ja3: Option<&'a str>,
    /// The JA4 fingerprint. `None` for a plain connection.
    pub ja4: Option<&'a str>,
    /// The status of the response. `None` if the request was counted before it.
    pub status: Option<u16>,
}

// === impl RequestSample ===

impl RequestSample<'_> {
    /// Returns the request as a JSON object, in the form of a request to `/api/explain`.
    pub fn to_json<V: AsRef<[u8]>>(
        &self,
        headers: impl Iterator<Item = (impl AsRef<str>, V)>,
    ) -> String {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(b"{\"method\":");
        escape::json(&mut out, shortened(self.method.as_bytes()));
        let mut url = Vec::with_capacity(64);
        let scheme = if self.https { "https" } else { "http" };
        show(&mut url, format_args!("{scheme}://{}", self.authority));
        url.extend_from_slice(self.target.as_bytes());
        url.truncate(2 * MAX_TEXT);
        let mut o = JsonWriter(&mut out);
        o.bytes(",\"url\":", Some(&url));
        o.key(",\"headers\":{");
        write_headers(&mut out, headers);
        out.push(b'}');
        let mut o = JsonWriter(&mut out);
        o.address(",\"ip\":", self.ip);
        o.number(",\"asn\":", self.asn.map(u64::from));
        o.bytes(",\"country\":", self.country.map(|code| &code[..]));
        o.text(",\"ja3\":", self.ja3);
        o.text(",\"ja4\":", self.ja4);
        o.number(",\"status\":", self.status.map(u64::from));
        out.push(b'}');
        // The writer escapes everything that is not UTF-8.
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Writes the headers, each name once with its first value.
fn write_headers<V: AsRef<[u8]>>(
    out: &mut Vec<u8>,
    headers: impl Iterator<Item = (impl AsRef<str>, V)>,
) {
    let mut size = 0;
    for (index, (name, value)) in headers.enumerate() {
        let (name, value) = (name.as_ref().as_bytes(), shortened(value.as_ref()));
        size += name.len() + value.len();
        if size > MAX_HEADERS {
            return;
        }
        if index > 0 {
            out.push(b',');
        }
        escape::json(out, name);
        out.push(b':');
        escape::json(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: RequestSample<'_> = RequestSample {
        method: "POST",
        https: true,
        authority: "shop.example",
        target: "/login?a=\"b\"",
        ip: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
        asn: Some(64_500),
        country: Some(b"ZZ"),
        ja3: None,
        ja4: Some("t13i"),
        status: Some(401),
    };

    #[test]
    fn a_sample_is_a_request_to_explain() {
        let headers = [("accept", b"*/*".as_slice()), ("cookie", b"h:01")];
        assert_eq!(
            SAMPLE.to_json(headers.into_iter()),
            r#"{"method":"POST","url":"https://shop.example/login?a=\"b\"","headers":{"accept":"*/*","cookie":"h:01"},"ip":"192.0.2.1","asn":64500,"country":"ZZ","ja3":null,"ja4":"t13i","status":401}"#
        );
    }

    #[test]
    fn the_headers_of_a_sample_are_bounded() {
        let value = vec![b'x'; 10_000];
        let headers = (0..100).map(|n| (format!("x-{n}"), &value));
        let json = SAMPLE.to_json(headers);
        assert!(json.contains("\"x-6\":\"xxx") && !json.contains("\"x-9\""));
        assert!(json.len() < 4 << 10);
    }
}
