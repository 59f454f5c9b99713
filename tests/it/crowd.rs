//! Five hundred slow clients, of each kind and of all kinds at once: honest ones are served, slow
//! ones are ended, and the gateway stays small. `benches/slow` does the same with the limits that a
//! gateway has by itself.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::harness::{Client, Process};

const EACH: usize = 500;

/// What those of a kind may cost, with all that is left of the kinds before. The futures of a debug
/// build are larger; `benches/slow` holds a release build to 25 MB.
const MEMORY: u64 = if cfg!(debug_assertions) {
    35_000_000
} else {
    25_000_000
};

/// Longer than any limit; nothing is measured with it.
const LONG: Duration = Duration::from_secs(60);

/// The beginning of a record with a ClientHello that promises more.
const HALF_HELLO: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0, 0];

/// What a slow client does.
#[derive(Clone, Copy)]
struct Kind {
    /// The listener that it goes to.
    listener: usize,
    /// All that it ever sends.
    sends: &'static [u8],
    /// It reads what it gets.
    reads: bool,
}

const KINDS: [Kind; 5] = [
    Kind::at(0, b"GET / HTTP/1.1\r\nhost: a\r\nx-slow: "),
    Kind::at(1, HALF_HELLO),
    Kind::at(
        0,
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n.",
    ),
    Kind::at(0, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"),
    Kind {
        reads: false,
        ..Kind::at(0, b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n")
    },
];

impl Kind {
    const fn at(listener: usize, sends: &'static [u8]) -> Self {
        Self {
            listener,
            sends,
            reads: true,
        }
    }
}

#[test]
fn slow_clients_are_disconnected_and_normal_ones_served() {
    let descriptors = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: descriptors.maximum,
        ..descriptors
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let origin = origin();
    let process = Process::run(&format!(
        "[log]\naccess = \"off\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [limits]\nheader_timeout = \"2s\"\nrequest_body_timeout = \"2s\"\n\
         response_write_timeout = \"2s\"\nidle_timeout = \"2s\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n\
         [[upstreams]]\nname = \"o\"\nservers = [\"{origin}\"]\n\
         [[routes]]\npath = \"/hello\"\nrespond = {{ body = \"hello\" }}\n\
         [[routes]]\nupstream = \"o\"\n"
    ));
    let honest = Client::plain(process.address(0)).get("/hello");
    honest.times(50).all_are(200);
    let before = process.memory("VmRSS") * 1024;
    for kind in KINDS {
        let grown = be_crowded(&process, &honest, &[kind]).saturating_sub(before);
        assert!(
            grown < MEMORY,
            "{grown} bytes more: {:?}",
            kind.sends.escape_ascii()
        );
    }
    be_crowded(&process, &honest, &KINDS);
}

/// Sends slow clients of these kinds and gives the most memory that was seen.
fn be_crowded(process: &Process, honest: &Client, kinds: &[Kind]) -> u64 {
    let listeners = [process.address(0), process.address(1)];
    let mut most = 0;
    let ended = thread::scope(|scope| {
        let crowd = scope.spawn(|| runtime().block_on(crowd(listeners, kinds)));
        while !crowd.is_finished() {
            assert_eq!(honest.send().status, 200);
            most = most.max(process.memory("VmRSS") * 1024);
        }
        crowd.join().unwrap()
    });
    assert_eq!(ended, EACH * kinds.len());
    most
}

/// How many slow clients were ended.
async fn crowd(listeners: [SocketAddr; 2], kinds: &[Kind]) -> usize {
    let mut peers = JoinSet::new();
    for _ in 0..EACH {
        for kind in kinds {
            peers.spawn(be_slow(listeners[kind.listener], *kind));
        }
    }
    peers.join_all().await.len()
}

/// Returns when the gateway has ended the connection.
async fn be_slow(address: SocketAddr, kind: Kind) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(kind.sends).await.unwrap();
    let mut waste = vec![0; 16 * 1024];
    let end = async {
        match kind.reads {
            true => while let Ok(1..) = stream.read(&mut waste).await {},
            // To write is the way to hear of the end without a read.
            false => {
                while stream.write_all(b"\n").await.is_ok() {
                    sleep(Duration::from_millis(250)).await;
                }
            }
        }
    };
    timeout(LONG, end).await.expect("it is ended");
}

/// An origin that never ends its answer to `/endless`.
fn origin() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        runtime().block_on(async move {
            listener.set_nonblocking(true).unwrap();
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream));
            }
        });
    });
    address
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap()
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    socket2::SockRef::from(&stream).set_send_buffer_size(64 * 1024)?;
    let mut head = Vec::new();
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        if head.starts_with(b"POST ") {
            stream.read_exact(&mut [0; 9]).await?;
        }
        if !head.starts_with(b"GET /endless ") {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
                .await?;
            head.clear();
            continue;
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n")
            .await?;
        loop {
            stream.write_all(&[b'x'; 16 * 1024]).await?;
        }
    }
}
