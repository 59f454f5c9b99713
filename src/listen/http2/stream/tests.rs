//! Gathered writes, on a stream that does what the test says.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Wake, Waker};

use super::*;

/// What the next write does; when none is left, all writes are taken whole.
enum Next {
    Take(usize),
    Block,
    Fail,
}

#[derive(Clone, Default)]
struct Script(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    next: VecDeque<Next>,
    written: Vec<u8>,
    writes: usize,
    flushes: usize,
    flush_blocks: bool,
    shut: bool,
}

impl AsyncRead for Script {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let state = &mut *self.0.borrow_mut();
        let taken = match state.next.pop_front() {
            None => buf.len(),
            Some(Next::Take(n)) => n.min(buf.len()),
            Some(Next::Block) => {
                state.next.push_front(Next::Block);
                return Poll::Pending;
            }
            Some(Next::Fail) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        };
        state.writes += 1;
        state.written.extend_from_slice(&buf[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = &mut *self.0.borrow_mut();
        if state.flush_blocks {
            return Poll::Pending;
        }
        state.flushes += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().shut = true;
        Poll::Ready(Ok(()))
    }
}

impl Script {
    fn then(&self, next: Next) {
        self.0.borrow_mut().next.push_back(next);
    }

    fn open(&self) {
        self.0.borrow_mut().next.clear();
    }

    fn written(&self) -> usize {
        self.0.borrow().written.len()
    }
}

#[derive(Default)]
struct Woken(std::sync::atomic::AtomicUsize);

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Polls once, without a runtime.
fn poll<T>(act: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    let mut act = act;
    act(&mut Context::from_waker(Waker::noop()))
}

fn write(batched: &mut BatchedStream<Script>, size: usize) -> Poll<io::Result<usize>> {
    poll(|cx| Pin::new(&mut *batched).poll_write(cx, &vec![b'w'; size]))
}

#[test]
fn many_writes_and_flushes_are_batched_into_one_write() {
    let script = Script::default();
    let mut batched = BatchedStream::new(script.clone());
    for _ in 0..32 {
        assert!(matches!(write(&mut batched, 1000), Poll::Ready(Ok(1000))));
        assert!(poll(|cx| Pin::new(&mut batched).poll_flush(cx)).is_ready());
    }
    assert_eq!(script.written(), 0);
    assert!(matches!(
        poll(|cx| batched.poll_send(cx)),
        Poll::Ready(Ok(()))
    ));
    let state = script.0.borrow();
    assert_eq!(
        (state.written.len(), state.writes, state.flushes),
        (32_000, 1, 1)
    );
}

#[test]
fn an_empty_buffer_sends_nothing() {
    let script = Script::default();
    let mut batched = BatchedStream::new(script.clone());
    assert!(poll(|cx| batched.poll_send(cx)).is_ready());
    assert_eq!(script.0.borrow().flushes, 0);
}

#[test]
fn a_full_buffer_is_sent_immediately_or_refuses_writes() {
    let script = Script::default();
    let mut batched = BatchedStream::new(script.clone());
    let mut taken = 0;
    for _ in 0..100 {
        if let Poll::Ready(Ok(n)) = write(&mut batched, 10_000) {
            taken += n;
        }
    }
    assert!(script.written() > 0 && taken - script.written() <= 64 * 1024);

    script.then(Next::Block);
    while let Poll::Ready(n) = write(&mut batched, 10_000) {
        taken += n.unwrap();
    }
    assert_eq!(taken - script.written(), 64 * 1024);
    assert!(poll(|cx| batched.poll_send(cx)).is_pending());
    script.open();
    assert!(write(&mut batched, 10).is_ready());
    assert!(poll(|cx| batched.poll_send(cx)).is_ready());
    assert_eq!(script.written(), taken + 10);
}

#[test]
fn a_refused_writer_is_woken_when_the_buffer_has_space() {
    let script = Script::default();
    let mut batched = BatchedStream::new(script.clone());
    script.then(Next::Block);
    while write(&mut batched, 10_000).is_ready() {}
    script.open();
    let woken = std::sync::Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    for _ in 0..2 {
        let sent = batched.poll_send(&mut Context::from_waker(&waker));
        assert!(matches!(sent, Poll::Ready(Ok(()))));
    }
    assert_eq!(woken.0.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn bytes_keep_their_order_over_partial_writes() {
    let script = Script::default();
    let mut batched = BatchedStream::new(script.clone());
    let text: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
    for part in text.chunks(7_001) {
        script.then(Next::Take(313));
        script.then(Next::Block);
        assert!(poll(|cx| Pin::new(&mut batched).poll_write(cx, part)).is_ready());
        assert!(poll(|cx| batched.poll_send(cx)).is_pending());
        script.open();
        assert!(poll(|cx| batched.poll_send(cx)).is_ready());
    }
    assert!(script.0.borrow().written == text);
}

#[test]
fn a_pending_flush_is_retried() {
    let script = Script::default();
    let mut batched = BatchedStream::new(script.clone());
    script.0.borrow_mut().flush_blocks = true;
    assert!(write(&mut batched, 10).is_ready());
    assert!(poll(|cx| batched.poll_send(cx)).is_pending());
    assert_eq!(script.written(), 10);
    script.0.borrow_mut().flush_blocks = false;
    assert!(poll(|cx| batched.poll_send(cx)).is_ready());
    assert_eq!(script.0.borrow().flushes, 1);
}

#[test]
fn a_shutdown_sends_the_buffer_first() {
    let script = Script::default();
    let mut batched = BatchedStream::new(script.clone());
    assert!(write(&mut batched, 10).is_ready());
    script.then(Next::Take(4));
    script.then(Next::Block);
    assert!(poll(|cx| Pin::new(&mut batched).poll_shutdown(cx)).is_pending());
    assert!(!script.0.borrow().shut);
    script.open();
    assert!(poll(|cx| Pin::new(&mut batched).poll_shutdown(cx)).is_ready());
    let state = script.0.borrow();
    assert_eq!(
        (state.written.len(), state.flushes, state.shut),
        (10, 1, true)
    );
}

#[test]
fn write_errors_are_returned() {
    let script = Script::default();
    let mut batched = BatchedStream::new(script.clone());
    assert!(write(&mut batched, 10).is_ready());
    script.then(Next::Fail);
    assert!(matches!(
        poll(|cx| batched.poll_send(cx)),
        Poll::Ready(Err(_))
    ));
    script.then(Next::Take(0));
    assert!(matches!(
        poll(|cx| batched.poll_send(cx)),
        Poll::Ready(Err(_))
    ));
    script.then(Next::Fail);
    assert!(matches!(
        poll(|cx| Pin::new(&mut batched).poll_shutdown(cx)),
        Poll::Ready(Err(_))
    ));
    for _ in 0..20 {
        script.then(Next::Fail);
    }
    let mut refused = false;
    for _ in 0..20 {
        refused |= matches!(write(&mut batched, 10_000), Poll::Ready(Err(_)));
    }
    assert!(refused);
}

#[test]
fn a_disconnected_peer_is_an_error() {
    let runtime = tokio::runtime::LocalRuntime::new().unwrap();
    runtime.block_on(async {
        let (mine, theirs) = tokio::io::duplex(64);
        drop(theirs);
        let mut batched = BatchedStream::new(mine);
        batched.write_all(b"x").await.unwrap();
        assert!(poll_fn(|cx| batched.poll_send(cx)).await.is_err());
    });
}
