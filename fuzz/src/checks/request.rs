//! Any bytes as the head of a request: what the gateway sees is what a strict reader sees in the
//! bytes that an origin would get, and nothing in them is the client's word about itself.

use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Uri, Version};
use http_body::Frame;
use lockgate::body::{Body, BodyError};
use lockgate::facts::{BodyLength, RequestHead, UpgradeProtocol};
use lockgate::route::edit::ForwardPath;
use lockgate::upstream::{CredentialHeaders, ForwardedHeaders, OutboundRequest, http1};

use super::strict::Seen;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));

/// Takes the first byte for how the request comes, the rest for its head.
pub fn request(data: &[u8]) {
    let [how, bytes @ ..] = data else {
        return;
    };
    let Some(parts) = parsed(bytes) else {
        return;
    };
    let Ok(head) = RequestHead::read(&parts, how & 1 != 0) else {
        return;
    };
    let path = match how >> 1 & 3 {
        0 => ForwardPath::Raw,
        1 => ForwardPath::without("/a").expect("a prefix"),
        _ => ForwardPath::Normal,
    };
    for trusted in [false, true] {
        forward(&parts, &head, &path, trusted);
    }
}

/// As hyper reads it; `None` where it refuses.
fn parsed(bytes: &[u8]) -> Option<Parts> {
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut read = httparse::Request::new(&mut fields);
    if !read.parse(bytes).ok()?.is_complete() {
        return None;
    }
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(read.method?.as_bytes()).ok()?;
    *request.uri_mut() = read.path?.parse::<Uri>().ok()?;
    *request.version_mut() = match read.version? {
        0 => Version::HTTP_10,
        _ => Version::HTTP_11,
    };
    for field in read.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(field.value).ok()?;
        request.headers_mut().append(name, value);
    }
    Some(request.into_parts().0)
}

fn forward(parts: &Parts, head: &RequestHead<'_>, path: &ForwardPath, trusted: bool) {
    let target = path.target(head);
    let outbound = OutboundRequest {
        method: head.method,
        target: &target,
        headers: &parts.headers,
        edits: None,
        version: head.version,
        host: None,
        forwarding: ForwardedHeaders {
            peer: PEER,
            client: CLIENT,
            trusted_peer: trusted,
            host: head.authority(),
            https: head.secure,
            request_id: "0123456789abcdef",
            rules: "login,search",
            credentials: Some(CredentialHeaders {
                client: None,
                challenge: "login/site",
            }),
        },
        body: body(head),
        upgrade: head.upgrade.is_some(),
        key: 0,
        response_timeout: None,
    };
    let bytes = http1::request_head(outbound).expect("a head that was read can be sent");
    let seen = Seen::read(&bytes).unwrap_or_else(|| panic!("{}", bytes.escape_ascii()));
    same(&seen, head, &target);
    own_words(&seen, head, trusted);
}

fn body(head: &RequestHead<'_>) -> Body {
    match head.has_body() {
        true => Body::stream(Coming),
        false => Body::Empty,
    }
}

/// The same method, target, host and length.
fn same(seen: &Seen<'_>, head: &RequestHead<'_>, target: &str) {
    assert_eq!(seen.method, head.method.as_str());
    assert_eq!(seen.target, target);
    assert_eq!(seen.only("host"), head.authority().as_bytes());
    match head.body {
        BodyLength::None => assert!(matches!(
            seen.length,
            BodyLength::None | BodyLength::Declared(0)
        )),
        BodyLength::Declared(_) | BodyLength::Unknown => assert_eq!(seen.length, head.body),
    }
    if *head.path != *"*" {
        assert!(head.path.starts_with('/'));
    }
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    assert_eq!(query, head.query);
    let rest = head.path.strip_prefix("/a").filter(|rest| !rest.is_empty());
    let stripped = path == rest.unwrap_or("/");
    assert!(path == head.path || path == head.raw_path || stripped);
}

/// What says who asks and what becomes of the connection is the gateway's, or a trusted proxy's.
fn own_words(seen: &Seen<'_>, head: &RequestHead<'_>, trusted: bool) {
    let upgrade = head.upgrade == Some(UpgradeProtocol::WebSocket);
    for (name, value) in &seen.fields {
        let allowed = match *name {
            "connection" => *value == b"te" && !upgrade || *value == b"upgrade" && upgrade,
            "upgrade" => *value == b"websocket" && upgrade,
            "te" => *value == b"trailers",
            "expect" | "keep-alive" | "proxy-connection" | "proxy-authorization" | "proxy" => false,
            "http2-settings" => false,
            "x-lockgate-rule" => *value == b"login,search",
            "forwarded" | "x-original-url" | "x-rewrite-url" | "true-client-ip" => trusted,
            _ => !is_disguised(name),
        };
        assert!(allowed, "{name}: {}", value.escape_ascii());
    }
    let via = seen.only("x-forwarded-for");
    assert!(via == b"192.0.2.7" || trusted && via.ends_with(b", 192.0.2.7"));
    assert_eq!(seen.only("x-real-ip"), b"203.0.113.9");
    assert_eq!(seen.only("x-lockgate-rule"), b"login,search");
    if !trusted {
        let proto: &[u8] = if head.secure { b"https" } else { b"http" };
        assert_eq!(seen.only("x-forwarded-proto"), proto);
        assert_eq!(seen.only("x-forwarded-host"), head.authority().as_bytes());
        assert_eq!(seen.only("x-request-id"), b"0123456789abcdef");
    }
}

/// Whether a script would read a name as one that the gateway vouches for.
fn is_disguised(name: &str) -> bool {
    let plain = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let guarded = plain.starts_with("x-forwarded-") || plain.starts_with("x-lockgate-");
    let framing = ["host", "content-length", "transfer-encoding", "x-real-ip"];
    plain != name && (guarded || framing.contains(&&*plain))
}

/// A body that has not come yet.
struct Coming;

impl http_body::Body for Coming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Pending
    }
}
