//! The exact bytes sent to an origin server, and what is accepted from one.

use super::*;
use crate::upstream::headers::clean_trailers;
use crate::upstream::request_head::is_path;

/// The request as the origin server received it: its head and, up to `end`, its body.
async fn said(request: Request<Body>, end: &'static str) -> String {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = Cell::new(Some(sender));
    let origin = Origin::playing(move |_, mut stream| {
        let sender = sender.take().unwrap();
        async move {
            let said = until(&mut stream, end).await;
            stream.write_all(OK.as_bytes()).await.unwrap();
            sender.send(said).unwrap();
        }
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    assert_eq!(text(bed.send(request).await.unwrap()).await, "ok");
    receiver.await.unwrap()
}

#[tokio::test(flavor = "local")]
async fn a_request_without_a_body_has_no_framing() {
    let said = said(get("/a?b=c"), "\r\n\r\n").await;
    assert_eq!(
        said,
        "GET /a?b=c HTTP/1.1\r\nhost: a.test\r\nx-forwarded-for: 127.0.0.1\r\n\
         x-real-ip: 127.0.0.1\r\nx-forwarded-host: a.test\r\nx-forwarded-proto: http\r\n\
         x-request-id: id-1\r\n\r\n"
    );
}

#[tokio::test(flavor = "local")]
async fn an_empty_post_has_a_content_length_of_zero() {
    let said = said(post(Body::Empty), "\r\n\r\n").await;
    assert!(said.ends_with("content-length: 0\r\n\r\n"), "{said}");
}

#[tokio::test(flavor = "local")]
async fn a_complete_body_has_a_content_length() {
    let said = said(post(Body::from("hello")), "hello").await;
    assert!(said.ends_with("content-length: 5\r\n\r\nhello"), "{said}");
    assert!(!said.contains("transfer-encoding"), "{said}");
}

#[tokio::test(flavor = "local")]
async fn a_declared_length_is_kept() {
    let mut request = post(chunks(&["hel", "lo"]));
    request.headers_mut().insert("content-length", 5.into());
    let said = said(request, "hello").await;
    assert!(said.ends_with("content-length: 5\r\n\r\nhello"), "{said}");
    assert!(!said.contains("transfer-encoding"), "{said}");
}

#[tokio::test(flavor = "local")]
async fn a_body_of_unknown_length_is_chunked() {
    let said = said(post(chunks(&["hel", "lo"])), "0\r\n\r\n").await;
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with("transfer-encoding: chunked"), "{head}");
    assert!(!head.contains("content-length"), "{head}");
    assert_eq!(body, "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
}

#[tokio::test(flavor = "local")]
async fn the_body_of_a_get_is_forwarded() {
    let mut request = get("/");
    *request.body_mut() = chunks(&["hi"]);
    let said = said(request, "0\r\n\r\n").await;
    assert!(said.ends_with("2\r\nhi\r\n0\r\n\r\n"), "{said}");
}

#[tokio::test(flavor = "local")]
async fn other_transfer_codings_are_replaced() {
    let mut request = post(chunks(&["hi"]));
    let value = "gzip, chunked".parse().unwrap();
    request.headers_mut().insert("transfer-encoding", value);
    let said = said(request, "0\r\n\r\n").await;
    assert!(said.contains("transfer-encoding: chunked\r\n"), "{said}");
}

#[tokio::test(flavor = "local")]
async fn a_target_that_is_not_a_path_is_not_sent() {
    let origin = Origin::answering(OK).await;
    let bed = Bed::to(&[origin.address]);
    let (parts, _) = get("/").into_parts();
    for target in ["", "*", "a.test:80", "http://a/", "/ HTTP/1.1\r\nx: y\r\n"] {
        let mut outbound = outbound(&parts, Body::Empty);
        outbound.target = target;
        let answer = bed.pool.forward(&bed.upstream, outbound).await;
        let error = answer.err().unwrap();
        assert_eq!(
            (error.reason(), error.status().as_u16()),
            ("request_target", 400)
        );
        assert!(error.is_bad_request());
    }
    assert_eq!(origin.accepted.get(), 0);
}

#[tokio::test(flavor = "local")]
async fn an_http_2_request_is_sent_as_http_1_1() {
    let mut request = get("/");
    *request.version_mut() = http::Version::HTTP_2;
    assert!(
        said(request, "\r\n\r\n")
            .await
            .starts_with("GET / HTTP/1.1\r\n")
    );
}

#[tokio::test(flavor = "local")]
async fn ambiguous_responses_are_refused() {
    let bad = [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nokk",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 0x2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nok",
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\0c\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\x7fc\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\x01c\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\r\na : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        "hello\r\n\r\n",
        "<html>no head</html>",
    ];
    for bytes in bad {
        let origin = Origin::answering(bytes.to_owned()).await;
        let bed = Bed::to(&[origin.address]);
        let shown = &bytes[..bytes.len().min(120)];
        let error = bed.send(get("/")).await.err().expect(shown);
        assert_eq!(
            (error.reason(), error.status().as_u16()),
            ("bad_response", 502),
            "{shown:?}"
        );
        assert_eq!(error.server().unwrap().endpoint, origin.address.into());
        assert_eq!(
            (bed.pool.idle(), bed.server(0).in_flight()),
            (0, 0),
            "{shown:?}"
        );
    }
}

#[tokio::test(flavor = "local")]
async fn the_head_of_a_response_is_limited() {
    let many = |n: usize| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{}\r\n",
            "a: b\r\n".repeat(n - 1)
        )
    };
    let large = |n: usize| {
        let start = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\na: ";
        format!("{start}{}\r\n\r\n", "b".repeat(n - start.len() - 4))
    };
    let limits = |bytes, headers| HeadLimits { bytes, headers };
    let (usual, more) = (HeadLimits::default(), limits(1 << 20, 1000));
    for (bytes, limits, reason) in [
        (many(100), usual, ""),
        (many(101), usual, "head_too_large"),
        (many(101), more, ""),
        (many(1000), more, ""),
        (many(1001), more, "head_too_large"),
        (many(8), limits(1 << 20, 8), ""),
        (many(9), limits(1 << 20, 8), "head_too_large"),
        (large(64 * 1024), usual, ""),
        (large(64 * 1024 + 1), usual, "head_too_large"),
        (large(300 * 1024), usual, "head_too_large"),
        (large(300 * 1024), more, ""),
        (large(1025), limits(1024, 100), "head_too_large"),
    ] {
        let length = bytes.len();
        let origin = Origin::answering(bytes).await;
        let mut bed = Bed::to(&[origin.address]);
        bed.upstream.response_head = limits;
        assert_eq!(bed.reason().await, reason, "{length} {limits:?}");
    }
}

#[tokio::test(flavor = "local")]
async fn other_informational_responses_are_skipped() {
    let bytes = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let origin = Origin::answering(format!("{bytes}{OK}")).await;
    let bed = Bed::to(&[origin.address]);
    assert_eq!(bed.get().await.unwrap(), (200, "ok".to_owned()));
    assert_eq!(bed.pool.idle(), 1);
}

#[tokio::test(flavor = "local")]
async fn responses_without_a_body_end_with_their_head() {
    for (method, bytes) in [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
        ),
        ("GET", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    ] {
        let origin = Origin::answering(bytes).await;
        let bed = Bed::to(&[origin.address]);
        for _ in 0..2 {
            let mut request = get("/");
            *request.method_mut() = method.parse().unwrap();
            let answer = bed.send(request).await.unwrap();
            let length = answer.response.headers().get("content-length").cloned();
            assert_eq!(length.is_some(), bytes.contains("content-length"));
            assert!(matches!(answer.response.body(), Body::Empty), "{bytes:?}");
            settle().await;
        }
        assert_eq!(origin.accepted.get(), 1, "{bytes:?}");
    }
}

#[tokio::test(flavor = "local")]
async fn hop_by_hop_headers_are_removed_from_a_response() {
    let origin = Origin::answering(
        "HTTP/1.1 200 Fine\r\ncontent-length: 2\r\nconnection: x-hop, content-length\r\nx-hop: 1\r\n\
         keep-alive: timeout=5\r\nupgrade: h2c\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\r\nok",
    )
    .await;
    let bed = Bed::to(&[origin.address]);
    let answer = bed.send(get("/")).await.unwrap();
    let headers = answer.response.headers();
    let names: Vec<_> = headers.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["content-length", "set-cookie"]);
    assert_eq!(headers.get_all("set-cookie").iter().count(), 2);
}

#[tokio::test(flavor = "local")]
async fn an_http_1_0_origin_gets_one_request_a_connection() {
    let origin = Origin::answering(
        "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok",
    )
    .await;
    let bed = Bed::to(&[origin.address]);
    for _ in 0..2 {
        let answer = bed.send(get("/")).await.unwrap();
        assert_eq!(answer.response.version(), http::Version::HTTP_11);
        assert_eq!(text(answer).await, "ok");
        settle().await;
    }
    assert_eq!(origin.accepted.get(), 2);
}

#[tokio::test(flavor = "local")]
async fn trailers_are_forwarded_without_headers_forbidden_in_trailers() {
    let origin = Origin::answering(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\
         x-sum: 7\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\nhost: b\r\nset-cookie: a\r\n\r\n",
    )
    .await;
    let bed = Bed::to(&[origin.address]);
    let (data, trailers) = data_and_trailers(bed.send(get("/")).await.unwrap()).await;
    assert_eq!(data, "ok");
    assert_eq!(trailers.len(), 1);
    assert_eq!(trailers["x-sum"], "7");
    assert_eq!(bed.pool.idle(), 1);
}

#[tokio::test(flavor = "local")]
async fn request_trailers_are_forwarded_if_announced() {
    let mut trailers = HeaderMap::new();
    for name in [
        "x-sum",
        "x-other",
        "host",
        "x-forwarded-for",
        "transfer-encoding",
    ] {
        trailers.insert(name, "7".parse().unwrap());
    }
    let data = Frame::data(Bytes::from_static(b"hi"));
    let mut request = post(frames(vec![data, Frame::trailers(trailers)]));
    let announced = "x-sum, host, x-forwarded-for, transfer-encoding";
    request
        .headers_mut()
        .insert("trailer", announced.parse().unwrap());
    let said = said(request, "\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n").await;
    assert!(said.contains("trailer: x-sum"), "{said}");
}

fn one(name: &'static str) -> HeaderMap {
    let value = http::HeaderValue::from_static("v");
    HeaderMap::from_iter([(http::HeaderName::from_static(name), value)])
}

#[test]
fn forbidden_trailers_are_removed() {
    for name in ["x-sum", "etag", "server-timing", "grpc-status", "digest"] {
        let mut trailers = one(name);
        clean_trailers(&mut trailers);
        assert_eq!(trailers.len(), 1, "{name}");
    }
    for name in [
        "content-length",
        "transfer-encoding",
        "host",
        "connection",
        "te",
        "trailer",
        "upgrade",
        "authorization",
        "cookie",
        "set-cookie",
        "content-type",
        "content-encoding",
        "expect",
        "x-forwarded-for",
        "x-real-ip",
        "x-request-id",
        "x-lockgate-rule",
        "forwarded",
        "x_forwarded_for",
        "content_length",
        "keep-alive",
        "proxy-authorization",
    ] {
        let mut trailers = one(name);
        clean_trailers(&mut trailers);
        assert!(trailers.is_empty(), "{name}");
    }
}

#[test]
fn a_target_must_be_a_path() {
    for path in ["/", "/a?b", "//a/b", "/a%2Fb", "/?", "/\u{e4}"] {
        assert!(is_path(path), "{path:?}");
    }
    for other in [
        "*",
        "a",
        "http://a/",
        "",
        "?",
        "/a b",
        "/a#b",
        "/a\rb",
        "/a\nb",
        "/\0",
        "/\x7f",
    ] {
        assert!(!is_path(other), "{other:?}");
    }
}
