//! A Cluster of real servers.

use std::process::Command;

use super::server::TestServer;
use crate::harness::wait_until;

/// The options of every server.
pub const CLUSTER_OPTIONS: &[&str] =
    &["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];

/// The other servers serve their slots when one is down.
pub const NO_FULL_COVERAGE: [&str; 2] = ["--cluster-require-full-coverage", "no"];

/// Servers, of which the first three began as masters.
pub struct TestCluster {
    /// The servers, in the order of their start.
    pub servers: Vec<TestServer>,
}

// === impl TestCluster ===

impl TestCluster {
    /// Starts three masters and three replicas.
    pub fn start() -> Self {
        Self::start_with(6, "1", &[])
    }

    /// Starts three masters without replicas.
    pub fn start_without_replicas() -> Self {
        Self::start_with(3, "0", &NO_FULL_COVERAGE)
    }

    /// Starts a Cluster and waits until all slots are served.
    fn start_with(servers: usize, replicas: &str, options: &[&str]) -> Self {
        let options = [CLUSTER_OPTIONS, options].concat();
        let servers: Vec<_> = (0..servers).map(|_| TestServer::start(&options)).collect();
        let cluster = Self { servers };
        let nodes: Vec<_> = cluster.nodes();
        let create = ["create"]
            .into_iter()
            .chain(nodes.iter().map(String::as_str));
        let options = ["--cluster-replicas", replicas, "--cluster-yes"];
        cli(&create.chain(options).collect::<Vec<_>>());
        wait_until("the Cluster is up", || {
            let is_ok = |server: &TestServer| {
                let info: String = server.command("CLUSTER INFO");
                info.contains("cluster_state:ok")
            };
            cluster.servers.iter().all(is_ok)
        });
        wait_until("the replicas follow", || {
            let is_following = |server: &TestServer| {
                let text: String = server.command("INFO replication");
                text.contains("role:master") || text.contains("master_link_status:up")
            };
            cluster.servers.iter().all(is_following)
        });
        cluster
    }

    pub fn nodes(&self) -> Vec<String> {
        let servers = self.servers.iter();
        servers.map(|s| format!("127.0.0.1:{}", s.port)).collect()
    }

    pub fn url(&self) -> String {
        format!("redis-cluster://{}", self.nodes()[..3].join(","))
    }

    /// The server that is a master, or a replica, at this position.
    pub fn with_role(&self, role: &str, position: usize) -> &TestServer {
        let role = format!("role:{role}");
        let has_role = |server: &&TestServer| {
            let text = server.try_command::<String>("INFO replication");
            text.is_ok_and(|text| text.contains(&role))
        };
        self.servers.iter().filter(has_role).nth(position).unwrap()
    }

    /// Waits until every slot has a master that runs.
    pub fn is_healed(&self, dead: &[u32]) {
        wait_until("the Cluster is healed", || {
            let running = self.servers.iter().filter(|s| !dead.contains(&s.pid));
            running
                .map(|s| s.try_command::<String>("CLUSTER INFO"))
                .all(|info| info.is_ok_and(|info| info.contains("cluster_state:ok")))
        });
    }

    /// Waits until every server knows that all others run.
    pub fn is_complete(&self) {
        wait_until("all servers run", || {
            let nodes = self
                .servers
                .iter()
                .map(|s| s.command::<String>("CLUSTER NODES"));
            nodes.into_iter().all(|nodes| !nodes.contains("fail"))
        });
    }

    /// Moves slots from the first master to the second.
    pub fn reshard(&self, slots: usize) {
        let (from, to) = (self.with_role("master", 0), self.with_role("master", 1));
        let [from, to]: [String; 2] = [from, to].map(|server| server.command("CLUSTER MYID"));
        let (node, slots) = (&self.nodes()[0], slots.to_string());
        cli(&[
            "reshard",
            node,
            "--cluster-from",
            &from,
            "--cluster-to",
            &to,
            "--cluster-slots",
            &slots,
            "--cluster-yes",
        ]);
    }
}

fn cli(arguments: &[&str]) {
    let output = Command::new("redis-cli")
        .arg("--cluster")
        .args(arguments)
        .output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}
