//! The host that origin servers receive: `preserve_host`, `host`, and the host of a route.

use std::net::TcpListener;
use std::sync::mpsc;

use crate::harness::{Call, Origin, Running, Stage};

/// A gateway whose upstream has these lines.
fn config(upstream: &str, route: &str) -> String {
    format!(
        "[server]\nworkers = 1\ndrain_timeout = \"5s\"\n[log]\naccess = \"off\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n\
         [[upstreams]]\nname = \"app\"\n{upstream}\n\
         [[routes]]\nupstream = \"app\"\n{route}"
    )
}

/// The host and the forwarded host that the origin got for a request to `client.example`.
fn hosts(gateway: &Running) -> (String, String) {
    let client = gateway.client().header("host", "client.example");
    assert_eq!(client.get("/").send().status, 200);
    let seen = gateway.origin.seen().pop().unwrap();
    let header = |name| seen.header(name).unwrap().to_owned();
    (header("host"), header("x-forwarded-host"))
}

#[test]
fn the_host_comes_from_the_route_the_upstream_the_server_or_the_client() {
    let origin = Origin::start();
    let address = origin.address.to_string();
    let gateway = Running::before(origin, &config("servers = [\"{origin}\"]", ""));
    let edit = "request_headers = { set = { host = \"route.example\" } }";
    for (lines, route, expected) in [
        ("", "", "client.example"),
        ("preserve_host = false", "", address.as_str()),
        (
            "preserve_host = false\nhost = \"app.example\"",
            "",
            "app.example",
        ),
        (
            "preserve_host = false\nhost = \"app.example\"",
            edit,
            "route.example",
        ),
        ("preserve_host = false", edit, "route.example"),
    ] {
        let lines = format!("servers = [\"{{origin}}\"]\n{lines}");
        gateway.reload_whole(&config(&lines, route)).unwrap();
        let expected = (expected.to_owned(), "client.example".to_owned());
        assert_eq!(hosts(&gateway), expected, "{lines} {route}");
    }
}

#[test]
fn a_retry_carries_the_name_of_its_own_server() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for protocol in ["http/1.1", "auto"] {
        let lines = format!(
            "servers = [\"{closed}\", {{ address = \"localhost:{{port}}\", backup = true }}]\n\
             preserve_host = false\nprotocol = \"{protocol}\""
        );
        let origin = Origin::start();
        let port = origin.address.port().to_string();
        let config = config(&lines.replace("{port}", &port), "");
        let gateway = Running::before(origin, &config);
        assert_eq!(hosts(&gateway).0, format!("localhost:{port}"), "{protocol}");
    }
    let (tell, told) = mpsc::channel();
    let origin = Stage::default().play(move |call: Call| {
        tell.send(call.request.uri().authority().unwrap().to_string())
            .unwrap();
        async move { call.say("ok") }
    });
    let port = origin.address.port();
    let lines = format!(
        "servers = [\"{closed}\", {{ address = \"localhost:{port}\", backup = true }}]\n\
         preserve_host = false\nprotocol = \"h2\""
    );
    let gateway = Running::before(origin, &config(&lines, ""));
    assert_eq!(gateway.client().get("/").send().status, 200);
    assert_eq!(told.recv().unwrap(), format!("localhost:{port}"));
}
