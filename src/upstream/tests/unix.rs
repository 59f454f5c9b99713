//! Origin servers on a Unix socket.

use std::path::PathBuf;

use tokio::net::UnixListener;

use super::*;

/// A socket's path, removed when dropped.
struct Socket(PathBuf);

impl Socket {
    fn new(name: &str) -> Self {
        let file = format!("lockgate-unix-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(file);
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn bed(&self) -> Bed {
        let mut bed = Bed::to(&[]);
        let places = vec![place(ServerEndpoint::Unix(self.0.as_path().into()))];
        bed.upstream = Upstream::new("app", places, &ServerRegistry::default());
        bed
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test(flavor = "local")]
async fn requests_share_a_connection() {
    let place = Socket::new("keep");
    let listener = UnixListener::bind(&place.0).unwrap();
    let origin = tokio::task::spawn_local(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..3 {
            assert!(head(&mut stream).await.starts_with("GET / HTTP/1.1\r\n"));
            stream.write_all(OK.as_bytes()).await.unwrap();
        }
        stream
    });
    let bed = place.bed();
    for _ in 0..3 {
        assert_eq!(bed.get().await.unwrap(), (200, "ok".to_owned()));
    }
    assert_eq!(bed.pool.idle(), 1);
    drop(origin.await.unwrap());
    bed.pool.prune();
    assert_eq!(bed.pool.idle(), 0);
    let shown = format!("unix:{}", place.0.display());
    assert_eq!(&**bed.server(0).label(), shown);
}

#[tokio::test(flavor = "local")]
async fn a_body_and_an_upgrade_are_forwarded() {
    let place = Socket::new("speech");
    let listener = UnixListener::bind(&place.0).unwrap();
    tokio::task::spawn_local(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(
            until(&mut stream, "0\r\n\r\n")
                .await
                .contains("2\r\nhi\r\n")
        );
        stream.write_all(OK.as_bytes()).await.unwrap();
        head(&mut stream).await;
        let switch = b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(switch).await.unwrap();
        let word = until(&mut stream, "!").await;
        stream.write_all(word.as_bytes()).await.unwrap();
    });
    let bed = place.bed();
    let answer = bed.send(post(chunks(&["hi"]))).await.unwrap();
    assert_eq!(text(answer).await, "ok");
    let upgrade = Request::get("/").header("host", "a.test");
    let upgrade = upgrade.header("upgrade", "websocket");
    let answer = bed.send(upgrade.body(Body::Empty).unwrap()).await.unwrap();
    let mut tunnel = answer.upgraded.unwrap();
    tunnel.io.write_all(b"hello!").await.unwrap();
    assert_eq!(until(&mut tunnel.io, "!").await, "hello!");
}

#[tokio::test(flavor = "local")]
async fn a_missing_socket_and_one_without_a_listener_are_502() {
    let place = Socket::new("away");
    assert_eq!(place.bed().reason().await, "connect_failed");
    drop(UnixListener::bind(&place.0).unwrap());
    assert_eq!(place.bed().reason().await, "connect_refused");
}
