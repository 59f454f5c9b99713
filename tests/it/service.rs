//! The program as a service of systemd: what it tells, and the sockets that it is given.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Stdio;
use std::time::Duration;

use crate::harness::{Client, Folder, Process, wait_until};

const HELLO: &str = "[server]\nworkers = 3\n[log]\naccess = \"off\"\n\
                     [[listeners]]\naddress = \"127.0.0.1:0\"\n\
                     [[routes]]\nrespond = { body = \"hello\" }\n";

/// The next thing that a service manager hears.
fn heard(manager: &UnixDatagram) -> String {
    let mut buffer = [0; 1024];
    let length = manager.recv(&mut buffer).unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

fn patient(manager: UnixDatagram) -> UnixDatagram {
    let long = Some(Duration::from_secs(20));
    manager.set_read_timeout(long).unwrap();
    manager
}

#[test]
fn systemd_is_notified_of_start_reload_handover_and_stop() {
    let folder = Folder::new();
    let path = folder.path().join("notify");
    let manager = patient(UnixDatagram::bind(&path).unwrap());
    let mut command = Process::command();
    command.env("NOTIFY_SOCKET", &path);
    let mut process = Process::run_as(command, HELLO);
    assert_eq!(heard(&manager), "READY=1\nSTATUS=serving");

    process.reload(HELLO);
    let reloading = heard(&manager);
    let (first, at) = reloading.split_once("\nMONOTONIC_USEC=").unwrap();
    assert_eq!(first, "RELOADING=1");
    assert!(at.parse::<u64>().unwrap() > 0);
    assert_eq!(heard(&manager), "READY=1\nSTATUS=serving");
    process.reload("nonsense");
    assert!(heard(&manager).starts_with("RELOADING=1\n"));
    let refused = "READY=1\nSTATUS=serving; the last reload was refused";
    assert_eq!(heard(&manager), refused);

    process.reload(HELLO);
    heard(&manager);
    heard(&manager);
    process.signal("USR2");
    let main = heard(&manager);
    wait_until("it has handed over", || !process.successors().is_empty());
    assert_eq!(main, format!("MAINPID={}", process.successors()[0]));
    // The new process is the service from then on.
    assert_eq!(heard(&manager), "READY=1\nSTATUS=serving");
    assert_eq!(process.exit_code(), Some(0));
    process.signal_successor("TERM");
    assert_eq!(heard(&manager), "STOPPING=1\nSTATUS=draining");
}

#[test]
fn an_abstract_notify_socket_is_notified_too() {
    let name = format!("lockgate-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let manager = patient(UnixDatagram::bind_addr(&address).unwrap());
    let mut command = Process::command();
    command.env("NOTIFY_SOCKET", format!("@{name}"));
    let mut process = Process::run_as(command, HELLO);
    assert_eq!(heard(&manager), "READY=1\nSTATUS=serving");
    process.signal("TERM");
    assert_eq!(heard(&manager), "STOPPING=1\nSTATUS=draining");
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn a_missing_notify_socket_is_not_an_error() {
    for socket in ["/nowhere/notify", "", &"x".repeat(200)] {
        let mut command = Process::command();
        command.env("NOTIFY_SOCKET", socket);
        let mut process = Process::run_as(command, HELLO);
        process.signal("TERM");
        assert_eq!(process.exit_code(), Some(0), "{socket}");
    }
}

/// A command that has `socket` as its descriptor 3, as systemd would start it.
fn activated(socket: &TcpListener, count: usize) -> std::process::Command {
    let program = Process::command();
    let mut shell = std::process::Command::new("sh");
    let script = "export LISTEN_PID=$$; exec \"$0\" 3<&0 0</dev/null";
    shell.arg("-c").arg(script).arg(program.get_program());
    shell.env_remove("LOCKGATE_CONFIG");
    shell.env("LISTEN_FDS", count.to_string());
    let descriptor = OwnedFd::from(socket.try_clone().unwrap());
    shell.stdin(Stdio::from(descriptor));
    shell
}

#[test]
fn a_socket_of_systemd_is_served_by_every_core_and_handed_over() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // Nobody else could bind it: it is the very socket.
    let config = HELLO.replace("127.0.0.1:0", &address.to_string());
    let mut process = Process::run_as(activated(&socket, 1), &config);
    assert_eq!(process.address(0), address);
    let client = Client::plain(address).get("/");
    client.times(20).all_are(200);
    process.signal("USR2");
    wait_until("it has handed over", || !process.successors().is_empty());
    assert_eq!(process.exit_code(), Some(0));
    client.times(20).all_are(200);
    process.signal_successor("TERM");
    wait_until("it has stopped", || process.logged(" stopped").len() == 2);
}

#[test]
fn a_socket_without_a_listener_is_reported() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = HELLO.replace("127.0.0.1:0", "[::1]:0");
    // Descriptor 4 is none at all.
    let process = Process::run_as(activated(&socket, 2), &config);
    let address = socket.local_addr().unwrap().to_string();
    let said = process.logged("closed an inherited socket that no listener uses");
    assert!(said.len() == 1 && said[0].contains(&address), "{said:?}");
    assert_eq!(process.logged("unusable socket from systemd").len(), 1);
    Client::plain(process.address(0))
        .get("/")
        .times(1)
        .all_are(200);
}
