//! One request's answer as hyper wants it: counted until it has ended, and in HTTP/2 given in
//! pieces to a client that is seen to take them.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use super::deadline::{Fate, InFlight, Watch};
use super::transfer::{Carried, Transfer, Way};
use super::{Incoming, Protocol};

/// Where an HTTP/1 answer is a long one.
const STEADY: usize = 64 * 1024;

/// What a body gives when it is asked.
type Polled<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// The most that a stream is given of an answer at once: a frame of the usual size (RFC 9113,
/// section 4.2).
const PIECE: usize = 16 * 1024;

/// The most that a slow client's stream is given at once: with the least rate that is asked of it
/// by default, it has taken that in a third of the time that it has by default.
const SMALL_PIECE: usize = 1024;

/// An answer's body, which tells the deadline of its end.
pub(super) struct Tracked<B> {
    body: B,
    flow: Flow,
    in_flight: InFlight,
}

/// How an answer is given.
enum Flow {
    /// HTTP/1, where a client that does not read blocks the socket.
    One(Portions),
    /// HTTP/2.
    Many(Pieces),
}

/// An HTTP/1 answer on its way: what a client does not take would wait in hyper for it.
#[derive(Default)]
struct Portions {
    given: usize,
    last: usize,
    /// A pause was made since the last portion, so that it is written before the next.
    paused: bool,
}

/// An HTTP/2 answer on its way, in pieces so small that a client that takes it slowly is seen to.
struct Pieces {
    taken: Carried,
    /// The rest of what came.
    rest: Bytes,
    /// What was given at once, beyond the client's first window.
    size: usize,
}

/// Why a request gets no answer: the handler has none. hyper closes for it, or resets the stream
/// with INTERNAL_ERROR, which unlike REFUSED_STREAM does not invite a client to try again.
#[derive(Debug)]
pub(super) struct Unanswered;

/// Runs the streams of a connection on this core, each until its client is too slow for it: to end
/// its task is the only way to reset a stream that waits for its window.
#[derive(Clone, Default)]
pub(super) struct Streams(Rc<Cell<Option<Rc<Transfer>>>>);

// === impl Tracked ===

impl<B: Body<Data = Bytes> + Unpin> Body for Tracked<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<B::Error> {
        let Self {
            body,
            flow,
            in_flight,
        } = &mut *self;
        match flow {
            Flow::One(portions) => portions.poll_next(in_flight, || Pin::new(body).poll_frame(cx)),
            Flow::Many(pieces) => pieces.poll_next(cx, body, in_flight),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && self.rest() == 0
    }

    fn size_hint(&self) -> SizeHint {
        let (hint, rest) = (self.body.size_hint(), self.rest());
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + rest);
        }
        whole
    }
}

impl<B> Tracked<B> {
    fn rest(&self) -> u64 {
        match &self.flow {
            Flow::One(_) => 0,
            Flow::Many(pieces) => pieces.rest.len() as u64,
        }
    }
}

/// Says how it ends to whoever hears of it by the drop of its body, which comes next.
impl<B> Drop for Tracked<B> {
    fn drop(&mut self) {
        let slow = match &self.flow {
            Flow::One(_) => false,
            Flow::Many(pieces) => pieces.taken.is_slow(),
        };
        let rest = self.rest() > 0;
        self.in_flight.ends(Fate { rest, slow });
    }
}

// === impl Portions ===

impl Portions {
    /// hyper gathers as much as a head may be long, which is as much as most answers are. Of a
    /// longer one it gets a portion at a time, and none while the socket is blocked.
    fn poll_next<E>(
        &mut self,
        in_flight: &InFlight,
        more: impl FnOnce() -> Polled<E>,
    ) -> Polled<E> {
        let steady = self.given > STEADY && self.last < STEADY;
        self.paused = in_flight.is_blocked() || (steady && !self.paused);
        if self.paused {
            in_flight.hold();
            return Poll::Pending;
        }
        let polled = more();
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.last = frame.data_ref().map_or(0, Bytes::len);
            self.given += self.last;
        }
        polled
    }
}

// === impl Pieces ===

impl Pieces {
    /// hyper asks for one as soon as h2 has the one before, of which the client's windows may have
    /// had room for a byte.
    fn poll_next<B: Body<Data = Bytes> + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut B,
        in_flight: &InFlight,
    ) -> Polled<B::Error> {
        let frame = match self.rest.is_empty() {
            true => Pin::new(&mut *body).poll_frame(cx),
            false => Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest))))),
        };
        let frame = frame.map_ok(|frame| {
            frame.map_data(|mut data| {
                self.cut(&mut data, body, in_flight);
                self.taken.moved(data.len());
                in_flight.gave(data.len());
                data
            })
        });
        self.taken.waits(frame.is_ready());
        frame
    }

    /// How much h2 is given at once: it does not tell how much of that has gone. So it is what the
    /// client has said to take; then little, and more each time while the client is quick.
    fn piece(&mut self, in_flight: &InFlight) -> usize {
        let room = in_flight.at_first().saturating_sub(self.taken.bytes());
        if room > 0 {
            return usize::try_from(room).map_or(PIECE, |room| room.clamp(SMALL_PIECE, PIECE));
        }
        self.size = match self.taken.lags() {
            true => SMALL_PIECE,
            false => (2 * self.size).clamp(SMALL_PIECE, PIECE),
        };
        self.size
    }

    /// Keeps back what is more than a piece. Of the last one that the client may be slow to take it
    /// keeps the last byte, which h2 takes only when the client has the others: an answer that
    /// ends in h2 is out of sight.
    fn cut(&mut self, data: &mut Bytes, body: &impl Body, in_flight: &InFlight) {
        let (length, piece) = (data.len(), self.piece(in_flight));
        if length > piece {
            self.rest = data.split_off(piece);
        } else if length > 1
            && !in_flight.takes(self.taken.bytes(), length)
            && body.size_hint().upper().is_none_or(|left| left == 0)
        {
            self.rest = data.split_off(length - 1);
        }
    }
}

// === impl Unanswered ===

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request is not answered")
    }
}

impl std::error::Error for Unanswered {}

// === impl Streams ===

impl Streams {
    /// What hyper spawns next is the stream of this answer: it calls the service first.
    pub(super) fn expect(&self, answer: &Carried) {
        self.0.set(Some(answer.share()));
    }
}

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, future: F) {
        let task = tokio::task::spawn_local(future);
        if let Some(answer) = self.0.take() {
            answer.ends(task.abort_handle());
        }
    }
}

/// A request's answer as hyper wants it, counted until it has ended. `taken`: its stream, in
/// HTTP/2.
pub(super) fn answer<H, F, B>(
    watch: &Watch,
    taken: Option<Carried>,
    handler: &Rc<H>,
    request: Request<hyper::body::Incoming>,
) -> impl Future<Output = Result<Response<Tracked<B>>, Unanswered>> + use<H, F, B>
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Option<Response<B>>>,
{
    let protocol = match taken {
        Some(_) => Protocol::Http2,
        None => Protocol::Http1,
    };
    let sent = (!request.body().is_end_stream()).then(|| watch.transfer(Way::In));
    let in_flight = watch.request(protocol, sent.is_some());
    let sending = sent.as_ref().map(Carried::share);
    // hyper drops an answer that opens a tunnel, and what the answer holds, as soon as it has it.
    let opens = protocol == Protocol::Http2 && request.method() == Method::CONNECT;
    let stay = opens.then(|| in_flight.stay());
    let request = request.map(|body| Incoming::new(body, sent).staying(stay));
    let handler = handler.clone();
    async move {
        let Some(mut answer) = handler(request).await else {
            return Err(Unanswered);
        };
        // Once an answer has begun, both sides may be talking in turns.
        sending.inspect(|sending| sending.excuse());
        // Nobody has asked for its body yet: the client's windows may be shut.
        taken.as_deref().inspect(|taken| taken.waits(true));
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            in_flight.signal().becomes_tunnel();
        } else if protocol == Protocol::Http1 && in_flight.is_last() {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        Ok(answer.map(|body| Tracked {
            body,
            flow: match taken {
                None => Flow::One(Portions::default()),
                Some(taken) => Flow::Many(Pieces {
                    taken,
                    rest: Bytes::new(),
                    size: 0,
                }),
            },
            in_flight,
        }))
    }
}
