//! A written head is unambiguous: whatever a client sends, a strict parser finds exactly the headers that
//! the gateway meant.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Version};
use proptest::prelude::*;

use super::{Ipv4Addr, outbound};
use crate::body::Body;
use crate::upstream::http1::upload::BodyFraming;
use crate::upstream::request_head::{self, is_path};
use crate::upstream::{ForwardedHeaders, OutboundRequest};

const NAMES: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "transfer_encoding",
    "upgrade",
    "x-a",
    "x-b",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-lockgate-a",
    "x-real-ip",
    "x-request-id",
    "x_real_ip",
];

/// The headers as an origin server reads them.
pub(super) fn written(
    headers: &HeaderMap,
    version: Version,
    forwarding: &ForwardedHeaders<'_>,
    upgrade: bool,
) -> HeaderMap {
    let outbound = OutboundRequest {
        method: &Method::GET,
        target: "/",
        headers,
        edits: None,
        version,
        host: None,
        forwarding: *forwarding,
        body: Body::Empty,
        upgrade,
        key: 0,
        response_timeout: None,
    };
    let length = headers.get("content-length");
    let length = length.map_or(0, |value| value.to_str().unwrap().parse().unwrap());
    parsed(&request_head::write(&outbound, BodyFraming::Length(length)))
}

/// The headers of a head, read by an independent parser.
fn parsed(head: &[u8]) -> HeaderMap {
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut fields);
    assert_eq!(
        request.parse(head),
        Ok(httparse::Status::Complete(head.len()))
    );
    let field = |f: &httparse::Header<'_>| (f.name.to_owned(), f.value.to_owned());
    let fields: Vec<_> = request.headers.iter().map(field).collect();
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_bytes(&value).unwrap());
    }
    map
}

/// Any bytes that a value can hold, and words with a meaning.
fn value() -> impl Strategy<Value = HeaderValue> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20)
            .prop_filter_map("not a value", |bytes| HeaderValue::from_bytes(&bytes).ok()),
        prop::sample::select(vec![
            "close", "x-a, x-b", "trailers", "host", "chunked", "5", ""
        ])
        .prop_map(HeaderValue::from_static),
    ]
}

fn fields() -> impl Strategy<Value = HeaderMap> {
    let field = (prop::sample::select(NAMES), value());
    prop::collection::vec(field, 0..12).prop_map(|fields| {
        let field = |(name, value)| (HeaderName::from_static(name), value);
        let mut map = HeaderMap::new();
        fields.into_iter().map(field).for_each(|(name, value)| {
            map.append(name, value);
        });
        map
    })
}

fn framing() -> impl Strategy<Value = BodyFraming> {
    prop_oneof![
        any::<u64>().prop_map(BodyFraming::Length),
        Just(BodyFraming::Chunked)
    ]
}

/// The headers that a strict parser finds in a head, and its request line.
fn strictly(head: &[u8]) -> (String, Vec<(String, Vec<u8>)>) {
    let text: String = head.iter().map(|&b| char::from(b)).collect();
    assert_eq!(text.matches("\r\n\r\n").count(), 1, "{text:?}");
    assert!(text.ends_with("\r\n\r\n"));
    let plain = text.replace("\r\n", "");
    assert!(!plain.contains(['\r', '\n', '\0']), "{text:?}");
    let mut storage = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut storage);
    let parsed = request.parse(head).unwrap();
    assert_eq!(parsed, httparse::Status::Complete(head.len()));
    let fields = request.headers.iter();
    let fields = fields
        .map(|f| (f.name.to_owned(), f.value.to_vec()))
        .collect();
    let line = [request.method.unwrap(), request.path.unwrap()].join(" ");
    (line, fields)
}

proptest! {
    #[test]
    fn a_written_head_parses_to_the_same_request(
        headers in fields(),
        framing in framing(),
        trusted_peer in any::<bool>(),
        http_2 in any::<bool>(),
        upgrade in any::<bool>(),
        host in "\\PC{0,12}|a\\.test|[\r\n a]{1,4}",
        request_id in "[a-f0-9]{8}|[\r\n:a]{1,4}",
        target in "/[!-~]{0,20}",
    ) {
        prop_assume!(is_path(&target));
        let mut parts = http::Request::new(()).into_parts().0;
        parts.headers = headers;
        parts.method = Method::POST;
        parts.version = if http_2 { Version::HTTP_2 } else { Version::HTTP_11 };
        let mut outbound = outbound(&parts, Body::Empty);
        let other = Ipv4Addr::new(192, 0, 2, 255);
        outbound.forwarding = ForwardedHeaders {
            client: other.into(),
            trusted_peer,
            host: &host,
            request_id: &request_id,
            ..outbound.forwarding
        };
        outbound.upgrade = upgrade;
        outbound.target = &target;
        let (line, fields) = strictly(&request_head::write(&outbound, framing));
        prop_assert_eq!(line, format!("POST {target}"));
        let all = |name: &str| -> Vec<&[u8]> {
            fields.iter().filter(|f| f.0 == name).map(|f| &f.1[..]).collect()
        };

        let real = if host.contains(|c: char| c.is_ascii_control()) { "" } else { host.trim_matches([' ', '\t']) };
        prop_assert_eq!(all("host"), [real.as_bytes()]);
        let (length, coding) = match framing {
            BodyFraming::Length(n) => (vec![n.to_string().into_bytes()], 0),
            BodyFraming::Chunked => (vec![], 1),
        };
        prop_assert_eq!(all("content-length"), length);
        prop_assert_eq!(all("transfer-encoding"), vec![&b"chunked"[..]; coding]);
        prop_assert_eq!(all("x-real-ip"), [b"192.0.2.255"]);
        let hops = all("x-forwarded-for");
        prop_assert_eq!(hops.len(), 1);
        prop_assert!(hops[0].ends_with(b"127.0.0.1"));
        for gone in ["expect", "keep-alive", "x-lockgate-a", "x_real_ip", "transfer_encoding"] {
            prop_assert!(all(gone).is_empty(), "{}", gone);
        }
        prop_assert!(all("connection").len() <= 1);
        prop_assert_eq!(all("upgrade").len(), usize::from(upgrade));
        prop_assert!(trusted_peer || all("x-request-id").len() <= 1);
        prop_assert!(trusted_peer || all("forwarded").is_empty());
        prop_assert!(!http_2 || all("cookie").len() <= 1);
    }
}
