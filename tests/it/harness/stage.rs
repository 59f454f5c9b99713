//! An origin that speaks HTTP/2, and origins behind TLS: a script answers, one call a request.

use std::future::Future;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::Origin;

/// How an HTTP/2 origin behaves, whatever its script says.
#[derive(Clone, Default)]
pub struct Stage {
    /// Behind TLS.
    pub tls: Option<Arc<ServerConfig>>,
    /// How many requests it takes at once on a connection.
    pub streams: Option<u32>,
}

/// A request that a script has to answer.
pub struct Call {
    /// The request.
    pub request: Request<RecvStream>,
    /// Its answer.
    pub answer: SendResponse<Bytes>,
    /// The connection it came on, from zero.
    pub connection: usize,
}

/// A certificate authority of a test's own.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Stage {
    /// An origin on which `script` answers.
    pub fn play<F>(self, script: impl Fn(Call) -> F + Send + 'static) -> Origin
    where
        F: Future<Output = ()> + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, self.listen(listener, Rc::new(script)));
        });
        Origin::at(address)
    }

    async fn listen<F>(self, listener: TcpListener, script: Rc<impl Fn(Call) -> F + 'static>)
    where
        F: Future<Output = ()> + 'static,
    {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        for connection in 0.. {
            let (tcp, _) = listener.accept().await.unwrap();
            tcp.set_nodelay(true).unwrap();
            let (script, stage) = (script.clone(), self.clone());
            tokio::task::spawn_local(async move {
                let Some(config) = stage.tls.clone() else {
                    return stage.serve(tcp, connection, script).await;
                };
                if let Ok(tls) = TlsAcceptor::from(config).accept(tcp).await {
                    stage.serve(tls, connection, script).await;
                }
            });
        }
    }

    async fn serve<S, F>(self, stream: S, connection: usize, script: Rc<impl Fn(Call) -> F>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
        F: Future<Output = ()> + 'static,
    {
        let mut builder = h2::server::Builder::new();
        builder.initial_window_size(1 << 20);
        if let Some(streams) = self.streams {
            builder.max_concurrent_streams(streams);
        }
        let Ok(mut http) = builder.handshake(stream).await else {
            return;
        };
        while let Some(Ok((request, answer))) = http.accept().await {
            tokio::task::spawn_local(script(Call {
                request,
                answer,
                connection,
            }));
        }
    }
}

impl Call {
    /// A field of the request; empty: it has none.
    pub fn header(&self, name: &str) -> String {
        let value = self.request.headers().get(name);
        value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
    }

    /// The whole body and the trailers of the request.
    pub async fn body(&mut self) -> (Vec<u8>, HeaderMap) {
        let stream = self.request.body_mut();
        let mut body = Vec::new();
        while let Some(data) = stream.data().await {
            let data = data.unwrap();
            stream.flow_control().release_capacity(data.len()).unwrap();
            body.extend_from_slice(&data);
        }
        let trailers = stream.trailers().await.unwrap().unwrap_or_default();
        (body, trailers)
    }

    /// Begins an answer with these fields.
    pub fn head(&mut self, status: u16, fields: &[(&str, &str)], ended: bool) -> SendStream<Bytes> {
        let mut head = Response::builder().status(status);
        for (name, value) in fields {
            head = head.header(*name, *value);
        }
        let sent = self.answer.send_response(head.body(()).unwrap(), ended);
        sent.unwrap()
    }

    /// Answers with this text.
    pub fn say(mut self, text: &str) {
        let mut stream = self.head(200, &[], false);
        let _ = stream.send_data(Bytes::copy_from_slice(text.as_bytes()), true);
    }
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        // Two of one name would be taken for one another.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("authority {}", NEXT.fetch_add(1, Ordering::Relaxed));
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Its certificate, in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for `name` and its key, in PEM.
    pub fn issue(&self, name: &str) -> (String, String) {
        let (certificate, key) = self.certificate(name);
        (certificate.pem(), key.serialize_pem())
    }

    /// The server side of TLS for `name`.
    pub fn server(&self, name: &str, protocols: &[&str]) -> Arc<ServerConfig> {
        let (certificate, key) = self.issue(name);
        let config = server_of(certificate.as_bytes(), key.as_bytes());
        let mut config = Arc::unwrap_or_clone(config);
        config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    fn certificate(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }
}

/// The server side of TLS with a certificate and its key, in PEM.
pub fn server_of(certificate: &[u8], key: &[u8]) -> Arc<ServerConfig> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>();
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.unwrap(), PrivateKeyDer::from_pem_slice(key).unwrap());
    Arc::new(config.unwrap())
}
