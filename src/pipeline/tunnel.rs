//! A WebSocket after its handshake: bytes both ways until one side ends. It holds no
//! configuration.

use std::cell::OnceCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::request::Parts;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};

use super::places::Taken;
use super::{Core, opening};
use crate::facts::Malformed;
use crate::listen::{Deadlines, Incoming, Lull, Stay};
use crate::upstream::{Answer, Error, Key, Tunnel};

/// A client that may get a tunnel.
pub struct Client {
    upgrade: OnUpgrade,
    /// Its connection carries more than the tunnel.
    stay: Option<Stay>,
    /// The key of the handshake, if it is not the client's own.
    key: Option<Key>,
}

/// What is known of a tunnel while it lasts.
struct Flow {
    deadlines: Rc<Deadlines>,
    /// How long it may be quiet once a side has ended.
    patience: Duration,
    lull: OnceCell<Lull>,
}

/// One side of a tunnel. hyper calls it an end of the bytes when a stream is reset, but then nobody
/// hears what the other side still has to say.
struct Side<'f, S> {
    stream: S,
    flow: &'f Flow,
}

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

// === impl Flow ===

impl Flow {
    fn new(core: &Core, patience: Duration) -> Self {
        Self {
            deadlines: core.deadlines.clone(),
            patience,
            lull: OnceCell::new(),
        }
    }

    /// Bytes both ways until both sides have ended, or one has and the other is quiet.
    async fn join(&self, client: Upgraded, origin: Tunnel) {
        let mut client = Side::new(TokioIo::new(client), self);
        let mut origin = Side::new(origin, self);
        let mut copied = pin!(copy_bidirectional(&mut client, &mut origin));
        poll_fn(|cx| {
            let ended = copied.as_mut().poll(cx).is_ready();
            match ended || self.lull.get().is_some_and(|lull| lull.is_over(cx)) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    fn side_ended(&self) {
        self.lull.get_or_init(|| self.deadlines.lull(self.patience));
    }

    fn moved(&self) {
        if let Some(lull) = self.lull.get() {
            lull.stir();
        }
    }
}

// === impl Side ===

impl<'f, S> Side<'f, S> {
    fn new(stream: S, flow: &'f Flow) -> Self {
        Self { stream, flow }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Side<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before || buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.flow.side_ended();
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(Err(reset)) => Poll::Ready(Err(reset)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Side<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if written.is_ready() {
            self.flow.moved();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
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
/// `patience`: for a side that stays quiet when the other has ended.
pub fn spawn(
    core: &Core,
    patience: Duration,
    client: Client,
    origin: Tunnel,
    places: Option<Box<Taken>>,
) {
    let flow = Flow::new(core, patience);
    tokio::task::spawn_local(async move {
        // A client that left before the switch needs no tunnel; one that breaks off later is an
        // ordinary end.
        if let Ok(upgraded) = client.upgrade.await {
            flow.join(upgraded, origin).await;
        }
        drop((client.stay, places));
    });
}
