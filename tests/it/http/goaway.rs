//! HTTP/2 origins that end connections with GOAWAY while requests are on the way: no request fails.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::{before, config};
use crate::harness::{
    Authority, Call, Folder, Frames, Origin, Running, Stage, Told, WHOLE, Wire, next_frame, run,
    wait_until,
};

/// Only the refusals of HTTP/2 itself are retried.
const H2: &str = "protocol = \"h2\"\nretries = 0";

/// The statuses of 400 requests sent together over four connections: half of them have a body.
async fn flood(gateway: &Running) -> Vec<u16> {
    let mut talks = Vec::new();
    let mut responses = Vec::new();
    for _ in 0..4 {
        talks.push(gateway.client().talk().await);
    }
    for talk in &mut talks {
        for number in 0..100 {
            let has_body = number % 2 == 0;
            let method = if has_body { "POST" } else { "GET" };
            let (response, mut stream) = talk.open(talk.request(method, "/"), !has_body).await;
            if has_body {
                stream.send_data(Bytes::from_static(b"x"), true).unwrap();
            }
            responses.push(Told::hear(response));
        }
    }
    let mut statuses = Vec::new();
    for response in responses {
        statuses.push(response.await.status);
    }
    statuses
}

fn assert_all_succeed(gateway: &Running) {
    let statuses = run(flood(gateway));
    let failed = statuses.iter().filter(|status| **status != 200).count();
    assert_eq!((statuses.len(), failed), (400, 0));
}

/// An origin that processes this many requests on a connection and ignores the streams above. Counts those.
fn limited(requests: usize, ignored: Arc<AtomicUsize>) -> Origin {
    Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        if wire.try_exactly(24).is_none() {
            return;
        }
        wire.send(&Frames::default().frame(4, 0, 0, &[]).0);
        let mut heads = 0;
        while let Some((kind, _, stream, _)) = next_frame(&mut wire) {
            if kind != 1 {
                continue;
            }
            heads += 1;
            if heads > requests {
                ignored.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            let mut frames = Frames::default();
            if heads == requests {
                let last = [stream.to_be_bytes(), [0; 4]].concat();
                frames = frames.frame(7, 0, 0, &last);
            }
            // `:status: 200`.
            let frames = frames.frame(1, WHOLE | 1, stream, &[0x88]);
            if wire.try_send(&frames.0).is_err() {
                return;
            }
        }
    })
}

#[test]
fn requests_above_the_limit_of_a_connection_do_not_fail() {
    for requests in [50, 3, 1] {
        let ignored = Arc::new(AtomicUsize::new(0));
        let gateway = before(limited(requests, ignored.clone()), H2);
        assert_all_succeed(&gateway);
        assert!(ignored.load(Ordering::SeqCst) > 0, "no stream was refused");
    }
}

#[test]
fn refusals_use_up_no_retry_budget() {
    let refusing = Stage::default().play(|mut call: Call| async move {
        call.answer.send_reset(h2::Reason::REFUSED_STREAM);
    });
    // Half of the requests, which is more than the budget allows, go first to the server that refuses them.
    let servers = format!("[\"{}\", \"{{origin}}\"]", refusing.address);
    let settings = "protocol = \"h2\"\nbalance = \"round_robin\"\nretries = 1";
    let config = config(settings).replace("[\"{origin}\"]", &servers);
    let other = Stage::default().play(|call: Call| async { call.say("ok") });
    assert_all_succeed(&Running::before(other, &config));
}

/// nginx with these lines in its server; it ends with this value.
struct Nginx {
    child: Child,
    address: SocketAddr,
    _folder: Folder,
}

impl Nginx {
    /// `None` without `$LOCKGATE_NGINX`.
    fn start(listen: &str, lines: &str, files: &[(&str, String)]) -> Option<Self> {
        let program = std::env::var_os("LOCKGATE_NGINX")?;
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let folder = Folder::new();
        for (name, text) in files {
            folder.write(name, text);
        }
        let at = folder.path().display();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary: String = temporary
            .iter()
            .map(|name| format!("{name}_temp_path {at}/{name};\n"))
            .collect();
        let config = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;\n\
             events {{ worker_connections 2000; }}\n\
             http {{ access_log off; {temporary} server {{ listen {address} {listen};\n{lines}\n\
             location / {{ return 200 \"ok\"; }} }} }}\n"
        );
        let path = folder.write("nginx.conf", config);
        let child = Command::new(program)
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        wait_until("nginx listens", || TcpStream::connect(address).is_ok());
        Some(Self {
            child,
            address,
            _folder: folder,
        })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn requests_to_nginx_with_keepalive_requests_do_not_fail() {
    let (certificate, key) = Authority::new().issue("localhost");
    let files = [("site.pem", certificate), ("site.key", key)];
    let tls = "ssl_certificate site.pem; ssl_certificate_key site.key;";
    for (listen, lines, settings) in [
        ("http2", "", ""),
        ("http2 ssl", tls, "tls = { verify = false }"),
    ] {
        let lines = format!("{lines} keepalive_requests 50;");
        let Some(nginx) = Nginx::start(listen, &lines, &files) else {
            return;
        };
        let gateway = before(Origin::at(nginx.address), &format!("{H2}\n{settings}"));
        for _ in 0..2 {
            assert_all_succeed(&gateway);
        }
    }
}
