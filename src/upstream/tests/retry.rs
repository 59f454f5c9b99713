//! When a request is sent again, and to which server.

use super::timeouts::nobody;
use super::*;
use crate::upstream::BalancePolicy;

/// `first` gets every first attempt; `second` gets the retries.
fn pair(first: SocketAddr, second: SocketAddr) -> Bed {
    let last = ServerSpec {
        backup: true,
        ..place(second)
    };
    let mut bed = Bed::to(&[]);
    bed.upstream = Upstream::new("app", vec![place(first), last], &ServerRegistry::default());
    bed
}

/// Closes every connection after reading a head.
async fn closing() -> Origin {
    Origin::playing(|_, mut stream| async move {
        head(&mut stream).await;
    })
    .await
}

const BUSY: &str = "HTTP/1.1 503 Busy\r\nretry-after: 30\r\ncontent-length: 4\r\n\r\nbusy";

#[tokio::test(flavor = "local")]
async fn an_unsent_request_is_retried_with_any_method() {
    let origin = Origin::answering(OK).await;
    let bed = pair(nobody().await, origin.address);
    assert_eq!(bed.get().await.unwrap().0, 200);
    let answer = bed.send(post(Body::Empty)).await.unwrap();
    assert_eq!(answer.server.endpoint, origin.address.into());
    assert_eq!(bed.upstream.figures()[0].1.connect_error, 2);
    assert_eq!(bed.upstream.figures()[0].1.retried, 2);
    assert_eq!(bed.upstream.figures()[1].1.ok, 2);
    assert_eq!(bed.server(0).in_flight() + bed.server(1).in_flight(), 0);
}

#[tokio::test(flavor = "local")]
async fn a_body_that_was_not_started_is_sent_whole_to_another_server() {
    let origin = Origin::playing(|_, mut stream| async move {
        let request = until(&mut stream, "0\r\n\r\n").await;
        assert!(
            request.ends_with("5\r\nfirst\r\n4\r\nlast\r\n0\r\n\r\n"),
            "{request}"
        );
        stream.write_all(OK.as_bytes()).await.unwrap();
    })
    .await;
    let bed = pair(nobody().await, origin.address);
    let answer = bed.send(post(chunks(&["first", "last"]))).await.unwrap();
    assert_eq!(text(answer).await, "ok");
}

#[tokio::test(flavor = "local")]
async fn only_idempotent_requests_are_sent_twice() {
    let (first, second) = (closing().await, Origin::answering(OK).await);
    let bed = pair(first.address, second.address);
    assert_eq!(bed.get().await.unwrap().0, 200);
    assert_eq!(second.accepted.get(), 1);
    let put = |body| {
        Request::put("/")
            .header("host", "a.test")
            .body(body)
            .unwrap()
    };
    for request in [
        post(Body::Empty),
        post(chunks(&["body"])),
        put(chunks(&["body"])),
        put(Body::Whole(Bytes::from_static(b"body"))),
    ] {
        // Its consecutive failures would eject the server.
        bed.server(0).health.succeeded(true);
        let method = request.method().clone();
        assert_eq!(
            bed.send(request).await.err().unwrap().reason(),
            "closed",
            "{method}"
        );
    }
    bed.server(0).health.succeeded(true);
    assert!(bed.send(put(Body::Empty)).await.is_ok());
    assert_eq!(first.accepted.get(), 6);
}

#[tokio::test(flavor = "local")]
async fn nothing_is_retried_after_the_first_response_byte() {
    for said in [
        "H",
        "HTTP/1.1 200 OK\r\n",
        "nonsense\r\n\r\n",
        "HTTP/1.1 100 Go\r\n\r\n",
    ] {
        let first = Origin::playing(move |_, mut stream| async move {
            head(&mut stream).await;
            stream.write_all(said.as_bytes()).await.unwrap();
        })
        .await;
        let second = Origin::answering(OK).await;
        let bed = pair(first.address, second.address);
        assert!(bed.get().await.is_err(), "{said}");
        assert_eq!(second.accepted.get(), 0, "{said}");
    }
}

#[tokio::test(flavor = "local")]
async fn a_single_server_is_retried_on_a_new_connection() {
    let origin = Origin::closing_after(&["", OK]).await;
    let bed = Bed::to(&[origin.address]);
    assert_eq!(bed.get().await.unwrap().0, 200);
    assert_eq!(origin.accepted.get(), 2);
    let figures = &bed.upstream.figures()[0].1;
    assert_eq!((figures.ok, figures.error, figures.retried), (1, 1, 1));
}

#[tokio::test(flavor = "local")]
async fn a_response_timeout_is_retried_only_on_another_server() {
    let silent = || Origin::playing(|_, mut stream| async move { drop(rest(&mut stream).await) });
    let (first, second) = (silent().await, Origin::answering(OK).await);
    let mut bed = pair(first.address, second.address);
    bed.upstream.response_timeout = Duration::from_millis(50);
    assert_eq!(bed.get().await.unwrap().0, 200);
    assert_eq!(bed.upstream.figures()[0].1.timeout, 1);
    let mut alone = Bed::to(&[silent().await.address]);
    alone.upstream.response_timeout = Duration::from_millis(50);
    assert_eq!(alone.reason().await, "response_timeout");
    assert_eq!(alone.upstream.figures()[0].1.retried, 0);
}

#[tokio::test(flavor = "local")]
async fn zero_retries_means_no_retry() {
    let origin = Origin::answering(OK).await;
    let mut bed = pair(nobody().await, origin.address);
    bed.upstream.retries = 0;
    assert_eq!(bed.reason().await, "connect_refused");
    assert_eq!(origin.accepted.get(), 0);
}

#[tokio::test(flavor = "local")]
async fn retries_stay_within_the_retry_budget() {
    let closing = [closing().await, closing().await, closing().await];
    let mut bed = Bed::to(&closing.each_ref().map(|origin| origin.address));
    bed.upstream.balance = BalancePolicy::RoundRobin;
    for _ in 0..200 {
        assert_eq!(bed.reason().await, "closed");
    }
    let sum = |of: fn(&super::super::ServerFigures) -> u64| -> u64 {
        bed.upstream
            .figures()
            .iter()
            .map(|(_, figures)| of(figures))
            .sum()
    };
    // One in five, plus the ten of the initial budget.
    assert_eq!(sum(|figures| figures.retried), 200 / 5 + 10);
    assert_eq!(sum(|figures| figures.error), 200 + 200 / 5 + 10);
    bed.pool.prune();
    bed.reason().await;
    assert_eq!(sum(|figures| figures.retried), 200 / 5 + 10 + 1);
}

#[tokio::test(flavor = "local")]
async fn a_server_that_sends_retry_after_is_avoided_while_others_exist() {
    let (busy, other) = (Origin::answering(BUSY).await, Origin::answering(OK).await);
    let clock = crate::clock::ManualClock::at(crate::clock::Timestamp::from_secs(1_000));
    let mut bed = pair(busy.address, other.address);
    bed.pool = Pool::new(Clock::Manual(clock.clone()));
    let heads = || bed.upstream.figures()[0].1.ok;
    assert_eq!(bed.get().await.unwrap(), (200, "ok".to_owned()));
    for _ in 0..5 {
        let answer = bed.send(post(Body::Empty)).await.unwrap();
        assert_eq!(text(answer).await, "ok");
    }
    assert_eq!(heads(), 1);
    clock.advance(Duration::from_secs(31));
    let answer = bed.send(post(Body::Empty)).await.unwrap();
    assert_eq!(answer.response.status(), 503);
    assert_eq!(answer.response.headers()["retry-after"], "30");
    assert_eq!(text(answer).await, "busy");
    assert_eq!(heads(), 2);
}

#[tokio::test(flavor = "local")]
async fn a_single_server_is_used_despite_retry_after() {
    let origin = Origin::answering(BUSY).await;
    let bed = Bed::to(&[origin.address]);
    for _ in 0..3 {
        assert_eq!(bed.get().await.unwrap(), (503, "busy".to_owned()));
    }
    assert_eq!(
        (origin.accepted.get(), bed.upstream.figures()[0].1.ok),
        (1, 3)
    );
}

#[tokio::test(flavor = "local")]
async fn a_503_is_delivered_if_the_retry_fails_too() {
    let (busy, other) = (Origin::answering(BUSY).await, closing().await);
    let bed = pair(busy.address, other.address);
    assert_eq!(bed.get().await.unwrap(), (503, "busy".to_owned()));
    assert_eq!(other.accepted.get(), 1);
}

#[tokio::test(flavor = "local")]
async fn other_error_responses_go_to_the_client() {
    let plain = "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n";
    let vague = "HTTP/1.1 503 No\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n";
    let wrong = "HTTP/1.1 500 No\r\nretry-after: 9\r\ncontent-length: 0\r\n\r\n";
    for (said, retried) in [(plain, 0), (vague, 1), (wrong, 0)] {
        let (first, second) = (Origin::answering(said).await, Origin::answering(OK).await);
        let bed = pair(first.address, second.address);
        let status = bed.get().await.unwrap().0;
        assert_eq!(status == 200, retried == 1, "{said}");
        assert_eq!(second.accepted.get(), retried, "{said}");
        assert!(bed.server(0).trouble().is_none(), "{said}");
    }
}
