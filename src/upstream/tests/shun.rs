//! Ineligible servers: consecutive failures, an open circuit, failed health checks.

use super::timeouts::nobody;
use super::*;
use crate::clock::{ManualClock, Timestamp};
use crate::upstream::{BalancePolicy, BreakerPolicy, HealthPolicy};

/// An origin server that closes connections while it is `broken` and responds otherwise. It counts its
/// requests and reads bodies to their end.
struct Moody {
    origin: Origin,
    broken: Rc<Cell<bool>>,
    asked: Rc<Cell<usize>>,
}

impl Moody {
    async fn start() -> Self {
        let (broken, asked) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        let (own, count) = (Rc::clone(&broken), Rc::clone(&asked));
        let origin = Origin::playing(move |_, mut stream| {
            let (broken, asked) = (Rc::clone(&own), Rc::clone(&count));
            async move {
                loop {
                    let request = head(&mut stream).await;
                    if request.is_empty() {
                        return;
                    }
                    asked.set(asked.get() + 1);
                    if request.starts_with("POST") {
                        return drop(rest(&mut stream).await);
                    }
                    if broken.get() {
                        return;
                    }
                    stream.write_all(OK.as_bytes()).await.unwrap();
                }
            }
        })
        .await;
        Self {
            origin,
            broken,
            asked,
        }
    }
}

/// Round robin over these servers without retries, on a manual clock.
fn bed(origins: &[&Moody]) -> (Bed, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_secs(1_000));
    let addresses: Vec<_> = origins.iter().map(|moody| moody.origin.address).collect();
    let mut bed = Bed::with_clock(&addresses, Clock::Manual(clock.clone()));
    bed.upstream.balance = BalancePolicy::RoundRobin;
    bed.upstream.retries = 0;
    bed.upstream.max_idle_per_server = 0;
    (bed, clock)
}

async fn many(bed: &Bed, n: usize) -> usize {
    let mut failed = 0;
    for _ in 0..n {
        failed += usize::from(bed.get().await.is_err());
    }
    failed
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "local")]
async fn consecutive_failures_eject_a_server_for_increasing_times() {
    let (bad, good) = (Moody::start().await, Moody::start().await);
    let (bed, clock) = bed(&[&bad, &good]);
    bad.broken.set(true);
    assert_eq!(many(&bed, 20).await, 3);
    assert_eq!(bed.server(0).trouble(), Some("failing"));
    for seconds in [1, 2, 4, 8, 16, 30, 30] {
        clock.advance(seconds * SECOND - Duration::from_millis(1));
        assert_eq!(many(&bed, 10).await, 0, "before {seconds} s");
        clock.advance(Duration::from_millis(1));
        assert_eq!(many(&bed, 10).await, 1, "after {seconds} s");
    }
    bad.broken.set(false);
    clock.advance(30 * SECOND);
    let asked = bad.asked.get();
    assert_eq!(many(&bed, 20).await, 0);
    assert!(bad.asked.get() >= asked + 9, "it is one of two again");
    assert_eq!(bed.server(0).trouble(), None);
}

#[tokio::test(flavor = "local")]
async fn a_success_between_failures_resets_their_count() {
    let origin = Moody::start().await;
    let (bed, _clock) = bed(&[&origin, &Moody::start().await]);
    for broken in [true, true, false, true, true, false, true, true] {
        origin.broken.set(broken);
        assert_eq!(many(&bed, 2).await, usize::from(broken));
    }
    assert_eq!(bed.server(0).trouble(), None);
}

#[tokio::test(flavor = "local")]
async fn at_most_half_of_the_servers_are_ejected() {
    let four = [
        Moody::start().await,
        Moody::start().await,
        Moody::start().await,
        Moody::start().await,
    ];
    let (bed, _clock) = bed(&four.each_ref());
    four.iter().for_each(|origin| origin.broken.set(true));
    assert_eq!(many(&bed, 60).await, 60);
    let out = bed.upstream.servers();
    let out = out.iter().filter(|server| server.trouble().is_some());
    assert_eq!(out.count(), 2);
    let alone = Moody::start().await;
    alone.broken.set(true);
    let (bed, _clock) = super::shun::bed(&[&alone]);
    assert_eq!(many(&bed, 10).await, 10);
    assert_eq!((alone.asked.get(), bed.server(0).trouble()), (10, None));
}

#[tokio::test(flavor = "local")]
async fn an_unreachable_server_is_ejected_too() {
    let good = Origin::answering(OK).await;
    let mut bed = Bed::to(&[nobody().await, good.address]);
    bed.upstream.balance = BalancePolicy::RoundRobin;
    bed.upstream.retries = 0;
    assert_eq!(many(&bed, 40).await, 3);
    assert_eq!(bed.upstream.figures()[0].1.connect_error, 3);
    assert_eq!(bed.upstream.figures()[0].1.healthy, 0);
    assert_eq!(bed.upstream.figures()[1].1.healthy, 1);
    let [bad, good] = &bed.upstream.statuses()[..] else {
        panic!("two servers are configured");
    };
    let reason = "failing: the server refuses connections";
    assert_eq!(bad.trouble.as_deref(), Some(reason));
    assert_eq!(good.trouble, None);
    bed.server(0).note_health(Timestamp::from_secs(7));
    assert_eq!(
        bed.upstream.statuses()[0].since,
        Some(Timestamp::from_secs(7))
    );
}

fn breaker(bed: &mut Bed) {
    bed.upstream.breaker = Some(BreakerPolicy {
        failures: 4,
        within: 10 * SECOND,
        open_for: 5 * SECOND,
    });
}

#[tokio::test(flavor = "local")]
async fn an_open_circuit_is_a_503_with_retry_after() {
    let origin = Moody::start().await;
    let (mut bed, clock) = bed(&[&origin]);
    breaker(&mut bed);
    origin.broken.set(true);
    assert_eq!(many(&bed, 4).await, 4);
    clock.advance(2 * SECOND);
    let error = bed.send(get("/")).await.err().unwrap();
    assert_eq!(
        (error.reason(), error.status().as_u16()),
        ("no_server", 503)
    );
    assert_eq!(error.retry_after(), Some(3 * SECOND));
    assert_eq!(
        (origin.asked.get(), bed.server(0).trouble()),
        (4, Some("circuit_open"))
    );
    // One trial request is sent, and its failure opens the circuit again.
    clock.advance(3 * SECOND);
    assert_eq!(many(&bed, 10).await, 10);
    assert_eq!(origin.asked.get(), 5);
    clock.advance(5 * SECOND);
    origin.broken.set(false);
    assert_eq!(many(&bed, 10).await, 0);
    assert_eq!((origin.asked.get(), bed.server(0).trouble()), (15, None));
}

#[tokio::test(flavor = "local")]
async fn old_failures_do_not_open_a_circuit() {
    let origin = Moody::start().await;
    let (mut bed, clock) = bed(&[&origin]);
    breaker(&mut bed);
    for _ in 0..20 {
        origin.broken.set(true);
        assert_eq!(many(&bed, 1).await, 1);
        origin.broken.set(false);
        assert_eq!(many(&bed, 1).await, 0);
        clock.advance(4 * SECOND);
    }
    assert_eq!(bed.server(0).trouble(), None);
}

#[tokio::test(flavor = "local")]
async fn a_response_to_an_older_request_does_not_close_a_circuit() {
    let gate = Rc::new(tokio::sync::Semaphore::new(0));
    let held = Rc::clone(&gate);
    let origin = Origin::playing(move |number, mut stream| {
        let gate = Rc::clone(&held);
        async move {
            head(&mut stream).await;
            if number == 0 {
                gate.acquire().await.unwrap().forget();
                stream.write_all(OK.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let mut bed = Bed::to(&[origin.address]);
    breaker(&mut bed);
    bed.upstream.retries = 0;
    let bed = Rc::new(bed);
    let older = tokio::task::spawn_local({
        let bed = Rc::clone(&bed);
        async move { bed.get().await }
    });
    while origin.accepted.get() == 0 {
        settle().await;
    }
    assert_eq!(many(&bed, 4).await, 4);
    gate.add_permits(1);
    assert!(older.await.unwrap().is_ok());
    assert_eq!(bed.server(0).trouble(), Some("circuit_open"));
    assert_eq!(bed.reason().await, "no_server");
}

#[tokio::test(flavor = "local")]
async fn a_client_disconnect_does_not_keep_a_circuit_half_open() {
    let origin = Moody::start().await;
    let (mut bed, clock) = bed(&[&origin]);
    breaker(&mut bed);
    origin.broken.set(true);
    assert_eq!(many(&bed, 4).await, 4);
    clock.advance(5 * SECOND);
    let asked = origin.asked.get();
    for _ in 0..3 {
        // Started and dropped: with a timeout it might end.
        tokio::select! {
            biased;
            _ = bed.send(get("/")) => unreachable!("it ended at once"),
            () = std::future::ready(()) => {}
        }
        abort(&bed, &[&origin]).await;
    }
    assert_eq!(bed.server(0).trouble(), Some("circuit_open"));
    // The next request is a trial immediately, and its failure counts.
    assert_eq!(
        (bed.reason().await, bed.reason().await),
        ("closed", "no_server")
    );
    assert_eq!(origin.asked.get(), asked + 4);
    clock.advance(5 * SECOND);
    abort(&bed, &[&origin]).await;
    origin.broken.set(false);
    assert_eq!((many(&bed, 2).await, bed.server(0).trouble()), (0, None));
}

#[tokio::test(flavor = "local")]
async fn a_client_disconnect_does_not_keep_a_server_ejected() {
    let (bad, good) = (Moody::start().await, Moody::start().await);
    let (bed, clock) = bed(&[&bad, &good]);
    bad.broken.set(true);
    assert_eq!(many(&bed, 20).await, 3);
    clock.advance(SECOND);
    bad.broken.set(false);
    for _ in 0..4 {
        abort(&bed, &[&bad, &good]).await;
    }
    assert_eq!(bed.server(0).trouble(), Some("failing"));
    assert_eq!((many(&bed, 2).await, bed.server(0).trouble()), (0, None));
}

/// A request with a client that aborts its body once the origin server has the head.
async fn abort(bed: &Bed, origins: &[&Moody]) {
    let asked = || origins.iter().map(|moody| moody.asked.get()).sum::<usize>();
    let before = asked();
    let (sender, body) = channel();
    let sent = bed.send(post(body));
    let left = async {
        while asked() == before {
            settle().await;
        }
        let broken = std::io::ErrorKind::ConnectionReset.into();
        sender.send(Err(broken)).await.unwrap();
    };
    let (answer, ()) = tokio::join!(sent, left);
    assert_eq!(answer.err().unwrap().reason(), "request_body");
}

#[tokio::test(flavor = "local")]
async fn a_clock_set_back_does_not_eject_a_server_forever() {
    let origin = Moody::start().await;
    let (mut bed, clock) = bed(&[&origin]);
    breaker(&mut bed);
    origin.broken.set(true);
    assert_eq!(many(&bed, 4).await, 4);
    clock.set(Timestamp::from_secs(10));
    origin.broken.set(false);
    assert_eq!(many(&bed, 4).await, 0);
}

fn health(bed: &mut Bed) {
    bed.upstream.health = Some(HealthPolicy {
        interval: 7 * SECOND,
        timeout: Duration::from_millis(200),
        ..HealthPolicy::of_path("/well?")
    });
}

/// Records the first line and the host of each request, and responds with `status`.
async fn patient(status: &Rc<Cell<u16>>) -> (Origin, Rc<Cell<usize>>) {
    let (status, asked) = (Rc::clone(status), Rc::new(Cell::new(0)));
    let count = Rc::clone(&asked);
    let origin = Origin::playing(move |_, mut stream| {
        let (status, asked) = (Rc::clone(&status), Rc::clone(&count));
        async move {
            let own = stream.local_addr().unwrap();
            let request = head(&mut stream).await;
            assert!(request.starts_with("GET /well? HTTP/1.1\r\n"), "{request}");
            assert!(request.contains(&format!("host: {own}\r\n")), "{request}");
            asked.set(asked.get() + 1);
            let answer = format!(
                "HTTP/1.1 {} Said\r\ncontent-length: 0\r\n\r\n",
                status.get()
            );
            match status.get() {
                0 => drop(rest(&mut stream).await),
                _ => stream.write_all(answer.as_bytes()).await.unwrap(),
            }
        }
    })
    .await;
    (origin, asked)
}

#[tokio::test(flavor = "local")]
async fn health_checks_remove_and_restore_a_server() {
    let status = Rc::new(Cell::new(200));
    let (origin, asked) = patient(&status).await;
    let mut bed = Bed::to(&[origin.address]);
    health(&mut bed);
    let check = async |said: u16| {
        status.set(said);
        let checked = bed.pool.check(&bed.upstream, &bed.server(0)).await;
        (checked.changed, checked.why)
    };
    let nothing = || (None, String::new());
    assert_eq!(check(399).await, nothing());
    assert_eq!(check(500).await, (None, "status 500".to_owned()));
    assert_eq!(check(400).await, (None, "status 400".to_owned()));
    assert_eq!(check(204).await, nothing());
    assert_eq!(check(503).await.0, None);
    assert_eq!(check(404).await.0, None);
    // No response.
    assert_eq!(check(0).await, (Some(false), "timeout".to_owned()));
    let error = bed.send(get("/")).await.err().unwrap();
    assert_eq!(
        (error.reason(), error.status().as_u16()),
        ("no_server", 503)
    );
    assert_eq!(error.retry_after(), Some(7 * SECOND));
    assert_eq!(bed.upstream.figures()[0].1.healthy, 0);
    assert_eq!(check(302).await, nothing());
    assert_eq!(check(500).await.0, None);
    assert_eq!(check(200).await, nothing());
    assert_eq!(check(200).await.0, Some(true));
    assert_eq!(bed.upstream.figures()[0].1.healthy, 1);
    assert_eq!(
        (asked.get(), bed.server(0).in_flight(), bed.pool.idle()),
        (11, 0, 0)
    );
}

#[tokio::test(flavor = "local")]
async fn an_unreachable_server_fails_its_health_checks() {
    let mut bed = Bed::to(&[nobody().await]);
    health(&mut bed);
    for changed in [None, None, Some(false), None] {
        let checked = bed.pool.check(&bed.upstream, &bed.server(0)).await;
        assert_eq!(
            (checked.changed, checked.why.as_str()),
            (changed, "connect_refused")
        );
        let error = "the server refuses connections: ";
        assert!(checked.error.starts_with(error), "{}", checked.error);
    }
    // Without health checks, nothing can mark the server as healthy again.
    bed.upstream.health = None;
    assert_eq!(bed.reason().await, "connect_refused");
}
