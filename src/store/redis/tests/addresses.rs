//! URLs of stores.

use std::path::PathBuf;

use crate::store::redis::address::{AddressError, RedisAddress, RedisNode, RedisTarget};

fn node(host: &str, port: u16) -> RedisNode {
    let host = host.to_owned();
    RedisNode { host, port }
}

fn target(url: &str) -> (RedisTarget, bool) {
    let address = RedisAddress::parse(url).unwrap();
    (address.target, address.tls)
}

#[test]
fn a_url_names_a_server_a_socket_a_cluster_or_a_sentinel() {
    let server = |host, port, database| RedisTarget::Server {
        node: node(host, port),
        database,
    };
    for (url, expected, tls) in [
        ("redis://a", server("a", 6379, 0), false),
        (
            "redis://127.0.0.1:7000/3",
            server("127.0.0.1", 7000, 3),
            false,
        ),
        ("rediss://[::1]:6380/", server("::1", 6380, 0), true),
        (
            "redis://[2001:db8::1]",
            server("2001:db8::1", 6379, 0),
            false,
        ),
    ] {
        assert_eq!(target(url), (expected, tls), "{url}");
    }
    let socket = RedisTarget::Socket {
        path: PathBuf::from("/run/redis.sock"),
        database: 2,
    };
    assert_eq!(target("unix:///run/redis.sock?db=2"), (socket, false));
    let cluster = RedisTarget::Cluster(vec![node("a", 6379), node("b", 7001)]);
    assert_eq!(target("redis-cluster://a,b:7001"), (cluster.clone(), false));
    assert_eq!(target("rediss-cluster://a,b:7001"), (cluster, true));
    let sentinel = RedisTarget::Sentinel {
        sentinels: vec![node("s1", 26379), node("s2", 5000)],
        master: "main".to_owned(),
        database: 1,
    };
    assert_eq!(
        target("redis-sentinel://s1,s2:5000/main/1"),
        (sentinel, false)
    );
}

#[test]
fn a_wrong_url_is_refused_with_its_cause() {
    for (url, cause) in [
        ("", AddressError::Scheme),
        ("127.0.0.1:6379", AddressError::Scheme),
        ("http://a", AddressError::Scheme),
        ("redis-pool://a", AddressError::Scheme),
        ("redis://user:secret@a", AddressError::Credentials),
        ("redis://", AddressError::Host),
        ("redis://a b", AddressError::Host),
        ("redis://[::1", AddressError::Host),
        ("redis://[::1]x", AddressError::Host),
        ("redis-cluster://a,,b", AddressError::Host),
        ("redis://a:0", AddressError::Port),
        ("redis://a:65536", AddressError::Port),
        ("redis://a:", AddressError::Port),
        ("redis://a/main", AddressError::Database),
        ("redis-cluster://a/1", AddressError::ClusterDatabase),
        ("redis-sentinel://a", AddressError::Master),
        ("unix://run/redis.sock", AddressError::SocketPath),
        ("unix:///x?foo=1", AddressError::SocketOption),
        ("unix:///x?foo=1?db=2", AddressError::SocketOption),
    ] {
        assert_eq!(RedisAddress::parse(url), Err(cause), "{url}");
        assert!(!cause.help().is_empty());
    }
}

#[test]
fn an_address_in_a_log_has_the_servers() {
    for (url, shown) in [
        ("redis://a/3", "a:6379"),
        ("rediss://[::1]", "[::1]:6379"),
        ("redis-cluster://a,b:1", "cluster a:6379,b:1"),
        ("redis-sentinel://s/main", "main of sentinel s:26379"),
        ("unix:///run/r.sock", "/run/r.sock"),
    ] {
        assert_eq!(RedisAddress::parse(url).unwrap().to_string(), shown);
    }
}
