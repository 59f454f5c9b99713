//! Settings of the store that are wrong at the start, or after a reload.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use super::fleet_gateway::{FleetConfig, unlimited};
use super::server::TestServer;
use crate::harness::Folder;

#[test]
fn a_reload_checks_the_store_and_names_what_needs_a_restart() {
    let server = TestServer::start(&[]);
    let folder = Folder::new();
    let path = folder.write("password", "first");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    server.command::<()>("CONFIG SET requirepass first");
    let password = format!("password_file = \"{}\"", path.display());
    let config = FleetConfig::new(&server.url(), &unlimited()).store(&password);
    let gateway = config.start();
    gateway.recovers("/many");
    let open = format!("other users can read or write `{}`", path.display());
    assert_eq!(gateway.logged(&open).len(), 1);

    // A path of this test has no meaning for the file of the process, except an absolute one.
    let text = fs::read_to_string(gateway.process.folder.path().join("gateway.toml")).unwrap();
    gateway
        .process
        .reload(&text.replace(path.to_str().unwrap(), "/nonexistent"));
    assert_eq!(gateway.logged("reload refused").len(), 1);
    gateway.logs("cannot read `/nonexistent`", 1);

    gateway.process.reload(&text);
    assert_eq!(gateway.logged("restart-needed").len(), 0);
    gateway
        .process
        .reload(&text.replace("[store.redis]\n", "[store.redis]\nsync_interval = \"1s\"\n"));
    gateway.logs("restart-needed", 1);
    let needed = gateway.logged("restart-needed");
    assert!(
        needed[0].contains("`store.redis.sync_interval`"),
        "{needed:?}"
    );

    folder.write("password", [0xff, b'x']);
    gateway.process.reload(&text);
    gateway.logs("the password is not UTF-8", 1);
    folder.write("password", "second");
    gateway.process.reload(&text);
    gateway.logs(
        "`store.redis.password_file` takes effect after a restart",
        1,
    );
    assert_eq!(gateway.process.logged_raw("second").len(), 0);
    gateway.all_are("/many", 4, 200);

    gateway
        .process
        .reload(&text.replace("\"many\"", "\"renamed\""));
    gateway.logs(
        "rule reset or removed, its counters and bans stay in the shared store",
        1,
    );
    assert_eq!(gateway.logged("bans_ended").len(), 0);
}

#[test]
fn a_server_that_is_not_redis_sends_invalid_replies() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            _ = client.read(&mut [0; 4096]);
            _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let gateway = FleetConfig::new(&url, &unlimited()).start();
    gateway.goes_down("/many");
    let lines = gateway.logged("store unavailable");
    assert!(
        lines[0].contains("the store sent an invalid reply"),
        "{lines:?}"
    );
}
