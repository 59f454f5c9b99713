//! Which headers a head may contain: tables of inputs and outputs.

use std::net::IpAddr;

use http::header::HeaderName;
use http::{HeaderValue, StatusCode, Version};

use super::HeaderMap;
use super::head::written;
use crate::upstream::http1::connection::ReadBuffer;
use crate::upstream::http1::response_head::{self, ExpectedResponse};
use crate::upstream::{CredentialHeaders, ForwardedHeaders, Upstream};

type Fields = [(&'static str, &'static str)];

const PEER: &str = "198.51.100.7";
const CLIENT: &str = "203.0.113.9";

fn map(fields: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    map
}

fn list(map: &HeaderMap) -> Vec<(String, String)> {
    let fields = map.iter();
    let mut list: Vec<_> = fields
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    list.sort_unstable();
    list
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn untrusted() -> ForwardedHeaders<'static> {
    ForwardedHeaders {
        peer: ip(PEER),
        client: ip(PEER),
        trusted_peer: false,
        host: "a.test",
        https: true,
        request_id: "id-1",
        rules: "",
        credentials: None,
    }
}

fn trusted() -> ForwardedHeaders<'static> {
    ForwardedHeaders {
        client: ip(CLIENT),
        trusted_peer: true,
        ..untrusted()
    }
}

/// The forwarded headers, without those that the gateway always sets.
fn beyond(
    fields: &[(&str, &str)],
    forwarding: &ForwardedHeaders<'_>,
    upgrade: bool,
) -> Vec<(String, String)> {
    let headers = written(&map(fields), Version::HTTP_11, forwarding, upgrade);
    let plain = list(&written(
        &HeaderMap::new(),
        Version::HTTP_11,
        forwarding,
        false,
    ));
    let mut all = list(&headers);
    all.retain(|field| !plain.contains(field));
    all
}

/// Headers that a client sends, and which of them reach the origin server.
#[test]
fn client_headers_are_forwarded_or_removed() {
    let cases: &[(&Fields, &Fields)] = &[
        (&[("accept", "*/*")], &[("accept", "*/*")]),
        (&[("cookie", "a=1")], &[("cookie", "a=1")]),
        (&[("authorization", "b")], &[("authorization", "b")]),
        (
            &[("x-app", "1"), ("x-app", "2")],
            &[("x-app", "1"), ("x-app", "2")],
        ),
        (&[("x_app", "1")], &[("x_app", "1")]),
        (&[("content-length", "5")], &[("content-length", "5")]),
        (&[("trailer", "x-sum")], &[("trailer", "x-sum")]),
        (&[("connection", "close")], &[]),
        (&[("connection", "keep-alive")], &[]),
        (&[("connection", "x-a"), ("x-a", "1")], &[]),
        (
            &[("connection", "close, X-A"), ("x-a", "1"), ("x-b", "2")],
            &[("x-b", "2")],
        ),
        (
            &[
                ("connection", "x-a"),
                ("connection", "x-b"),
                ("x-a", "1"),
                ("x-b", "1"),
            ],
            &[],
        ),
        (
            &[("connection", " x-a ,,\tx-b"), ("x-a", "1"), ("x-b", "1")],
            &[],
        ),
        (&[("connection", "x-a"), ("x-a", "1"), ("x-a", "2")], &[]),
        (&[("connection", "()<>@"), ("x-a", "1")], &[("x-a", "1")]),
        (
            &[("connection", "content-length"), ("content-length", "5")],
            &[("content-length", "5")],
        ),
        (&[("connection", "cookie"), ("cookie", "a=1")], &[]),
        (&[("connection", "connection")], &[]),
        (&[("keep-alive", "timeout=5")], &[]),
        (&[("proxy-connection", "keep-alive")], &[]),
        (&[("proxy-authorization", "b")], &[]),
        (&[("proxy-authenticate", "b")], &[]),
        (&[("proxy", "http://evil/")], &[]),
        (&[("http2-settings", "AAM")], &[]),
        (&[("transfer-encoding", "chunked")], &[]),
        (&[("expect", "100-continue")], &[]),
        (&[("upgrade", "h2c"), ("connection", "upgrade")], &[]),
        (&[("upgrade", "websocket"), ("connection", "upgrade")], &[]),
        (&[("te", "gzip")], &[]),
        (
            &[("te", "trailers")],
            &[("connection", "te"), ("te", "trailers")],
        ),
        (
            &[("te", "gzip;q=1, Trailers")],
            &[("connection", "te"), ("te", "trailers")],
        ),
        (
            &[("te", "trailers"), ("connection", "te")],
            &[("connection", "te"), ("te", "trailers")],
        ),
        (&[("x-lockgate-rule", "r")], &[]),
        (&[("x-lockgate-anything", "r")], &[]),
        (&[("X_Lockgate_Rule", "r")], &[]),
        (&[("x_forwarded_for", "1.2.3.4")], &[]),
        (&[("x-forwarded_for", "1.2.3.4")], &[]),
        (&[("x_real_ip", "1.2.3.4")], &[]),
        (&[("x.real.ip", "1.2.3.4")], &[]),
        (&[("x-forwarded-client.cert", "1")], &[]),
        (&[("x_request_id", "1")], &[]),
        (&[("content_length", "5")], &[]),
        (&[("transfer_encoding", "chunked")], &[]),
        (&[("x_forwarded_proto", "https")], &[]),
    ];
    for forwarding in [untrusted(), trusted()] {
        for (sent, arrived) in cases {
            let arrived = list(&map(arrived));
            let trust = forwarding.trusted_peer;
            assert_eq!(
                beyond(sent, &forwarding, false),
                arrived,
                "{sent:?}, trusted: {trust}"
            );
        }
    }
}

#[test]
fn rule_tags_are_one_header_and_replace_the_clients() {
    let said: &Fields = &[("x-lockgate-rule", "mine"), ("X_Lockgate_Rule", "mine")];
    for forwarding in [untrusted(), trusted()] {
        let rules = "agents, no_accept";
        let tagged = ForwardedHeaders {
            rules,
            ..forwarding
        };
        assert_eq!(sent(said, &tagged, "x-lockgate-rule"), rules);
        assert_eq!(sent(said, &forwarding, "x-lockgate-rule"), "");
        let broken = ForwardedHeaders {
            rules: "a\r\nx: y",
            ..forwarding
        };
        assert_eq!(sent(said, &broken, "x-lockgate-rule"), "");
    }
}

/// Headers that are forwarded only from a trusted proxy.
#[test]
fn forwarding_headers_are_kept_only_from_a_trusted_proxy() {
    for name in [
        "forwarded",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-server",
        "x-client-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "fastly-client-ip",
        "x-cluster-client-ip",
        "forwarded-for",
        "front-end-https",
        "x-appengine-user-ip",
        "x-azure-clientip",
        "x-envoy-original-path",
        "x-forwarded",
        "x-original-host",
        "x-scheme",
        "x-url-scheme",
    ] {
        let sent = [(name, "v")];
        assert_eq!(beyond(&sent, &untrusted(), false), [], "{name}");
        assert_eq!(
            beyond(&sent, &trusted(), false),
            list(&map(&sent)),
            "{name}"
        );
    }
}

/// The value of one header at the origin server, its lines joined by `|`.
fn sent(fields: &Fields, forwarding: &ForwardedHeaders<'_>, name: &str) -> String {
    let headers = written(&map(fields), Version::HTTP_11, forwarding, false);
    let lines = headers.get_all(name).iter().map(|v| v.to_str().unwrap());
    lines.collect::<Vec<_>>().join("|")
}

#[test]
fn the_gateway_sets_its_forwarding_headers() {
    let xff: &Fields = &[
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "2.2.2.2, 3.3.3.3"),
    ];
    let other: &Fields = &[
        ("x-forwarded-host", "b.test"),
        ("x-forwarded-proto", "gopher"),
        ("x-real-ip", "1.1.1.1"),
        ("x-request-id", "theirs"),
        ("host", "b.test"),
    ];
    let stripping: &Fields = &[
        ("host", "b.test"),
        ("x-forwarded-for", "1.1.1.1"),
        ("x-request-id", "theirs"),
        (
            "connection",
            "host, x-forwarded-for, x-forwarded-host, x-forwarded-proto",
        ),
        ("connection", "x-real-ip, x-request-id, forwarded"),
    ];
    let alone = ForwardedHeaders {
        client: ip(PEER),
        ..trusted()
    };
    let plain = ForwardedHeaders {
        https: false,
        peer: ip("::ffff:192.0.2.1"),
        client: ip("::ffff:192.0.2.1"),
        ..untrusted()
    };
    let v6 = ForwardedHeaders {
        peer: ip("2001:db8::1"),
        client: ip("2001:db8::1"),
        ..untrusted()
    };
    for (name, fields, forwarding, value) in [
        ("x-forwarded-for", &[][..], untrusted(), PEER),
        ("x-forwarded-for", xff, untrusted(), PEER),
        (
            "x-forwarded-for",
            xff,
            trusted(),
            "1.1.1.1, 2.2.2.2, 3.3.3.3, 198.51.100.7",
        ),
        (
            "x-forwarded-for",
            &xff[..1],
            trusted(),
            "1.1.1.1, 198.51.100.7",
        ),
        ("x-forwarded-for", &[][..], trusted(), PEER),
        ("x-forwarded-for", &[][..], alone, PEER),
        ("x-forwarded-for", &xff[..1], alone, "1.1.1.1, 198.51.100.7"),
        ("x-forwarded-for", &[][..], plain, "192.0.2.1"),
        ("x-forwarded-for", &[][..], v6, "2001:db8::1"),
        ("x-forwarded-for", stripping, untrusted(), PEER),
        (
            "x-forwarded-for",
            stripping,
            trusted(),
            "1.1.1.1, 198.51.100.7",
        ),
        ("x-real-ip", &[][..], untrusted(), PEER),
        ("x-real-ip", other, untrusted(), PEER),
        ("x-real-ip", other, trusted(), CLIENT),
        ("x-real-ip", stripping, trusted(), CLIENT),
        ("x-real-ip", &[][..], plain, "192.0.2.1"),
        ("x-forwarded-host", &[][..], untrusted(), "a.test"),
        ("x-forwarded-host", other, untrusted(), "a.test"),
        ("x-forwarded-host", other, trusted(), "b.test"),
        ("x-forwarded-host", &[][..], trusted(), "a.test"),
        ("x-forwarded-proto", &[][..], untrusted(), "https"),
        ("x-forwarded-proto", &[][..], plain, "http"),
        ("x-forwarded-proto", other, untrusted(), "https"),
        ("x-forwarded-proto", other, trusted(), "gopher"),
        ("x-request-id", &[][..], untrusted(), "id-1"),
        ("x-request-id", other, untrusted(), "id-1"),
        ("x-request-id", other, trusted(), "id-1"),
        ("x-request-id", &[][..], trusted(), "id-1"),
        ("x-request-id", stripping, trusted(), "id-1"),
        ("host", &[][..], untrusted(), "a.test"),
        ("host", other, untrusted(), "a.test"),
        ("host", other, trusted(), "a.test"),
        ("host", stripping, untrusted(), "a.test"),
    ] {
        assert_eq!(sent(fields, &forwarding, name), value, "{name} {fields:?}");
    }
}

#[test]
fn a_websocket_handshake_stays_one() {
    let fields: &Fields = &[
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-key", "k"),
        ("te", "trailers"),
    ];
    let arrived = beyond(fields, &untrusted(), true);
    let arrived: Vec<_> = arrived
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    let expected = [
        ("connection", "upgrade"),
        ("sec-websocket-key", "k"),
        ("upgrade", "websocket"),
    ];
    assert_eq!(arrived, expected);
}

#[test]
fn split_http_2_cookies_are_joined_into_one_header() {
    for (version, lines) in [
        (Version::HTTP_2, "a=1; b=2; c=3"),
        (Version::HTTP_11, "a=1|b=2|c=3"),
    ] {
        let headers = map(&[("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")]);
        let headers = written(&headers, version, &untrusted(), false);
        let found = headers
            .get_all("cookie")
            .iter()
            .map(|v| v.to_str().unwrap());
        assert_eq!(found.collect::<Vec<_>>().join("|"), lines);
    }
}

#[test]
fn response_headers_are_forwarded_or_removed() {
    let cases: &[(u16, &Fields, &Fields)] = &[
        (200, &[("server", "s")], &[("server", "s")]),
        (200, &[("content-length", "5")], &[("content-length", "5")]),
        (204, &[("content-length", "5")], &[]),
        (304, &[("content-length", "5")], &[("content-length", "5")]),
        (200, &[("connection", "close")], &[]),
        (200, &[("connection", "x-a"), ("x-a", "1")], &[]),
        (
            200,
            &[("connection", "content-length"), ("content-length", "5")],
            &[("content-length", "5")],
        ),
        (200, &[("keep-alive", "timeout=5")], &[]),
        (200, &[("proxy-connection", "close")], &[]),
        (407, &[("proxy-authenticate", "Basic")], &[]),
        (200, &[("transfer-encoding", "chunked")], &[]),
        (200, &[("upgrade", "h2,h2c")], &[]),
        (200, &[("te", "trailers")], &[]),
        (200, &[("trailer", "x-sum")], &[("trailer", "x-sum")]),
        (
            101,
            &[("upgrade", "WebSocket")],
            &[("connection", "upgrade"), ("upgrade", "websocket")],
        ),
        (
            200,
            &[("set-cookie", "a"), ("set-cookie", "b")],
            &[("set-cookie", "a"), ("set-cookie", "b")],
        ),
    ];
    for (status, sent, arrived) in cases {
        let lines: String = sent.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
        let bytes = format!("HTTP/1.1 {status} Fine\r\n{lines}\r\n");
        let mut buffer = ReadBuffer::from(bytes.as_bytes());
        let upgrade = *status == 101;
        let upstream = Upstream::without_servers("app");
        let asked = ExpectedResponse::new(&http::Method::GET, upgrade, &upstream);
        let head = response_head::read(&mut buffer, asked).unwrap().unwrap();
        assert_eq!(head.status, StatusCode::from_u16(*status).unwrap());
        assert_eq!(
            list(&head.headers),
            list(&map(arrived)),
            "{status} {sent:?}"
        );
    }
}

#[test]
fn the_gateways_cookies_are_not_forwarded() {
    let cookies = |lines: &[&str], version| {
        let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
        let known = ForwardedHeaders {
            credentials: Some(CredentialHeaders {
                client: Some("known"),
                challenge: "",
            }),
            ..untrusted()
        };
        let headers = written(&map(&lines), version, &known, false);
        let all = list(&headers).into_iter();
        let all = all.filter(|(name, _)| name == "cookie" || name == "x-lockgate-client");
        all.map(|(_, value)| value).collect::<Vec<_>>()
    };
    let own = "__Host-lockgate-client=a";
    for version in [Version::HTTP_11, Version::HTTP_2] {
        assert_eq!(cookies(&[own], version), ["known"]);
        assert_eq!(cookies(&["a=1;b=2"], version), ["a=1;b=2", "known"]);
        let all =
            format!("a=1;{own} ; __Secure-lockgate-client=x;b=2; __Host-lockgate-clearance=y");
        assert_eq!(cookies(&[&all], version), ["a=1; b=2", "known"]);
        assert_eq!(cookies(&[&format!(" {own}; {own} ;")], version), ["known"]);
        let like = "__Host-lockgate-client2=a; x__Host-lockgate-client=b; __Host-lockgate-clien=c";
        assert_eq!(cookies(&[like], version), [like, "known"]);
    }
    assert_eq!(
        cookies(&["a=1", own, "b=2"], Version::HTTP_2),
        ["a=1; b=2", "known"]
    );
    assert_eq!(
        cookies(&["a=1", own, "b=2"], Version::HTTP_11),
        ["a=1", "b=2", "known"]
    );
}
