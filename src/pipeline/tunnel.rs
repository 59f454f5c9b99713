//! A WebSocket after its handshake: bytes both ways until one side ends. It holds no
//! configuration.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::request::Parts;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::opening;
use super::places::Taken;
use crate::facts::Malformed;
use crate::listen::{Incoming, Stay};
use crate::upstream::{Answer, Error, Key, Tunnel};

/// A client that may get a tunnel.
pub struct Client {
    upgrade: OnUpgrade,
    /// Its connection carries more than the tunnel.
    stay: Option<Stay>,
    /// The key of the handshake, if it is not the client's own.
    key: Option<Key>,
}

/// The client's end. hyper calls it an end of the bytes when a stream is reset, but then nobody
/// hears what the origin still has to say.
struct End(TokioIo<Upgraded>);

// === impl Client ===

impl Client {
    /// The client of a request that may open a tunnel, in whatever version of HTTP; `None`: nearly
    /// always.
    pub fn of(parts: &mut Parts, incoming: &mut Incoming) -> Result<Option<Self>, Malformed> {
        let key = opening::read(parts)?;
        let upgrade = parts.extensions.remove();
        Ok(upgrade.map(|upgrade| Self {
            upgrade,
            stay: incoming.stay(),
            key,
        }))
    }
}

// === impl End ===

impl AsyncRead for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.0).poll_read(cx, buf))?;
        if buf.filled().len() > before || buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut self.0).poll_flush(cx) {
            Poll::Ready(Err(reset)) => Poll::Ready(Err(reset)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for End {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// An answer that opens a tunnel must be one to our key: nobody else can check it.
pub fn checked(answer: Answer, client: Option<&Client>) -> Result<Answer, Error> {
    let key = client.and_then(|client| client.key.as_ref());
    match key.filter(|_| answer.upgraded.is_some()) {
        Some(key) if !key.is_answered(answer.response.headers()) => {
            Err(Error::of_handshake(&answer.server))
        }
        _ => Ok(answer),
    }
}

/// Joins a client and an origin on this core. The request's places are free when they part.
pub fn spawn(client: Client, mut origin: Tunnel, places: Option<Box<Taken>>) {
    tokio::task::spawn_local(async move {
        // A client that left before the switch needs no tunnel; one that breaks off later is an
        // ordinary end.
        if let Ok(upgraded) = client.upgrade.await {
            let mut upgraded = End(TokioIo::new(upgraded));
            let _ = tokio::io::copy_bidirectional(&mut upgraded, &mut origin).await;
        }
        drop((client.stay, places));
    });
}
