//! Prepares a TCP connection for requests: reads the PROXY header, then performs the TLS handshake or detects
//! the HTTP version.

use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;
use tracing::debug;

use super::CoreState;
use crate::facts::{ClientConnection, TlsFacts};
use crate::listen::{
    self, ClientSocket, ConnectionLimits, ConnectionTimer, HttpVersion, RequestHandler,
};
use crate::observe::{ConnectionPhase, ProtocolError};
use crate::snapshot::{ListenerConfig, Snapshot};
use crate::tls::{self, TlsStream, TlsTerminator};

/// A connection that is ready for requests.
pub enum ClientStream {
    /// A connection without TLS.
    Plain(ClientSocket, HttpVersion),
    /// A connection with TLS.
    Tls(Box<TlsStream<ClientSocket>>, HttpVersion),
}

/// Prepares a connection for requests. `None` if it ended before.
pub async fn enter(
    core: &CoreState,
    snapshot: &Snapshot,
    listener: &ListenerConfig,
    (mut tcp, mut peer): (TcpStream, SocketAddr),
    timer: &ConnectionTimer,
) -> Option<(ClientStream, ClientConnection)> {
    if listener.settings.proxy_protocol {
        peer = read_proxy_header(core, snapshot, &mut tcp, peer, timer).await?;
    }
    if !admits(core, snapshot, peer.ip(), timer) {
        return None;
    }
    let mut connection = ClientConnection {
        peer,
        listener: listener.label.clone(),
        tls: None,
    };
    let Some(terminator) = &listener.settings.tls else {
        let protocol = sniff(core, listener, &tcp, timer).await?;
        return Some((ClientStream::Plain(timer.socket(tcp), protocol), connection));
    };
    // Boxed, so that the connection's future does not keep the memory of the handshake.
    let (stream, tls) = Box::pin(handshake(core, (tcp, peer), terminator, timer)).await?;
    let protocol = match tls.alpn {
        Some("h2") => HttpVersion::Http2,
        _ => HttpVersion::Http1,
    };
    connection.tls = Some(tls);
    Some((ClientStream::Tls(Box::new(stream), protocol), connection))
}

/// Returns whether `ip` may have one more connection. `ip` is the client's address, also with the PROXY
/// protocol. Trusted proxies have no limit.
fn admits(core: &CoreState, snapshot: &Snapshot, ip: IpAddr, timer: &ConnectionTimer) -> bool {
    let Some(per_ip) = &snapshot.settings.per_ip else {
        return true;
    };
    let network = per_ip.prefixes.network(ip);
    let admitted = snapshot.settings.client_ip.trusts(ip) || timer.admit(network, per_ip.limit);
    if !admitted {
        core.protocol_error(ProtocolError::TooManyConnections);
    }
    admitted
}

// === impl ClientStream ===

impl ClientStream {
    /// Returns what the connection is used for.
    pub fn phase(&self) -> ConnectionPhase {
        match self {
            ClientStream::Plain(_, HttpVersion::Http2)
            | ClientStream::Tls(_, HttpVersion::Http2) => ConnectionPhase::Http2,
            _ => ConnectionPhase::Http1,
        }
    }

    /// Serves requests until the connection ends.
    pub async fn serve<H: RequestHandler>(
        self,
        limits: &ConnectionLimits,
        timer: ConnectionTimer,
        handler: H,
    ) -> Result<(), listen::ServeError> {
        match self {
            ClientStream::Plain(tcp, protocol) => {
                listen::serve(tcp, protocol, limits, timer, handler).await
            }
            ClientStream::Tls(tls, protocol) => {
                listen::serve(tls, protocol, limits, timer, handler).await
            }
        }
    }
}

/// Reads the client's address from the PROXY header, which trusted proxies, and only they, must send.
async fn read_proxy_header(
    core: &CoreState,
    snapshot: &Snapshot,
    tcp: &mut TcpStream,
    peer: SocketAddr,
    timer: &ConnectionTimer,
) -> Option<SocketAddr> {
    if !snapshot.settings.client_ip.trusts(peer.ip().to_canonical()) {
        core.reject_proxy_header(peer, &"the peer is not a trusted proxy");
        return None;
    }
    let read = in_time(core, timer, listen::proxy_header(tcp)).await?;
    let read = read.inspect_err(|error| core.reject_proxy_header(peer, error));
    Some(read.ok()?.unwrap_or(peer))
}

/// Runs a step before HTTP starts. `None` after a timeout, which is counted.
async fn in_time<F: Future>(
    core: &CoreState,
    timer: &ConnectionTimer,
    before: F,
) -> Option<F::Output> {
    let run = timer.guard(before).await;
    let run = run.inspect_err(|_| core.protocol_error(ProtocolError::Timeout));
    run.ok()
}

async fn sniff(
    core: &CoreState,
    listener: &ListenerConfig,
    tcp: &TcpStream,
    timer: &ConnectionTimer,
) -> Option<HttpVersion> {
    match (listener.settings.h1, listener.settings.h2) {
        (true, false) => return Some(HttpVersion::Http1),
        (false, true) => return Some(HttpVersion::Http2),
        _ => {}
    }
    in_time(core, timer, listen::sniff(tcp)).await?.ok()
}

async fn handshake(
    core: &CoreState,
    (tcp, peer): (TcpStream, SocketAddr),
    terminator: &TlsTerminator,
    timer: &ConnectionTimer,
) -> Option<(TlsStream<ClientSocket>, TlsFacts)> {
    let handshakes = &core.live.process.metrics.handshakes;
    let accepting = tls::accept(timer.socket(tcp), terminator);
    let accepted = in_time(core, timer, accepting).await;
    let (ended, accepted) = match accepted {
        Some(Ok(accepted)) if tls::is_resumed(&accepted.0) => (&handshakes.resumed, Some(accepted)),
        Some(Ok(accepted)) => (&handshakes.full, Some(accepted)),
        Some(Err(error)) => {
            debug!(%peer, kind = %error.kind(), %error, "handshake failed");
            (&handshakes.failed, None)
        }
        None => (&handshakes.failed, None),
    };
    ended.inc();
    accepted
}
