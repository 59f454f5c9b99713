//! The stream of an HTTP/2 connection with its [`Meter`], between h2 and the gathered writes.
//!
//! Once the meter has found the connection broken nothing more is read for h2, and the driver
//! ends it with [`Metered::farewell`]. It changes no byte, but where h2 ends the connection for a
//! head that it cannot read, and says something else.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::Broken;
use super::batch::Batched;
use super::deadline::Watch;
use super::frames::{Frame, GOAWAY};
use super::meter::Meter;

/// A stream with a meter. Clones are the same stream: one for hyper, one for the driver.
pub(super) struct Metered<S> {
    stream: Batched<S>,
    meter: Rc<RefCell<Meter>>,
    watch: Rc<Watch>,
    /// The client has ended its side.
    over: Rc<Cell<bool>>,
}

// === impl Metered ===

impl<S: AsyncWrite + Unpin> Metered<S> {
    pub(super) fn new(stream: S, watch: Rc<Watch>, max_resets: u32) -> Self {
        Self {
            stream: Batched::new(stream),
            meter: Rc::new(RefCell::new(Meter::new(max_resets, watch.now()))),
            watch,
            over: Rc::default(),
        }
    }

    /// Sends what was gathered. Pending: the task is woken when the socket takes more.
    pub(super) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_send(cx)
    }

    /// Whether the meter wants the connection ended now.
    pub(super) fn is_broken(&self) -> bool {
        self.meter.borrow().is_broken()
    }

    /// What the client broke, if it is that which ended the connection.
    pub(super) fn broken(&self) -> Option<Broken> {
        self.meter.borrow().broken()
    }

    /// Says that hyper has ended the connection in peace.
    pub(super) fn ended(&self) {
        if !self.over.get() {
            self.meter.borrow_mut().ended();
        }
    }

    /// What is said instead of `bytes`, which begin with GOAWAY.
    fn amended(&self, bytes: &[u8], goodbye: &Frame) -> Option<Vec<u8>> {
        if !self.meter.borrow().is_unreadable(goodbye) {
            return None;
        }
        let mut bytes = bytes.to_vec();
        let code = bytes.get_mut(GOAWAY - 4..GOAWAY)?;
        code.copy_from_slice(&Broken::UNREADABLE.to_be_bytes());
        Some(bytes)
    }

    /// How many streams ended for an error of the client.
    pub(super) fn take_errors(&self) -> u32 {
        self.meter.borrow_mut().take_errors()
    }

    /// Says GOAWAY where there is a place for it, and closes this direction.
    pub(super) async fn farewell(&mut self) -> io::Result<()> {
        let goodbye = self.meter.borrow().goodbye();
        if let Some(frame) = goodbye {
            self.stream.write_all(&frame).await?;
        }
        self.stream.shutdown().await
    }
}

impl<S> Clone for Metered<S> {
    fn clone(&self) -> Self {
        Self {
            stream: self.stream.clone(),
            meter: self.meter.clone(),
            watch: self.watch.clone(),
            over: self.over.clone(),
        }
    }
}

impl<S: AsyncRead + Unpin> Metered<S> {
    /// What is left of the stream when HTTP is over.
    pub(super) fn into_stream(self) -> Batched<S> {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.meter.borrow().is_broken() {
            // No waker: the driver looks after each poll.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let bytes = buf.filled().get(before..).unwrap_or_default();
        if bytes.is_empty() {
            self.over.set(read.is_ready());
            return read;
        }
        let mut meter = self.meter.borrow_mut();
        let good = meter.hear(bytes, self.watch.now());
        self.watch.owes(meter.owed());
        self.watch.has_unread(meter.unread());
        self.watch.allows(meter.windows());
        if good == 0 {
            // Nothing read would be the end of the stream.
            buf.set_filled(before);
            return Poll::Pending;
        }
        buf.set_filled(before + good);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let amended = Frame::goaway(buf).and_then(|frame| self.amended(buf, &frame));
        let buf = amended.as_deref().unwrap_or(buf);
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(n)) = written {
            let said = buf.get(..n).unwrap_or_default();
            self.meter.borrow_mut().say(said);
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
