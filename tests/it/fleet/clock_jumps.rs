//! The clock of the server is set forward and back while gateways count.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::{fs, path::Path};

use super::fleet_gateway::{FleetConfig, FleetGateway, rule, unlimited};
use super::server::TestServer;
use crate::harness::{Folder, wait_until};

const HOUR: i64 = 60 * 60;

/// A server whose clock a test can set.
struct ShiftedServer {
    server: TestServer,
    folder: Folder,
}

// === impl ShiftedServer ===

impl ShiftedServer {
    fn start() -> Self {
        let folder = Folder::new();
        let (shift, library) = (folder.write("shift", "0"), folder.path().join("clock.so"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/shifted_clock.c");
        let mut compiler = Command::new("gcc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&library);
        assert!(compiler.arg(source).status().unwrap().success());
        let (shift, library) = (shift.display(), library.display());
        let script = format!(
            "#!/bin/sh\nCLOCK_SHIFT_FILE={shift} LD_PRELOAD={library} exec redis-server \"$@\"\n"
        );
        let program = folder.write("server", script);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            server: TestServer::start_program(program.to_str().unwrap(), &[]),
            folder,
        }
    }

    /// Sets the clock to this many seconds after the right time.
    fn shift(&self, seconds: i64) {
        // A reader sees the old number or the new one.
        let next = self.folder.write("next", seconds.to_string());
        fs::rename(next, self.folder.path().join("shift")).unwrap();
    }
}

fn admitted(gateway: &FleetGateway, path: &str, count: usize) -> usize {
    let statuses = gateway.statuses(path, count);
    let is_decided = |status: &u16| matches!(status, 200 | 429);
    assert!(statuses.iter().all(is_decided), "{statuses:?}");
    statuses.iter().filter(|status| **status == 200).count()
}

/// After a jump, each core reads one call as late and estimates the clock again.
#[test]
fn a_clock_that_is_set_forward_costs_each_core_one_late_call() {
    let shifted = ShiftedServer::start();
    let rules = unlimited() + &rule("limited", "limit = 20\nperiod = \"300d\"");
    let gateway = FleetConfig::new(&shifted.server.url(), &rules)
        .store("timeout = \"500ms\"")
        .start();
    gateway.all_are("/many", 16, 200);
    assert_eq!(admitted(&gateway, "/limited", 5), 5);
    assert_eq!(gateway.all_errors(), 0.0);
    shifted.shift(HOUR);
    // New connections, so that both cores get some.
    gateway.all_are("/many", 32, 200);
    let late = gateway.errors("late");
    println!("{late} late calls");
    // The exchange of events is late too, or corrects the estimate of its core.
    assert!((1.0..=3.0).contains(&late), "{late}");
    assert_eq!(gateway.all_errors(), late);
    assert!(!gateway.is_down());
    assert_eq!(admitted(&gateway, "/limited", 20), 15);
    assert_eq!(gateway.logged("WARN  store unavailable").len(), 0);
}

/// Counters whose times lie in the future are rebased: no client waits for an hour because of the clock.
#[test]
fn a_clock_that_is_set_back_bans_no_client() {
    let shifted = ShiftedServer::start();
    let algorithms = [
        ("sliding_window", ""),
        ("slices", "slices = 10"),
        ("fixed_window", "algorithm = \"fixed_window\""),
        ("sliding_log", "algorithm = \"sliding_log\""),
        ("token_bucket", "algorithm = \"token_bucket\""),
        ("gcra", "algorithm = \"gcra\""),
    ];
    for mode in ["exact", "async"] {
        shifted.shift(0);
        let rules = algorithms.map(|(name, lines)| {
            let lines = format!("limit = 2\nperiod = \"2s\"\n{lines}");
            rule(&format!("{mode}-{name}"), &lines)
        });
        let store = format!("timeout = \"500ms\"\nmode = \"{mode}\"");
        let gateway = FleetConfig::new(&shifted.server.url(), &(rules.concat() + &unlimited()))
            .store(&store)
            .start();
        gateway.all_are("/many", 16, 200);
        for (name, _) in algorithms {
            let path = format!("/{mode}-{name}");
            wait_until("the limit is used up", || {
                gateway.statuses(&path, 1) == [429]
            });
        }
        shifted.shift(-HOUR);
        for (name, _) in algorithms {
            let path = format!("/{mode}-{name}");
            wait_until("the client is admitted again", || {
                gateway.statuses(&path, 1) == [200]
            });
        }
        assert!(!gateway.is_down());
    }
}
