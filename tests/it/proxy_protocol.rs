//! The PROXY protocol: taken from trusted proxies, refused from all others, before HTTP and TLS; with
//! curl and HAProxy as the proxies.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::harness::{Client, Folder, Running, wait_until};

const V1: &[u8] = b"PROXY TCP4 198.51.100.7 10.0.0.1 56324 443\r\n";
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A gateway with a plain and a TLS listener that want a header from these.
fn gateway(trusted: &str) -> Running {
    Running::on(&format!(
        r#"
        [server]
        workers = 2
        drain_timeout = "5s"
        [log]
        access = "off"
        [client_ip]
        trusted_proxies = [{trusted}]
        [limits]
        header_timeout = "2s"
        [[listeners]]
        address = "127.0.0.1:0"
        proxy_protocol = true
        [[listeners]]
        address = "127.0.0.1:0"
        proxy_protocol = true
        [listeners.tls]
        [[upstreams]]
        name = "origin"
        servers = ["{{origin}}"]
        [[routes]]
        upstream = "origin"
        [[rules]]
        name = "peer"
        mitigate = 'ip.peer eq 198.51.100.66'
        "#
    ))
}

/// A header of version 2 for this address of four bytes.
fn v2(address: [u8; 4], extensions: &[u8]) -> Vec<u8> {
    let mut bytes = [SIGNATURE, &[0x21, 0x11]].concat();
    bytes.extend((12 + extensions.len() as u16).to_be_bytes());
    bytes.extend(address);
    bytes.extend([10, 0, 0, 1, 0xdc, 0x04, 0x01, 0xbb]);
    bytes.extend(extensions);
    bytes
}

/// Who the origin was told of last.
fn told(gateway: &Running) -> (String, String) {
    let seen = gateway.origin.seen().pop().unwrap();
    let field = |name: &str| seen.header(name).unwrap_or("").to_owned();
    (field("x-forwarded-for"), field("x-real-ip"))
}

fn pair(one: &str, other: &str) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

#[test]
fn the_source_address_in_the_header_is_the_peer() {
    let gateway = gateway("\"127.0.0.1\"");
    let source = pair("198.51.100.7", "198.51.100.7");
    let long = [&[0xee, 0x0e, 0x00][..], &[7; 0x0e00]].concat();
    for header in [
        V1.to_vec(),
        v2([198, 51, 100, 7], b""),
        v2([198, 51, 100, 7], &long),
    ] {
        for client in [gateway.client(), gateway.tls_client()] {
            assert_eq!(client.clone().after(&header).send().status, 200);
            assert_eq!(told(&gateway), source);
            let answers = client.after(&header).get("/h2").times_over_h2(2);
            assert_eq!((answers[0].status, answers[1].status), (200, 200));
            assert_eq!(told(&gateway), source);
        }
    }
    let barred = gateway.client().after(&v2([198, 51, 100, 66], b""));
    assert_eq!(barred.send().status, 429);
}

#[test]
fn forwarding_headers_are_trusted_only_if_the_source_is_a_trusted_proxy() {
    let gateway = gateway("\"127.0.0.1\", \"198.51.100.0/25\"");
    let client = gateway.client().from("203.0.113.9");
    assert_eq!(client.clone().after(V1).send().status, 200);
    assert_eq!(
        told(&gateway),
        pair("203.0.113.9, 198.51.100.7", "203.0.113.9")
    );
    // The peer is a proxy, but who is behind it is none.
    let stranger = v2([198, 51, 100, 200], b"");
    assert_eq!(client.after(&stranger).send().status, 200);
    assert_eq!(told(&gateway), pair("198.51.100.200", "198.51.100.200"));
}

#[test]
fn local_and_unknown_headers_keep_the_address_of_the_proxy() {
    let gateway = gateway("\"127.0.0.1\"");
    let local = [SIGNATURE, &[0x20, 0, 0, 0]].concat();
    for header in [&local[..], b"PROXY UNKNOWN\r\n"] {
        assert_eq!(gateway.client().after(header).send().status, 200);
        assert_eq!(told(&gateway), pair("127.0.0.1", "127.0.0.1"));
    }
}

#[test]
fn a_header_may_arrive_in_pieces() {
    let gateway = gateway("\"127.0.0.1\"");
    let request = b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n";
    for header in [V1.to_vec(), v2([198, 51, 100, 7], &[4, 0, 2, 0, 0])] {
        let mut wire = gateway.client().connect();
        for byte in [&header[..], request].concat() {
            wire.send(&[byte]);
        }
        let answer = String::from_utf8_lossy(&wire.rest()).into_owned();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(told(&gateway).0, "198.51.100.7");
    }
}

#[test]
fn connections_with_an_invalid_header_are_closed() {
    let gateway = gateway("\"127.0.0.1\"");
    let request = "GET / HTTP/1.1\r\nhost: a.test\r\n\r\n";
    let mut long = v2([198, 51, 100, 7], b"");
    long[14] = 0xff;
    for header in [
        &b""[..],
        b"PROXY TCP4 198.51.100.7 10.0.0.1 56324\r\n",
        b"PROXY TCP4 198.51.100.7  10.0.0.1 56324 443\r\n",
        b"PROXY UDP4 198.51.100.7 10.0.0.1 56324 443\r\n",
        &long,
    ] {
        let bytes = [header, request.as_bytes()].concat();
        assert_eq!(gateway.client().raw(&bytes), b"", "{header:?}");
    }
    assert_eq!(gateway.origin.count(), 0);
    let errors = "lockgate_protocol_errors_total{kind=\"proxy\"} 5";
    assert!(gateway.metrics().contains(errors), "{}", gateway.metrics());
}

#[test]
fn connections_of_an_untrusted_peer_are_closed() {
    let gateway = gateway("\"10.0.0.0/8\"");
    assert_eq!(gateway.client().after(V1).send().status, 0);
    assert_eq!(gateway.client().send().status, 0);
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn an_incomplete_header_times_out() {
    let gateway = gateway("\"127.0.0.1\"");
    let mut wire = gateway.client().connect();
    wire.send(b"PROXY TCP4 198.");
    assert_eq!(wire.rest(), b"");
    let mut wire = Client::plain(gateway.address(1)).connect();
    wire.send(&SIGNATURE[..5]);
    assert_eq!(wire.rest(), b"");
    let timeouts = "lockgate_protocol_errors_total{kind=\"timeout\"} 2";
    assert!(gateway.metrics().contains(timeouts));
}

#[test]
fn headers_of_curl_are_accepted() {
    let gateway = gateway("\"127.0.0.1\"");
    for (listener, scheme) in [(0, "http"), (1, "https")] {
        let url = format!("{scheme}://{}/curl", gateway.address(listener));
        let output = Command::new("curl")
            .args(["-sk", "--haproxy-protocol", "--max-time", "20", &url])
            .output()
            .unwrap();
        let body = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(body, "origin GET /curl HTTP/1.1", "{output:?}");
        assert_eq!(told(&gateway), pair("127.0.0.1", "127.0.0.1"));
    }
}

/// HAProxy before a gateway; ended with this value.
struct HaProxy {
    child: Child,
    address: SocketAddr,
    _folder: Folder,
}

impl HaProxy {
    /// Passes connections on to `to` after a header of this kind.
    fn before(to: SocketAddr, send: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let folder = Folder::new();
        let config = format!(
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n\
             listen front\n bind {address}\n source 127.0.0.1\n server gateway {to} {send}\n"
        );
        let path = folder.write("haproxy.cfg", config);
        let child = Command::new("haproxy")
            .args(["-db", "-f"])
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        wait_until("HAProxy listens", || TcpStream::connect(address).is_ok());
        Self {
            child,
            address,
            _folder: folder,
        }
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn headers_of_haproxy_are_accepted() {
    let gateway = gateway("\"127.0.0.1\"");
    for send in [
        "send-proxy",
        "send-proxy-v2",
        "send-proxy-v2 proxy-v2-options crc32c,unique-id",
    ] {
        for (listener, tls) in [(0, false), (1, true)] {
            let proxy = HaProxy::before(gateway.address(listener), send);
            let client = match tls {
                true => Client::tls(proxy.address),
                false => Client::plain(proxy.address),
            };
            // From another address of this machine than HAProxy's own.
            let answer = client.bound_to("127.0.0.2:0").send();
            assert_eq!(answer.status, 200, "{send}");
            assert_eq!(told(&gateway), pair("127.0.0.2", "127.0.0.2"), "{send}");
        }
    }
}
