//! Starts `redis-server` or `valkey-server` on a free port.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// The first port that Cluster nodes cannot have, because their bus uses the port 10,000 above.
const PORT_LIMIT: u16 = 55_536;

/// A running server. It ends when this is dropped, or when the test process ends.
pub(crate) struct TestServer {
    /// The port on 127.0.0.1.
    pub(crate) port: u16,
    /// The process id of the server.
    pub(crate) pid: u32,
    directory: PathBuf,
    /// A shell that kills the server at the end of its standard input.
    guard: Child,
    _stdin: ChildStdin,
}

impl TestServer {
    /// Starts Redis with further arguments.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_program("redis-server", arguments)
    }

    /// Starts a server of this program with further arguments.
    pub(crate) fn start_program(program: &str, arguments: &[&str]) -> Self {
        (0..10)
            .find_map(|_| Self::try_start(program, free_port(), arguments))
            .expect("redis-server starts")
    }

    /// Starts Redis on this port. `None` if the port is taken.
    pub(crate) fn try_start(program: &str, port: u16, arguments: &[&str]) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lockgate-redis-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let script = "\"$@\" >log 2>&1 & echo $!; cat >/dev/null; kill -9 $!";
        let port_text = port.to_string();
        let mut guard = Command::new("sh")
            .args(["-c", script, "sh", program])
            .args(["--port", &port_text, "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--loglevel", "warning"])
            .args(arguments)
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = guard.stdin.take().unwrap();
        let mut line = String::new();
        let output = guard.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let server = Self {
            port,
            pid: line.trim().parse().unwrap(),
            directory,
            guard,
            _stdin: stdin,
        };
        server.is_up().then_some(server)
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends a signal to the server, for example `STOP`.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.pid.to_string();
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Waits until the server accepts connections and is the one that was started.
    fn is_up(&self) -> bool {
        for _ in 0..200 {
            let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            if log.contains("Address already in use") {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                sleep(Duration::from_millis(10));
                let path = format!("/proc/{}", self.pid);
                return std::fs::metadata(path).is_ok() && !log.contains("in use");
            }
            sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let pid = self.pid.to_string();
        _ = Command::new("kill").args(["-9", &pid]).status();
        _ = self.guard.kill();
        _ = self.guard.wait();
        _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        if port < PORT_LIMIT {
            return port;
        }
    }
}
