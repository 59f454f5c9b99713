//! HTTP/2 with trailers, in step with the test: a client, and a place to run it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::Client;

/// No talk takes longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// One HTTP/2 connection to a gateway.
pub struct Talk {
    sender: SendRequest<Bytes>,
    connection: JoinHandle<()>,
    address: SocketAddr,
    secure: bool,
}

/// All that came of a stream.
#[derive(Debug, Default)]
pub struct Told {
    /// The status; 0: none came.
    pub status: u16,
    /// The fields of the head.
    pub headers: HeaderMap,
    /// The body, as far as it came.
    pub body: Vec<u8>,
    /// The trailers.
    pub trailers: HeaderMap,
    /// How the stream broke off.
    pub error: Option<h2::Error>,
}

impl Client {
    /// An HTTP/2 connection, with TLS if this client has it.
    pub async fn talk(&self) -> Talk {
        let tcp = TcpStream::connect(self.address).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let secure = self.tls.is_some();
        let (sender, connection) = match &self.tls {
            None => shake(tcp).await,
            Some(config) => {
                let mut config = (**config).clone();
                config.alpn_protocols = vec![b"h2".to_vec()];
                let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
                let name = ServerName::try_from("localhost").unwrap();
                shake(connector.connect(name, tcp).await.unwrap()).await
            }
        };
        let address = self.address;
        Talk {
            sender,
            connection,
            address,
            secure,
        }
    }
}

impl Talk {
    /// A request for this gateway.
    pub fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let scheme = if self.secure { "https" } else { "http" };
        let uri = format!("{scheme}://{}{path}", self.address);
        Request::builder().method(method).uri(uri)
    }

    /// Sends a request without a body and gives what comes of it.
    pub async fn send(&mut self, request: http::request::Builder) -> Told {
        self.send_all(request, &[], HeaderMap::new()).await
    }

    /// Sends a request with its body and trailers, and gives what comes of it.
    pub async fn send_all(
        &mut self,
        request: http::request::Builder,
        body: &[&'static [u8]],
        trailers: HeaderMap,
    ) -> Told {
        let (answer, mut stream) = self.open(request, body.is_empty()).await;
        let last = body.len().saturating_sub(1);
        for (n, data) in body.iter().enumerate() {
            let end = n == last && trailers.is_empty();
            stream.send_data(Bytes::from_static(data), end).unwrap();
        }
        if !trailers.is_empty() {
            stream.send_trailers(trailers).unwrap();
        }
        Told::hear(answer).await
    }

    /// Whether the gateway takes an extended CONNECT.
    pub fn may_extend(&self) -> bool {
        self.sender.is_extended_connect_protocol_enabled()
    }

    /// Waits until the gateway ends the connection.
    pub async fn ended(self) {
        let Self {
            sender, connection, ..
        } = self;
        connection.await.unwrap();
        drop(sender);
    }

    /// Opens a stream.
    pub async fn open(
        &mut self,
        request: http::request::Builder,
        ended: bool,
    ) -> (h2::client::ResponseFuture, h2::SendStream<Bytes>) {
        let mut ready = self.sender.clone().ready().await.unwrap();
        ready
            .send_request(request.body(()).unwrap(), ended)
            .unwrap()
    }
}

impl Told {
    /// All that comes.
    pub async fn hear(answer: h2::client::ResponseFuture) -> Self {
        let mut told = Self::default();
        if let Err(error) = told.listen(answer).await {
            told.error = Some(error);
        }
        told
    }

    async fn listen(&mut self, answer: h2::client::ResponseFuture) -> Result<(), h2::Error> {
        let (head, mut body) = answer.await?.into_parts();
        self.status = head.status.as_u16();
        self.headers = head.headers;
        while let Some(data) = body.data().await {
            let data = data?;
            self.body.extend_from_slice(&data);
            body.flow_control().release_capacity(data.len())?;
        }
        self.trailers = body.trailers().await?.unwrap_or_default();
        Ok(())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Runs `future` on a runtime of its own, and not for ever.
#[track_caller]
pub fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = tokio::task::LocalSet::new();
    let ended = local.block_on(&runtime, async {
        tokio::time::timeout(TIMEOUT, future).await
    });
    ended.expect("it takes too long")
}

/// Fields by name.
pub fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &'static str)| {
        let name = http::HeaderName::from_static(name);
        (name, http::HeaderValue::from_static(value))
    };
    pairs.iter().map(field).collect()
}

async fn shake<S>(stream: S) -> (SendRequest<Bytes>, JoinHandle<()>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + 'static,
{
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = async { drop(connection.await) };
    (sender, tokio::task::spawn_local(connection))
}
