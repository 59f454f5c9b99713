//! What the origin gets of an inspected body: the same bytes, framing and trailers.

use std::sync::mpsc;

use bytes::Bytes;
use http::HeaderMap;

use super::{FORM, PER_USER, behind, head, inspections};
use crate::harness::{Call, Origin, Running, Stage, Told, Wire, fields, run};

/// Bodies are inspected, and never refused.
const INSPECTED: &str = r#"
[limits]
inspect_body = "1KiB"
[[rules]]
name = "inspected"
count = 'http.request.body.raw contains "?" or http.request.body.form["user"] eq "?"'
mitigate = 'false'
key = ["ip.src"]
limit = 1
period = "1m"
"#;

/// Sizes around the limit of inspection, below one and above several frames.
const SIZES: [usize; 14] = [
    1, 2, 500, 1022, 1023, 1024, 1025, 1026, 2047, 2048, 2049, 8191, 20_000, 100_000,
];

/// A sequence of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % most
    }

    fn bytes(&mut self, size: usize) -> Vec<u8> {
        (0..size).map(|_| self.below(256) as u8).collect()
    }

    fn sizes(&mut self) -> Vec<usize> {
        let random = (0..20).map(|_| 1 + self.below(4096));
        SIZES
            .into_iter()
            .chain(random.collect::<Vec<_>>())
            .collect()
    }
}

/// An HTTP/2 origin that sends back what it gets.
fn echo() -> Origin {
    Stage::default().play(|mut call: Call| async move {
        let (body, trailers) = call.body().await;
        let sum = trailers.get("x-sum").cloned();
        let length = body.len().to_string();
        let mut fields = vec![("x-length", length.as_str())];
        if let Some(sum) = &sum {
            fields.push(("x-sum", sum.to_str().unwrap()));
        }
        let mut stream = call.head(200, &fields, false);
        stream.send_data(body.into(), true).unwrap();
    })
}

fn gateways() -> [Running; 2] {
    let h2 = "servers = [\"{origin}\"]\nprotocol = \"h2\"";
    [
        Running::with(INSPECTED),
        Running::before(echo(), &behind(h2, INSPECTED)),
    ]
}

#[test]
fn declared_bodies_arrive_unchanged() {
    for gateway in gateways() {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        let mut wire = gateway.client().connect();
        let sizes = numbers.sizes();
        for size in &sizes {
            let body = numbers.bytes(*size);
            wire.send(&head("/", &format!("content-length: {size}\r\n")));
            for piece in body.chunks(1 + numbers.below(size + 1)) {
                wire.send(piece);
            }
            assert_eq!(echoed(&mut wire), body, "{size}");
        }
        let all = inspections(&gateway, "read") + inspections(&gateway, "truncated");
        assert_eq!(all, sizes.len() as u64);
    }
}

#[test]
fn chunked_bodies_arrive_unchanged() {
    for gateway in gateways() {
        let mut numbers = Numbers(0x1234_5678_9abc_def1);
        let mut wire = gateway.client().connect();
        for size in numbers.sizes() {
            let body = numbers.bytes(size);
            wire.send(&head("/", "transfer-encoding: chunked\r\n"));
            for piece in body.chunks(1 + numbers.below(size + 1)) {
                wire.send(format!("{:x}\r\n", piece.len()).as_bytes());
                wire.send(piece);
                wire.send(b"\r\n");
            }
            wire.send(b"0\r\n\r\n");
            assert_eq!(echoed(&mut wire), body, "{size}");
        }
        let seen = gateway.origin.seen();
        let chunked =
            |seen: &crate::harness::Seen| seen.header("transfer-encoding") == Some("chunked");
        assert!(seen.iter().all(chunked));
    }
}

#[test]
fn http2_bodies_arrive_unchanged() {
    for gateway in gateways() {
        let mut numbers = Numbers(0xfeed_5678_9abc_def1);
        run(async {
            let mut talk = gateway.client().talk().await;
            for size in numbers.sizes() {
                let body = numbers.bytes(size);
                let request = talk.request("POST", "/").header("content-type", FORM);
                let (answer, mut stream) = talk.open(request, false).await;
                let mut pieces = body.chunks(1 + numbers.below(size)).peekable();
                while let Some(piece) = pieces.next() {
                    let end = pieces.peek().is_none();
                    stream
                        .send_data(Bytes::copy_from_slice(piece), end)
                        .unwrap();
                }
                let told = Told::hear(answer).await;
                assert_eq!((told.status, &told.body), (200, &body), "{size}");
            }
        });
    }
}

/// The body of the next answer, whatever its framing.
fn echoed(wire: &mut Wire) -> Vec<u8> {
    let head = String::from_utf8(wire.head()).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    if let Some((_, rest)) = head.split_once("content-length: ") {
        let length = rest.split("\r\n").next().unwrap();
        return wire.exactly(length.parse().unwrap());
    }
    let mut body = Vec::new();
    loop {
        let size = line(wire);
        let size = usize::from_str_radix(&size, 16).unwrap();
        body.extend(wire.exactly(size));
        assert_eq!(line(wire), "");
        if size == 0 {
            return body;
        }
    }
}

/// The next line.
fn line(wire: &mut Wire) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(wire.exactly(1));
    }
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

#[test]
fn trailers_follow_an_inspected_body() {
    let (tell, told) = mpsc::channel();
    let origin = Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        while let Some(mut all) = wire.try_head() {
            // The last chunk and the trailers end as a head does.
            all.extend(wire.try_head().unwrap());
            tell.send(String::from_utf8(all).unwrap()).unwrap();
            wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    let gateway = Running::with_origin(origin, PER_USER);
    let mut wire = gateway.client().connect();
    wire.send(&head(
        "/login",
        "transfer-encoding: chunked\r\ntrailer: x-sum\r\n",
    ));
    wire.send(b"a\r\nuser=alice\r\n0\r\nx-sum: 7\r\n\r\n");
    assert_eq!(wire.answer().status, 200);
    let text = told.recv().unwrap();
    assert!(
        text.ends_with("\r\n\r\na\r\nuser=alice\r\n0\r\nx-sum: 7\r\n\r\n"),
        "{text}"
    );
    // Over HTTP/2 on both sides.
    let [_, gateway] = gateways();
    run(async {
        let mut talk = gateway.client().talk().await;
        for body in [&[&b"user=alice"[..]][..], &[&[b'x'; 50][..]; 60][..]] {
            let request = talk.request("POST", "/").header("content-type", FORM);
            let trailers: HeaderMap = fields(&[("x-sum", "7")]);
            let told = talk.send_all(request, body, trailers).await;
            assert_eq!(told.body, body.concat());
            assert_eq!(told.headers["x-sum"], "7");
        }
    });
}

#[test]
fn a_request_that_no_server_got_is_sent_to_another() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let servers = format!("servers = [\"{address}\", \"{{origin}}\"]");
    let gateway = Running::on(&behind(&servers, INSPECTED));
    let client = gateway.client().header("content-type", FORM).post("/");
    for n in 0..6 {
        let answer = client.clone().body(format!("user={n}").as_bytes()).send();
        assert_eq!((answer.status, answer.text()), (200, format!("user={n}")));
    }
    assert_eq!(inspections(&gateway, "read"), 6);
}
