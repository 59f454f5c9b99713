//! A connection as the deadlines see it: its socket marks what a client takes, and the stream upon
//! it, behind TLS or not, what it sends. They change no bytes, but where [`Framing`]
//! spoils a head of two meanings or ends one whose coding nobody knows: then the rest of the
//! connection is read for nobody. What comes behind a request waits here for the end of its answer.

mod early;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::Protocol;
use super::accept::Permit;
use super::framing::{Cut, ENDING, Framing};
use early::Early;

/// Marks that a stream leaves for the sweeper. Atomic because hyper wants a stream that can
/// become a tunnel to be `Send`; all on one core, so relaxed.
#[derive(Debug)]
pub(super) struct Signal {
    heard: AtomicBool,
    blocked: AtomicBool,
    written: AtomicU64,
    tunnel: AtomicBool,
    /// An HTTP/1 request is in flight: what follows it waits for its answer.
    busy: AtomicBool,
    /// Something follows it.
    behind: AtomicBool,
    given_up: AtomicBool,
    /// Held here so that a tunnel keeps its place.
    permit: Permit,
}

/// A client's socket, which marks what the client takes.
#[derive(Debug)]
pub struct Socket {
    tcp: TcpStream,
    signal: Arc<Signal>,
}

/// A stream that marks what the client sends.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    signal: Arc<Signal>,
    /// `None`: HTTP/2, where frames cannot lie, or a tunnel.
    framing: Option<Framing>,
    /// What is read next instead of all that the client sends.
    instead: Option<&'static [u8]>,
    /// What came behind a request: nobody knows what it is before the answer has ended.
    early: Early,
}

/// How much of what nobody reads is taken at once.
const WASTE: usize = 4096;

// === impl Signal ===

impl Signal {
    pub(super) fn new(permit: Permit) -> Self {
        Self {
            heard: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            written: AtomicU64::new(0),
            tunnel: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            behind: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            permit,
        }
    }

    /// Whether bytes of what is not whole yet were read since the last call.
    pub(super) fn take_heard(&self) -> bool {
        // Both on one thread, so no read-modify-write is needed.
        let heard = self.heard.load(Ordering::Relaxed);
        if heard {
            self.heard.store(false, Ordering::Relaxed);
        }
        heard
    }

    /// How many bytes the socket took so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether the socket takes no more until the client reads.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    /// The place of the connection.
    pub(super) fn permit(&self) -> &Permit {
        &self.permit
    }

    /// Whether the listener that it came through is to end.
    pub(super) fn is_leaving(&self) -> bool {
        self.permit.is_leaving()
    }

    /// Says that what the client has not taken is to be thrown away.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Says that what follows is no longer HTTP.
    pub(super) fn becomes_tunnel(&self) {
        self.tunnel.store(true, Ordering::Relaxed);
        self.set_busy(false);
    }

    /// Says whether a request is in flight.
    pub(super) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    /// Whether something waits for the end of the request in flight.
    pub(super) fn has_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }

    fn note_write(&self, polled: &Poll<io::Result<usize>>) {
        self.blocked.store(polled.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Ok(bytes)) = polled {
            let written = self.written().wrapping_add(*bytes as u64);
            self.written.store(written, Ordering::Relaxed);
        }
    }
}

// === impl Socket ===

impl Socket {
    pub(super) fn new(tcp: TcpStream, signal: Arc<Signal>) -> Self {
        Self { tcp, signal }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.signal.given_up.load(Ordering::Relaxed) {
            // A reset: the kernel would keep the rest for the client, and the client from seeing
            // the end. It fails only on a socket that is gone.
            let _ = SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write(cx, buf);
        self.signal.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs);
        self.signal.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

// === impl Watched ===

impl<S> Watched<S> {
    pub(super) fn new(stream: S, signal: Arc<Signal>, protocol: Protocol) -> Self {
        let framing = (protocol == Protocol::Http1).then(Framing::new);
        Self {
            stream,
            signal,
            framing,
            instead: None,
            early: Early::default(),
        }
    }

    /// Whether what hyper read last was framed twice, or longer than a number can say.
    pub(super) fn is_spoilt(&self) -> bool {
        self.framing.as_ref().is_some_and(Framing::has_spoilt)
    }

    /// Gives where the bytes must not be read on, if there.
    fn heard(&mut self, bytes: &mut [u8]) -> Option<Cut> {
        if self.signal.tunnel.load(Ordering::Relaxed) {
            self.framing = None;
        }
        let framing = self.framing.as_mut();
        let cut = framing.and_then(|framing| framing.follow(bytes));
        let whole = self.framing.as_ref().is_some_and(Framing::is_between);
        self.signal.heard.store(!whole, Ordering::Relaxed);
        cut
    }

    /// Whether what comes now is behind a request in flight.
    fn is_behind(&self) -> bool {
        self.signal.busy.load(Ordering::Relaxed)
            && self.framing.as_ref().is_some_and(Framing::is_between)
    }
}

impl<S: AsyncRead + Unpin> Watched<S> {
    /// Reads what stands instead of the client's bytes, then nothing until the client ends.
    fn poll_instead(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        instead: &'static [u8],
    ) -> Poll<io::Result<()>> {
        if instead.is_empty() {
            let mut waste = [0; WASTE];
            let mut waste = ReadBuf::new(&mut waste);
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut waste);
            if read.is_ready() && !waste.filled().is_empty() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            return read;
        }
        let (now, later) = instead.split_at(buf.remaining().min(instead.len()));
        buf.put_slice(now);
        self.instead = Some(later);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(instead) = self.instead {
            return self.poll_instead(cx, buf, instead);
        }
        if self.is_behind() {
            return self.poll_early(cx, buf);
        }
        if !self.early.is_empty() {
            return self.read_early(cx, buf);
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let cut = match buf.filled_mut().get_mut(before..) {
            Some(bytes) if !bytes.is_empty() => self.heard(bytes),
            _ => None,
        };
        match cut {
            Some(Cut::Ending(cut)) => {
                buf.set_filled(before + cut);
                self.poll_instead(cx, buf, ENDING)
            }
            Some(Cut::Behind(cut)) => {
                self.keep_early(buf, before + cut);
                read
            }
            None => read,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
