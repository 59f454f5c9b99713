//! From a TCP connection to one that can carry requests: the PROXY header, then the handshake or a
//! look at the first bytes.

use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;

use super::Core;
use crate::facts::{Connection, TlsFacts};
use crate::listen::{self, ClientSocket, ConnectionTimer, Limits, Protocol, RequestHandler};
use crate::observe::ProtocolError;
use crate::snapshot::{Listener, Snapshot};
use crate::tls::{self, Terminator, TlsStream};

/// A connection that can carry requests.
pub enum Stream {
    /// Without TLS.
    Plain(ClientSocket, Protocol),
    /// Behind TLS.
    Tls(Box<TlsStream<ClientSocket>>, Protocol),
}

/// Brings a connection to where requests begin; `None`: it ended before.
pub async fn enter(
    core: &Core,
    snapshot: &Snapshot,
    listener: &Listener,
    (mut tcp, mut peer): (TcpStream, SocketAddr),
    timer: &ConnectionTimer,
) -> Option<(Stream, Connection)> {
    if listener.proxy_protocol {
        peer = read_proxy_header(core, snapshot, &mut tcp, peer, timer).await?;
    }
    if !admits(core, snapshot, peer.ip(), timer) {
        return None;
    }
    let mut connection = Connection {
        peer,
        listener: listener.label.clone(),
        tls: None,
    };
    let Some(terminator) = &listener.tls else {
        let protocol = sniff(core, listener, &tcp, timer).await?;
        return Some((Stream::Plain(timer.socket(tcp), protocol), connection));
    };
    // Apart, so that a connection is no larger for it once it is done.
    let (stream, tls) = Box::pin(handshake(core, (tcp, peer), terminator, timer)).await?;
    let protocol = match tls.alpn {
        Some("h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    connection.tls = Some(tls);
    Some((Stream::Tls(Box::new(stream), protocol), connection))
}

/// Whether `ip` may have one more connection. `ip` is the client's address, also behind the PROXY protocol.
/// Trusted proxies have no limit.
fn admits(core: &Core, snapshot: &Snapshot, ip: IpAddr, timer: &ConnectionTimer) -> bool {
    let Some(per_ip) = &snapshot.per_ip else {
        return true;
    };
    let network = per_ip.prefixes.network(ip);
    let admitted = snapshot.client_ip.trusts(ip) || timer.admit(network, per_ip.limit);
    if !admitted {
        core.protocol_error(ProtocolError::TooManyConnections);
    }
    admitted
}

// === impl Stream ===

impl Stream {
    /// Serves requests until the connection ends.
    pub async fn serve<H: RequestHandler>(
        self,
        limits: &Limits,
        timer: ConnectionTimer,
        handler: H,
    ) -> Result<(), listen::Error> {
        match self {
            Stream::Plain(tcp, protocol) => {
                listen::serve(tcp, protocol, limits, timer, handler).await
            }
            Stream::Tls(tls, protocol) => {
                listen::serve(tls, protocol, limits, timer, handler).await
            }
        }
    }
}

/// Reads the client's address from the PROXY header. Only a trusted proxy may send one, and it must.
async fn read_proxy_header(
    core: &Core,
    snapshot: &Snapshot,
    tcp: &mut TcpStream,
    peer: SocketAddr,
    timer: &ConnectionTimer,
) -> Option<SocketAddr> {
    if !snapshot.client_ip.trusts(peer.ip().to_canonical()) {
        core.reject_proxy_header(peer, &"the peer is not a trusted proxy");
        return None;
    }
    match timer.guard(listen::proxy_header(tcp)).await {
        Ok(Ok(client)) => Some(client.unwrap_or(peer)),
        Ok(Err(error)) => {
            core.reject_proxy_header(peer, &error);
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
    timer: &ConnectionTimer,
) -> Option<Protocol> {
    match (listener.h1, listener.h2) {
        (true, false) => return Some(Protocol::Http1),
        (false, true) => return Some(Protocol::Http2),
        _ => {}
    }
    match timer.guard(listen::sniff(tcp)).await {
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
    timer: &ConnectionTimer,
) -> Option<(TlsStream<ClientSocket>, TlsFacts)> {
    let handshakes = &core.live.lasting.metrics.handshakes;
    match timer
        .guard(tls::accept(timer.socket(tcp), terminator))
        .await
    {
        Ok(Ok((stream, facts))) => {
            if tls::is_resumed(&stream) {
                handshakes.resumed.inc();
            } else {
                handshakes.full.inc();
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
