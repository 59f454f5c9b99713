//! Slow or unreachable origin servers, and the client's response.

use super::*;

const SHORT: Duration = Duration::from_millis(50);

/// An address without a listener.
pub(super) async fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test(flavor = "local")]
async fn a_refused_connection_is_502() {
    let bed = Bed::to(&[nobody().await]);
    let error = bed.send(get("/")).await.err().unwrap();
    assert_eq!(
        (error.reason(), error.status().as_u16()),
        ("connect_refused", 502)
    );
    assert!(error.is_unreachable() && !error.is_timeout());
    assert_eq!(bed.server(0).in_flight(), 0);
}

#[tokio::test(flavor = "local")]
async fn no_servers_is_503() {
    let error = Bed::to(&[]).send(get("/")).await.err().unwrap();
    assert_eq!(
        (error.reason(), error.status().as_u16()),
        ("no_server", 503)
    );
    assert!(error.server().is_none());
}

#[tokio::test(flavor = "local")]
async fn the_next_server_is_tried_even_for_a_post() {
    let origin = Origin::answering(OK).await;
    let mut bed = Bed::to(&[nobody().await, nobody().await, origin.address]);
    bed.upstream.retries = 2;
    for _ in 0..6 {
        let answer = bed.send(post(Body::Empty)).await.unwrap();
        assert_eq!(answer.server.endpoint, origin.address.into());
        assert_eq!(text(answer).await, "ok");
    }
    assert!((0..3).all(|i| bed.server(i).in_flight() == 0));
}

#[tokio::test(flavor = "local")]
async fn no_more_servers_are_tried_than_retries_allow() {
    let origin = Origin::answering(OK).await;
    let last = ServerSpec {
        backup: true,
        ..place(origin.address)
    };
    let mut places = vec![last];
    for _ in 0..3 {
        places.push(place(nobody().await));
    }
    for (retries, accepted) in [(0, 0), (2, 0), (3, 1)] {
        let mut bed = Bed::to(&[]);
        bed.upstream = Upstream::new("app", places.clone(), &ServerRegistry::default());
        bed.upstream.retries = retries;
        let answered = bed.get().await.is_ok();
        assert_eq!((answered, origin.accepted.get()), (accepted == 1, accepted));
    }
}

#[tokio::test(flavor = "local")]
async fn a_full_backlog_is_a_connect_timeout() {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let mut fill = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, SHORT) {
        fill.push(stream);
        assert!(fill.len() < 64, "the backlog never fills");
    }
    let mut bed = Bed::to(&[address]);
    bed.upstream.connect_timeout = SHORT;
    let error = bed.send(get("/")).await.err().unwrap();
    assert_eq!(
        (error.reason(), error.status().as_u16()),
        ("connect_timeout", 504)
    );
    assert!(error.is_unreachable() && error.is_timeout());
}

#[tokio::test(flavor = "local")]
async fn a_silent_origin_is_504_and_its_connection_closes() {
    let (sender, closed) = tokio::sync::oneshot::channel();
    let sender = Cell::new(Some(sender));
    let origin = Origin::playing(move |_, mut stream| {
        let sender = sender.take().unwrap();
        async move {
            head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
            assert_eq!(rest(&mut stream).await, "");
            sender.send(()).unwrap();
        }
    })
    .await;
    let mut bed = Bed::to(&[origin.address]);
    bed.upstream.response_timeout = SHORT;
    let error = bed.send(get("/")).await.err().unwrap();
    assert_eq!(
        (error.reason(), error.status().as_u16()),
        ("response_timeout", 504)
    );
    assert!(error.is_timeout() && !error.is_unreachable());
    closed.await.unwrap();
    assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (0, 0));
}

#[tokio::test(flavor = "local")]
async fn a_silent_idle_connection_is_not_tried_twice() {
    let origin = Origin::playing(|_, mut stream| async move {
        head(&mut stream).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        rest(&mut stream).await;
    })
    .await;
    let mut bed = Bed::to(&[origin.address]);
    bed.upstream.response_timeout = SHORT;
    assert_eq!(bed.get().await.unwrap().1, "ok");
    assert_eq!(bed.reason().await, "response_timeout");
    assert_eq!(origin.accepted.get(), 1);
}

#[tokio::test(flavor = "local")]
async fn a_slow_client_does_not_count_against_the_response_timeout() {
    let origin = Origin::playing(|_, mut stream| async move {
        until(&mut stream, "0\r\n\r\n").await;
        stream.write_all(OK.as_bytes()).await.unwrap();
    })
    .await;
    let mut bed = Bed::to(&[origin.address]);
    bed.upstream.response_timeout = SHORT;
    let (sender, body) = channel();
    tokio::task::spawn_local(async move {
        for _ in 0..3 {
            tokio::time::sleep(3 * SHORT).await;
            let frame = Frame::data(Bytes::from_static(b"x"));
            sender.send(Ok(frame)).await.unwrap();
        }
    });
    let answer = bed.send(post(body)).await.unwrap();
    assert_eq!(text(answer).await, "ok");
}

/// An upstream with an origin server that never responds, without retries.
async fn silent() -> (Origin, Bed) {
    let origin = Origin::playing(|_, mut stream| async move {
        rest(&mut stream).await;
    })
    .await;
    let mut bed = Bed::to(&[origin.address]);
    bed.upstream.retries = 0;
    bed.upstream.response_timeout = 4 * SHORT;
    (origin, bed)
}

/// The number of ticks of the pool's timer until `send` ended with a timeout.
async fn ticks(bed: &Bed, request: Request<Body>) -> u64 {
    let before = bed.pool.shared.timer.ticks();
    let error = bed.send(request).await.err().unwrap();
    assert_eq!(error.reason(), "response_timeout");
    bed.pool.shared.timer.ticks() - before
}

/// A machine under load may tick between two consecutive steps.
#[track_caller]
fn about(ticks: u64, expected: u64) {
    assert!(ticks.abs_diff(expected) <= 2, "{ticks} for {expected}");
}

#[tokio::test(flavor = "local")]
async fn a_body_sent_immediately_does_not_extend_the_timeout() {
    let (_origin, bed) = silent().await;
    let without = ticks(&bed, post(Body::Empty)).await;
    about(ticks(&bed, post(Body::from("whole"))).await, without);
    about(ticks(&bed, post(chunks(&["in ", "parts"]))).await, without);
}

#[tokio::test(flavor = "local")]
async fn the_response_timeout_begins_when_the_body_has_ended() {
    let (_origin, bed) = silent().await;
    let without = ticks(&bed, post(Body::Empty)).await;
    let timer = Rc::clone(&bed.pool.shared.timer);
    let ended = Rc::new(Cell::new(0));
    let (sender, body) = channel();
    let (own, before) = (Rc::clone(&ended), timer.ticks());
    tokio::task::spawn_local(async move {
        while timer.ticks() < before + 3 {
            settle().await;
        }
        own.set(timer.ticks() - before);
        drop(sender);
    });
    about(ticks(&bed, post(body)).await, ended.get() + without);
}

#[tokio::test(flavor = "local")]
async fn an_origin_that_stops_reading_times_out() {
    let origin = Origin::playing(|_, mut stream| async move {
        head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut bed = Bed::to(&[origin.address]);
    bed.upstream.response_timeout = SHORT;
    let (sender, body) = channel();
    tokio::task::spawn_local(async move {
        let chunk = Bytes::from(vec![0; 64 * 1024]);
        while sender.send(Ok(Frame::data(chunk.clone()))).await.is_ok() {}
    });
    let error = bed.send(post(body)).await.err().unwrap();
    assert_eq!(error.reason(), "response_timeout");
}
