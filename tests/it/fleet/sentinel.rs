//! A master with a replica and a Sentinel: the gateway follows a failover.

use crate::harness::{Folder, wait_until};

use super::fleet_gateway::{FleetConfig, rule, unlimited};
use super::server::{TestServer, free_port};

/// Starts a Sentinel that watches the server on this port.
fn start_sentinel(master: u16, folder: &Folder) -> TestServer {
    let text = format!(
        "sentinel monitor fleet 127.0.0.1 {master} 1\n\
         sentinel down-after-milliseconds fleet 1000\n\
         sentinel failover-timeout fleet 3000\n"
    );
    let path = folder.write("sentinel.conf", text);
    let program = folder.write(
        "sentinel",
        format!(
            "#!/bin/sh\nexec redis-server {} --sentinel \"$1\" \"$2\"\n",
            path.display()
        ),
    );
    make_executable(&program);
    (0..10)
        .find_map(|_| TestServer::try_start(program.to_str().unwrap(), free_port(), &[]))
        .unwrap()
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Whether the server has this role. A server that changes its role closes its connections.
fn has_role(server: &TestServer, role: &str) -> bool {
    let text = server.try_command::<String>("INFO replication");
    text.is_ok_and(|text| text.contains(&format!("role:{role}")))
}

#[test]
fn a_gateway_follows_a_failover_of_sentinel() {
    let master = TestServer::start(&[]);
    let replica_of = format!("127.0.0.1 {}", master.port);
    let replica = TestServer::start(&["--replicaof", &replica_of]);
    let folder = Folder::new();
    let sentinel = start_sentinel(master.port, &folder);
    wait_until("the replica follows the master", || {
        let text: String = replica.command("INFO replication");
        text.contains("master_link_status:up")
    });
    let rules = unlimited() + &rule("limited", "limit = 10\nperiod = \"24h\"");
    let url = format!("redis-sentinel://127.0.0.1:{}/fleet", sentinel.port);
    let gateway = FleetConfig::new(&url, &rules)
        .store("timeout = \"300ms\"")
        .start();
    assert!(!gateway.is_down());
    let before = gateway.open_resources();
    assert_eq!(gateway.statuses("/limited", 4), [200; 4]);
    wait_until("the Sentinel knows the replica", || {
        let list: String = sentinel.command("INFO sentinel");
        list.contains("slaves=1")
    });
    wait_until("the Sentinel starts a failover", || {
        sentinel
            .try_command::<()>("SENTINEL FAILOVER fleet")
            .is_ok()
    });
    wait_until("the replica is the master", || {
        gateway.passes("/many");
        has_role(&replica, "master") && has_role(&master, "slave")
    });
    gateway.passes("/many");
    gateway.recovers("/many");
    wait_until("requests are counted by the new master", || {
        gateway.passes("/many");
        let keys = replica.try_command::<usize>("DBSIZE");
        keys.is_ok_and(|keys| keys > 0) && !gateway.is_down()
    });
    // Replication is asynchronous, so the new master may lack the newest counts. A core whose connection has just been
    // replaced can decide some requests with its own counters, which admit or refuse them: at most five are admitted.
    let statuses = gateway.statuses("/limited", 24);
    assert!(
        statuses.iter().all(|status| matches!(status, 200 | 429)),
        "{statuses:?}"
    );
    assert_eq!(statuses.last(), Some(&429));
    let admitted = statuses.iter().filter(|status| **status == 200);
    assert!(admitted.count() <= 10 + 5, "{statuses:?}");
    gateway.leaks_nothing(before);
}

#[test]
fn a_sentinel_that_hangs_does_not_keep_the_gateway_from_the_master() {
    let master = TestServer::start(&[]);
    let folders = [Folder::new(), Folder::new(), Folder::new()];
    let sentinels = folders
        .each_ref()
        .map(|folder| start_sentinel(master.port, folder));
    let [first, second, third] = &sentinels;
    let ports = sentinels.each_ref().map(|sentinel| sentinel.port);
    let hosts = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    first.signal("STOP");
    second.signal("STOP");
    let url = format!("redis-sentinel://{hosts}/fleet");
    let gateway = FleetConfig::new(&url, &unlimited()).start();
    gateway.recovers("/many");
    third.signal("KILL");
    second.signal("CONT");
    master.command::<usize>("CLIENT KILL TYPE normal");
    gateway.goes_down("/many");
    gateway.recovers("/many");
}
