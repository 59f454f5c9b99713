//! Sockets, the bound on connections, the choice of protocol.

use super::*;

#[test]
fn every_core_listens_on_the_same_port() {
    let first = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let second = bind(first.local_addr().unwrap()).unwrap();
    assert_eq!(first.local_addr().unwrap(), second.local_addr().unwrap());
}

#[test]
fn the_unspecified_ipv6_address_accepts_both_families() {
    run(async {
        let listener = TcpListener::from_std(bind("[::]:0".parse().unwrap()).unwrap()).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "::1"] {
            let (client, accepted) =
                tokio::join!(TcpStream::connect((host, port)), listener.accept());
            client.unwrap();
            accepted.unwrap();
        }
    });
}

#[test]
fn connections_beyond_the_limit_wait_for_a_free_slot() {
    run(async {
        let site = Site::with_gate(limits(), ConnectionLimit::new(1)).await;
        let mut first = site.connect().await;
        first.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        first.until("hello").await;
        let mut second = site.connect().await;
        second.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!((site.seen.get(), site.gate.open()), (1, 1));
        drop(first);
        second.until("hello").await;
    });
}

#[test]
fn a_request_sent_byte_by_byte_is_served() {
    run(async {
        let site = Site::open(limits()).await;
        for request in [
            "PRI / HTTP/1.1\r\nhost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: a\r\n\r\n",
        ] {
            let mut client = site.connect().await;
            for byte in request.bytes() {
                client.send([byte]).await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            client.until("hello").await;
        }
    });
}

#[test]
fn a_preface_sent_byte_by_byte_is_http2() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        for byte in http2::PREFACE {
            client.send([*byte]).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let (kind, _) = http2::frame(&mut client).await.unwrap();
        assert_eq!(kind, http2::SETTINGS);
    });
}

#[test]
fn the_rest_of_a_preface_is_awaited_without_spinning() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = Client(TcpStream::connect(address).await.unwrap());
        let (stream, _) = listener.accept().await.unwrap();
        client.send("PRI").await;
        let mut polls = 0;
        let mut sniffing = std::pin::pin!(sniff(&stream));
        let counted = std::future::poll_fn(|cx| {
            polls += 1;
            sniffing.as_mut().poll(cx)
        });
        let quiet = timeout(Duration::from_millis(300), counted).await;
        assert!(quiet.is_err() && polls < 20, "{polls} polls");
        client.send(" * HTTP/2.0").await;
        assert_eq!(sniffing.await.unwrap(), HttpVersion::Http2);
    });
}

#[test]
fn half_a_preface_before_a_close_is_not_http2() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client.send("PRI * HT").await;
        client.0.shutdown().await.unwrap();
        client.rest().await;
        assert!(site.end().await.is_err());
        site.until(|site| site.gate.open() == 0).await;
    });
}

/// Takes all descriptors of the process, so it runs in one of its own.
#[test]
fn accepting_resumes_after_running_out_of_descriptors() {
    const CHILD: &str = "LOCKGATE_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_some() {
        return run(starve());
    }
    let name = "listen::tests::accepting::accepting_resumes_after_running_out_of_descriptors";
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 48 && exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

async fn starve() {
    let site = Site::open(limits()).await;
    let mut clients = Vec::new();
    while site.gate.failures() == 0 {
        match TcpStream::connect(site.address).await {
            Ok(client) => clients.push(client),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    clients.clear();
    site.until(|site| site.gate.open() == 0).await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until("hello").await;
}
