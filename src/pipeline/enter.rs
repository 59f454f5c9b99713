//! From a TCP connection to one that can carry requests: the PROXY header, then the handshake or a
//! look at the first bytes.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};

use http::{Request, Response};
use tokio::net::TcpStream;

use super::{Core, Recorded};
use crate::facts::{Connection, TlsFacts};
use crate::listen::{self, Incoming, Limits, Protocol, Socket, Watch};
use crate::observe::ProtocolError;
use crate::snapshot::{Listener, Snapshot};
use crate::tls::{self, Terminator, TlsStream};

/// A connection that can carry requests.
pub enum Stream {
    /// Without TLS.
    Plain(Socket, Protocol),
    /// Behind TLS.
    Tls(Box<TlsStream<Socket>>, Protocol),
}

/// Brings a connection to where requests begin; `None`: it ended before.
pub async fn enter(
    core: &Core,
    snapshot: &Snapshot,
    listener: &Listener,
    (mut tcp, mut peer): (TcpStream, SocketAddr),
    watch: &Watch,
) -> Option<(Stream, Connection)> {
    if listener.proxy_protocol {
        peer = behind(core, snapshot, &mut tcp, peer, watch).await?;
    }
    if !admits(core, snapshot, peer.ip(), watch) {
        return None;
    }
    let mut connection = Connection {
        peer,
        listener: listener.label.clone(),
        tls: None,
    };
    let Some(terminator) = &listener.tls else {
        let protocol = sniff(core, listener, &tcp, watch).await?;
        return Some((Stream::Plain(watch.socket(tcp), protocol), connection));
    };
    // Apart, so that a connection is no larger for it once it is done.
    let (stream, tls) = Box::pin(handshake(core, (tcp, peer), terminator, watch)).await?;
    let protocol = match tls.alpn {
        Some("h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    connection.tls = Some(tls);
    Some((Stream::Tls(Box::new(stream), protocol), connection))
}

/// Whether `ip` may have one more connection: the client's, or of whoever a proxy speaks for.
/// Trusted proxies may have as many as they like.
fn admits(core: &Core, snapshot: &Snapshot, ip: IpAddr, watch: &Watch) -> bool {
    let Some(per_ip) = &snapshot.per_ip else {
        return true;
    };
    let network = per_ip.prefixes.network(ip);
    let admitted = snapshot.client_ip.trusts(ip) || watch.admit(network, per_ip.limit);
    if !admitted {
        core.protocol_error(ProtocolError::TooManyConnections);
    }
    admitted
}

// === impl Stream ===

impl Stream {
    /// Serves requests until the connection ends.
    pub async fn serve<H, F>(
        self,
        limits: &Limits,
        watch: Watch,
        handler: H,
    ) -> Result<(), listen::Error>
    where
        H: Fn(Request<Incoming>) -> F + Unpin + 'static,
        F: Future<Output = Option<Response<Recorded>>> + 'static,
    {
        match self {
            Stream::Plain(tcp, protocol) => {
                listen::serve(tcp, protocol, limits, watch, handler).await
            }
            Stream::Tls(tls, protocol) => {
                listen::serve(tls, protocol, limits, watch, handler).await
            }
        }
    }
}

/// Who is behind a proxy. Nobody but a trusted one may say, and it must.
async fn behind(
    core: &Core,
    snapshot: &Snapshot,
    tcp: &mut TcpStream,
    peer: SocketAddr,
    watch: &Watch,
) -> Option<SocketAddr> {
    if !snapshot.client_ip.trusts(peer.ip().to_canonical()) {
        core.not_behind(peer, &"the peer is not a trusted proxy");
        return None;
    }
    match watch.guard(listen::proxy_header(tcp)).await {
        Ok(Ok(client)) => Some(client.unwrap_or(peer)),
        Ok(Err(error)) => {
            core.not_behind(peer, &error);
            None
        }
        Err(_) => {
            core.protocol_error(ProtocolError::Timeout);
            None
        }
    }
}

async fn sniff(
    core: &Core,
    listener: &Listener,
    tcp: &TcpStream,
    watch: &Watch,
) -> Option<Protocol> {
    match (listener.h1, listener.h2) {
        (true, false) => return Some(Protocol::Http1),
        (false, true) => return Some(Protocol::Http2),
        _ => {}
    }
    match watch.guard(listen::sniff(tcp)).await {
        Ok(Ok(protocol)) => Some(protocol),
        Ok(Err(_)) => None,
        Err(_) => {
            core.protocol_error(ProtocolError::Timeout);
            None
        }
    }
}

async fn handshake(
    core: &Core,
    (tcp, peer): (TcpStream, SocketAddr),
    terminator: &Terminator,
    watch: &Watch,
) -> Option<(TlsStream<Socket>, TlsFacts)> {
    let handshakes = &core.live.lasting.metrics.handshakes;
    match watch
        .guard(tls::accept(watch.socket(tcp), terminator))
        .await
    {
        Ok(Ok((stream, facts))) => {
            match tls::is_resumed(&stream) {
                true => handshakes.resumed.inc(),
                false => handshakes.full.inc(),
            }
            Some((stream, facts))
        }
        Ok(Err(error)) => {
            handshakes.failed.inc();
            core.handshake_failed(peer, &error);
            None
        }
        Err(_) => {
            handshakes.failed.inc();
            core.protocol_error(ProtocolError::Timeout);
            None
        }
    }
}
