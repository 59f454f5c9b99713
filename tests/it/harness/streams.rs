//! The same client over HTTP/2: all its requests on one connection, one after the other.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Answer, Client};

impl Client {
    /// Sends the request so many times over HTTP/2.
    pub fn times_over_h2(&self, count: usize) -> Vec<Answer> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut tcp = TcpStream::connect(self.address).await.unwrap();
            tcp.set_nodelay(true).unwrap();
            tcp.write_all(&self.prelude).await.unwrap();
            let Some(config) = &self.tls else {
                return self.speak(tcp, count).await;
            };
            let mut config = (**config).clone();
            config.alpn_protocols = vec![b"h2".to_vec()];
            let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
            let name = ServerName::try_from("localhost").unwrap();
            let stream = connector.connect(name, tcp).await.unwrap();
            self.speak(stream, count).await
        })
    }

    async fn speak<S>(&self, stream: S, count: usize) -> Vec<Answer>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        let handshake = http2::handshake(TokioExecutor::new(), io).await;
        let (mut sender, connection) = handshake.unwrap();
        tokio::spawn(connection);
        let mut answers = Vec::new();
        for _ in 0..count {
            sender.ready().await.unwrap();
            let response = sender.send_request(self.message()).await.unwrap();
            let (parts, body) = response.into_parts();
            let fields = parts.headers.iter();
            let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
            answers.push(Answer {
                status: parts.status.as_u16(),
                headers: fields.map(|(n, v)| (n.to_string(), text(v))).collect(),
                body: body.collect().await.unwrap().to_bytes().to_vec(),
            });
        }
        answers
    }

    fn message(&self) -> Request<Full<Bytes>> {
        let (method, target) = &self.request;
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let mut request = Request::builder()
            .method(method.as_str())
            .uri(format!("{scheme}://example.com{target}"))
            .version(Version::HTTP_2);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::from(self.body.clone())).unwrap()
    }
}
