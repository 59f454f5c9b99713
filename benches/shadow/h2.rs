//! HTTP/2 over TLS.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use super::answer::{Answer, Asks, now};
use super::h1::dial;

pub struct Client {
    runtime: Runtime,
    sender: SendRequest<Empty<Bytes>>,
    reads: Reads,
}

/// When bytes came: the first time and the last.
type Reads = Arc<Mutex<Vec<Instant>>>;

/// A socket that remembers when bytes came.
struct Timed {
    tcp: TcpStream,
    reads: Reads,
}

impl Client {
    pub fn connect(to: SocketAddr, from: IpAddr) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(1)
            .build()
            .unwrap();
        let reads = Reads::default();
        let sender = runtime.block_on(async {
            let tcp = dial(to, from);
            tcp.set_nonblocking(true).unwrap();
            let tcp = Timed {
                tcp: TcpStream::from_std(tcp).unwrap(),
                reads: reads.clone(),
            };
            let connector = tokio_rustls::TlsConnector::from(Arc::new(config()));
            let name = ServerName::try_from("localhost").unwrap();
            let stream = connector.connect(name, tcp).await.unwrap();
            let io = TokioIo::new(stream);
            let (sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            sender
        });
        Self {
            runtime,
            sender,
            reads,
        }
    }
}

impl Asks for Client {
    fn ask(&mut self, path: &str) -> Answer {
        let uri = format!("https://example.com{path}");
        let request = http::Request::get(uri).body(Empty::new()).unwrap();
        self.runtime.block_on(async {
            self.reads.lock().unwrap().clear();
            let began = Instant::now();
            let mut answer = Answer::default();
            let mut response = self.sender.send_request(request).await.unwrap();
            assert_eq!(response.status(), 200);
            let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
            let fields = response.headers().iter();
            answer.headers = fields.map(|(n, v)| (n.to_string(), text(v))).collect();
            while let Some(frame) = response.frame().await {
                let data = frame.unwrap().into_data().unwrap();
                answer.pieces.push(data.len());
                answer.body.extend_from_slice(&data);
            }
            let reads = self.reads.lock().unwrap();
            answer.first = reads[0] - began;
            answer.last = reads[reads.len() - 1] - began;
            answer.reads = reads.len();
            answer.at = now();
            answer
        })
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.tcp).poll_read(cx, buf);
        if polled.is_ready() && buf.filled().len() > before {
            self.reads.lock().unwrap().push(Instant::now());
        }
        polled
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

fn config() -> ClientConfig {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Any))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// Trusts every certificate: the development one is made anew each time.
#[derive(Debug)]
struct Any;

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
