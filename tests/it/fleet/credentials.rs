//! Passwords and ACL users of the store.

use std::time::Duration;

use super::fleet_gateway::{FleetConfig, FleetGateway, rule, unlimited};
use super::server::TestServer;
use super::server_commands::run;

/// The longest time until a gateway tries refused credentials again is 6 s.
const LONGEST_RETRY: Duration = Duration::from_secs(8);

const REFUSED: &str = "ERROR store refuses the connection";

fn config(server: &TestServer) -> FleetConfig {
    let rules = unlimited() + &rule("limited", "limit = 10\nperiod = \"24h\"");
    // Long enough for a busy machine: no call may time out.
    FleetConfig::new(&server.url(), &rules).store("timeout = \"5s\"")
}

/// The gateway serves with its fallback and has logged the refusal once, without the secret.
#[track_caller]
fn is_refused(gateway: &FleetGateway, secret: &str) {
    assert_eq!(gateway.admin("/readyz").status, 200);
    assert!(gateway.is_down());
    gateway.all_are("/many", 8, 200);
    assert!(gateway.errors("unavailable") >= 8.0);
    gateway.logs(REFUSED, 1);
    assert_eq!(gateway.process.logged_raw(secret).len(), 0);
}

#[track_caller]
fn is_accepted(gateway: &FleetGateway) {
    let took = gateway.recovers_within("/many", LONGEST_RETRY);
    println!("accepted after {took:?}");
    gateway.logs(REFUSED, 1);
    gateway.logs("INFO  store connected", 1);
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 10], vec![429; 2]].concat());
}

#[test]
fn a_wrong_password_is_retried_until_it_is_right() {
    let server = TestServer::start(&["--requirepass", "other"]);
    let gateway = config(&server).password("a-wrong-secret").start();
    is_refused(&gateway, "a-wrong-secret");
    let line = gateway.logged(REFUSED).remove(0);
    assert!(
        line.contains("WRONGPASS invalid username-password pair"),
        "{line}"
    );
    assert!(line.contains("from LOCKGATE_REDIS_PASSWORD"), "{line}");
    let before = gateway.open_resources();
    let mut connection = server.connect_as(None, "other");
    run::<()>(&mut connection, "CONFIG SET requirepass a-wrong-secret").unwrap();
    is_accepted(&gateway);
    let connections = 2;
    gateway.leaks_nothing(before.with_descriptors(connections));
}

#[test]
fn a_missing_password_is_reported() {
    let server = TestServer::start(&["--requirepass", "the-secret"]);
    let gateway = config(&server).start();
    is_refused(&gateway, "the-secret");
    let line = gateway.logged(REFUSED).remove(0);
    assert!(line.contains("NOAUTH Authentication required"), "{line}");
}

#[test]
fn a_password_for_a_server_without_one_is_reported() {
    let server = TestServer::start(&[]);
    let folder = crate::harness::Folder::new();
    let path = folder.write("password", "unused-secret");
    let store = format!("password_file = \"{}\"", path.display());
    let gateway = config(&server).store(&store).start();
    is_refused(&gateway, "unused-secret");
    let line = gateway.logged(REFUSED).remove(0);
    assert!(line.contains("without any password configured"), "{line}");
    assert!(line.contains("from password_file"), "{line}");
}

#[test]
fn a_line_end_after_the_password_is_ignored() {
    let server = TestServer::start(&["--requirepass", "the-secret"]);
    let gateway = config(&server).password("the-secret\r\n").start();
    gateway.recovers("/many");
    assert_eq!(gateway.logged(REFUSED).len(), 0);
}

/// A gateway with `username` is never the default user.
#[test]
fn a_user_without_a_password_logs_in() {
    let server = TestServer::start(&[]);
    server.command::<()>("ACL SETUSER gateway on >user-secret ~* +@all");
    let gateway = config(&server).store("username = \"gateway\"").start();
    is_refused(&gateway, "user-secret");
    server.command::<()>("ACL SETUSER gateway nopass");
    is_accepted(&gateway);
    let users: String = server.command("CLIENT LIST");
    assert!(users.contains("user=gateway"), "{users}");
}

/// The user may do only what a gateway does.
#[test]
fn an_acl_user_needs_few_permissions() {
    let server = TestServer::start(&[]);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/fleet.md");
    let page = std::fs::read_to_string(page).unwrap();
    let documented = page
        .lines()
        .find(|line| line.starts_with("user lockgate on "));
    let permissions = documented.unwrap().replace("user lockgate ", "");
    let permissions = permissions.replace(">PASSWORD", ">user-secret");
    let file = crate::harness::Folder::new();
    let path = file.write("password", "user-secret\n");
    let store = format!(
        "username = \"gateway\"\npassword_file = \"{}\"",
        path.display()
    );
    let gateway = config(&server).store(&store).start();
    is_refused(&gateway, "user-secret");
    server.command::<()>(&format!("ACL SETUSER gateway {permissions}"));
    is_accepted(&gateway);
    assert_eq!(gateway.logged("store returned an error").len(), 0);
}

/// The connection works, so the server's error is no outage.
#[test]
fn a_missing_permission_is_reported() {
    let server = TestServer::start(&[]);
    server.command::<()>("ACL SETUSER default -set");
    let gateway = config(&server).start();
    gateway.all_are("/many", 8, 200);
    // The exchange of the gateway can fail too.
    assert!(gateway.errors("rejected") >= 8.0);
    assert_eq!(gateway.state(), "degraded");
    let lines = gateway.logs_of_cores("store returned an error");
    assert!(lines[0].contains("can't run this command"), "{lines:?}");
}
