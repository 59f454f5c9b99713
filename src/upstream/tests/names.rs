//! Servers by host name: which join and which leave.

use super::*;
use crate::upstream::HostPort;

fn named(host: &str, port: u16) -> (HostPort, ServerSpec) {
    let name = HostPort {
        host: host.to_owned(),
        port,
    };
    let place = ServerSpec {
        at: ServerLocation::Name(name.clone()),
        weight: 1,
        backup: false,
    };
    (name, place)
}

#[test]
fn a_name_resolves_to_all_its_addresses_in_a_stable_order() {
    let addresses = named("localhost", 80).0.resolve().unwrap();
    assert!(
        addresses
            .iter()
            .all(|a| a.ip().is_loopback() && a.port() == 80)
    );
    assert!(addresses.is_sorted() && !addresses.is_empty());
    assert_eq!(named("127.0.0.1", 80).0.resolve().unwrap().len(), 1);
}

#[test]
fn a_name_without_addresses_is_an_error() {
    assert!(named("no such host", 80).0.resolve().is_err());
}

#[tokio::test(flavor = "local")]
async fn new_addresses_join_and_old_ones_drain() {
    let gate = Rc::new(tokio::sync::Semaphore::new(0));
    let (old, new) = (
        Origin::holding_back(&gate).await,
        Origin::answering(OK).await,
    );
    let registry = ServerRegistry::default();
    let (name, place) = named("app.test", 1);
    let mut bed = Bed::to(&[]);
    bed.upstream = Upstream::new("app", vec![place.clone()], &registry);
    let error = bed.send(get("/")).await.err().unwrap();
    assert_eq!(
        (error.reason(), error.status().as_u16()),
        ("no_server", 503)
    );
    assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));

    assert!(registry.found(&name, vec![old.address]));
    let change = bed.upstream.follow(&registry);
    assert_eq!((change.joined.len(), change.left.len()), (1, 0));
    let under_way = bed.send(get("/")).await.unwrap();
    assert_eq!(&**under_way.server.label(), "app.test:1");
    assert_eq!(bed.upstream.figures()[0].1.in_flight, 1);

    assert!(registry.found(&name, vec![new.address]));
    let change = bed.upstream.follow(&registry);
    assert_eq!((change.joined.len(), change.left.len()), (1, 1));
    for _ in 0..3 {
        assert_eq!(bed.get().await.unwrap(), (200, "ok".to_owned()));
    }
    assert_eq!((old.accepted.get(), new.accepted.get()), (1, 1));
    gate.add_permits(1);
    assert_eq!(text(under_way).await, "ok");
    bed.pool.retain(&bed.upstream.servers());
    assert_eq!(bed.pool.idle(), 1);
    // The counters belong to the name, whatever its addresses.
    assert_eq!(bed.upstream.figures()[0].1.ok, 4);
    assert_eq!(bed.upstream.figures()[0].0.as_ref(), "app.test:1");

    // A reload starts with the last known addresses of the name.
    let reloaded = Upstream::new("app", vec![place], &registry);
    assert!(Arc::ptr_eq(&reloaded.servers()[0], &bed.server(0)));
}

#[test]
fn a_server_that_stays_keeps_its_state() {
    let registry = ServerRegistry::default();
    let (name, place) = named("app.test", 1);
    let address = |n| SocketAddr::from(([192, 0, 2, n], 1));
    let upstream = Upstream::new("app", vec![place], &registry);
    registry.found(&name, vec![address(1), address(2)]);
    upstream.follow(&registry);
    let before = upstream.servers();
    registry.found(&name, vec![address(2), address(3)]);
    let change = upstream.follow(&registry);
    assert!(Arc::ptr_eq(&before[1], &upstream.servers()[0]));
    assert!(Arc::ptr_eq(&change.left[0], &before[0]));
    assert_eq!(change.joined[0].endpoint, address(3).into());
    assert!(!registry.found(&name, vec![address(2), address(3)]));
    // A failed lookup keeps the known addresses.
    assert!(!registry.found(&name, Vec::new()));
    assert_eq!(registry.addresses(&name).len(), 2);
    registry.keep_names(&[]);
    assert_eq!(registry.addresses(&name).len(), 0);
}
