//! One connection to an origin and the requests sent over it. The only file that knows the
//! codec, hyper's HTTP/1 client: another one can take its place behind [`Connection`].
//!
//! Never retries and never pools.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::error::{Error, Kind};
use super::upload::Upload;

/// The most that is read at once, and so the most that waits for a slow client.
const READ_BYTES: usize = 256 * 1024;

/// The largest head, and the largest trailers, that an origin may send.
const HEAD_BYTES: usize = 64 * 1024;

/// The body of an answer.
pub(super) type Received = hyper::body::Incoming;

/// The stream beneath a 101, and what the origin sent behind it.
pub(super) type Switched = (TcpStream, Bytes);

/// An open connection; closed when dropped, whatever is in flight.
pub(super) struct Connection {
    sender: SendRequest<Upload>,
    task: JoinHandle<()>,
}

/// Why a request was not answered.
pub(super) struct Failure {
    pub(super) error: Error,
    /// The request, if not a byte of it was sent.
    pub(super) unsent: Option<Box<Request<Upload>>>,
}

// === impl Connection ===

impl Connection {
    /// Opens a connection, driven by a task of its own on this thread.
    pub(super) async fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let (sender, connection) = builder()
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(error).error)?;
        let task = tokio::task::spawn_local(async move {
            // What went wrong was told to the request in flight; without one nobody cares.
            let _ = connection.with_upgrades().await;
        });
        Ok(Self { sender, task })
    }

    /// Whether the last exchange is over and another may begin.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Whether no exchange will ever begin again.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends a request, its body as it comes, and waits for the head of the answer.
    pub(super) fn send(
        &mut self,
        request: Request<Upload>,
    ) -> impl Future<Output = Result<Response<Received>, Failure>> {
        let answer = self.sender.try_send_request(request);
        async move {
            answer.await.map_err(|mut failed| Failure {
                unsent: failed.take_message().map(Box::new),
                ..broken(failed.into_error())
            })
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes the stream that a 101 has switched.
pub(super) async fn upgraded(response: &mut Response<Received>) -> Result<Switched, Error> {
    let upgraded = hyper::upgrade::on(response)
        .await
        .map_err(|error| broken(error).error)?;
    match upgraded.downcast::<TokioIo<TcpStream>>() {
        Ok(parts) => Ok((parts.io.into_inner(), parts.read_buf)),
        Err(_) => Err(Kind::BadResponse.into()),
    }
}

/// Strict by default: no folded lines, no space before a colon, no invalid fields. The number of
/// fields stays at the codec's own 100: any other bound costs an allocation a head.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_buf_size(READ_BYTES)
        .max_header_size(HEAD_BYTES)
        .allow_obsolete_multiline_headers_in_responses(false)
        .allow_spaces_after_header_name_in_responses(false)
        .ignore_invalid_headers_in_responses(false);
    builder
}

fn unreachable(error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => Kind::ConnectRefused,
        io::ErrorKind::TimedOut => Kind::ConnectTimeout,
        _ => Kind::ConnectFailed,
    };
    Error::from(kind).because(error)
}

fn broken(error: hyper::Error) -> Failure {
    let kind = if error.is_user() {
        Kind::RequestBody
    } else if error.is_parse() {
        Kind::BadResponse
    } else {
        Kind::Closed
    };
    Failure {
        error: Error::from(kind).because(error),
        unsent: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;

    #[tokio::test(flavor = "local")]
    async fn a_request_that_was_not_sent_comes_back() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut connection = Connection::open(address).await.ok().unwrap();
        connection.task.abort();
        let request = Request::post("/a").body(Body::from("hello")).unwrap();
        let answer = connection.send(Upload::frame(request).unwrap()).await;
        let failure = answer.err().unwrap();
        assert_eq!(failure.error.reason(), "closed");
        assert_eq!(failure.unsent.unwrap().uri(), "/a");
    }
}
