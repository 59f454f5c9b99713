//! The program itself, as an operator runs it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::{Folder, log_line};

/// A line of the log as written, and a JSON line also in the text format.
type LogLine = (String, Option<String>);

/// A running gateway; killed with this value.
pub struct Process {
    /// Where its configuration is.
    pub folder: Folder,
    child: Child,
    log: Arc<Mutex<Vec<LogLine>>>,
}

impl Process {
    /// The program, in an environment that says nothing about it.
    pub fn command() -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockgate"));
        command.env_remove("LOCKGATE_CONFIG");
        command.env_remove("LOCKGATE_LOG");
        command
    }

    /// What the program says to `arguments`, in `folder`.
    pub fn output(folder: &Folder, arguments: &[&str]) -> Output {
        let mut command = Self::command();
        command.current_dir(folder.path()).args(arguments);
        command.output().unwrap()
    }

    /// The code and the words with which it ends by itself, in `folder`; `None`: it does not.
    pub fn ends(mut command: Command, folder: &Folder) -> (Option<i32>, String) {
        command.current_dir(folder.path());
        let streams = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        let ended = (0..2000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            child.try_wait().unwrap().is_some()
        });
        if !ended {
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    }

    /// Runs on `config`, with its output in the file `stdout`; listening when this returns.
    pub fn run(config: &str) -> Self {
        Self::run_as(Self::command(), config)
    }

    /// The same with no more than so many file descriptors.
    pub fn run_with_descriptors(descriptors: usize, config: &str) -> Self {
        Self::run_as(Self::with_descriptors(descriptors), config)
    }

    /// The program with no more than so many file descriptors.
    pub fn with_descriptors(descriptors: usize) -> Command {
        let mut shell = Command::new("sh");
        shell.env_remove("LOCKGATE_CONFIG");
        let script = format!("ulimit -n {descriptors} && exec \"$0\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_lockgate")]);
        shell
    }

    /// The program on a terminal, whose screen is written to `shown`.
    pub fn on_terminal(shown: &Path) -> Command {
        let mut script = Command::new("script");
        script
            .env_remove("LOCKGATE_CONFIG")
            .env_remove("LOCKGATE_LOG");
        script.args(["--quiet", "--flush", "--return", "--command"]);
        script.arg(env!("CARGO_BIN_EXE_lockgate")).arg(shown);
        script.stdin(Stdio::null()).stdout(Stdio::null());
        script
    }

    /// The same with a command of another kind.
    pub fn run_as(command: Command, config: &str) -> Self {
        let folder = Folder::new();
        let stdout = File::create(folder.path().join("stdout")).unwrap();
        Self::run_in(folder, command, config, stdout.into())
    }

    /// The same in this folder, with another target for its output.
    pub fn run_in(folder: Folder, mut command: Command, config: &str, stdout: Stdio) -> Self {
        folder.write("gateway.toml", config);
        let mut child = command
            .current_dir(folder.path())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = log.clone();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let shown = log_line::as_text(&line);
                lines.lock().unwrap().push((line, shown));
            }
        });
        let process = Self { folder, child, log };
        let listeners = config.matches("[[listeners]]").count();
        wait_until("it listens", || {
            process.logged(" listening ").len() == listeners
        });
        process
    }

    /// The address of a listener.
    pub fn address(&self, listener: usize) -> SocketAddr {
        address(&self.logged(" listening ")[listener])
    }

    /// The address of the admin port.
    pub fn admin(&self) -> SocketAddr {
        wait_until("the admin port is open", || {
            !self.logged(" admin port ").is_empty()
        });
        address(&self.logged(" admin port ")[0])
    }

    /// The log lines so far that contain `text`, in the text format.
    pub fn logged(&self, text: &str) -> Vec<String> {
        let lines = self.log.lock().unwrap();
        let lines = lines
            .iter()
            .map(|(line, shown)| shown.as_ref().unwrap_or(line));
        lines.filter(|line| line.contains(text)).cloned().collect()
    }

    /// The log lines so far that contain `text`, as they were written.
    pub fn logged_raw(&self, text: &str) -> Vec<String> {
        let lines = self.log.lock().unwrap();
        let lines = lines.iter().map(|(line, _)| line);
        lines.filter(|line| line.contains(text)).cloned().collect()
    }

    /// Puts another configuration in place, and tells the program.
    pub fn reload(&self, config: &str) {
        self.folder.write("gateway.toml", config);
        let before = self.reloads();
        self.signal("HUP");
        // Looked at without a pause at first: some want to act right behind it.
        let soon = Instant::now() + Duration::from_millis(100);
        while self.reloads() == before && Instant::now() < soon {
            thread::yield_now();
        }
        wait_until("it has reloaded", || self.reloads() > before);
    }

    fn reloads(&self) -> usize {
        self.logged(" reloaded ").len() + self.logged(" reload refused ").len()
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        assert!(kill(name, self.child.id()));
    }

    /// Sends a signal to the process that took over last.
    pub fn signal_successor(&self, name: &str) {
        assert!(kill(name, *self.successors().last().unwrap()));
    }

    /// The processes that took over, one from the other.
    pub fn successors(&self) -> Vec<u32> {
        let lines = self.logged("INFO  handover completed ");
        let pid = |line: &String| line.rsplit_once("pid=").unwrap().1.parse().unwrap();
        lines.iter().map(pid).collect()
    }

    /// The exit code, once it has ended.
    pub fn exit_code(&mut self) -> Option<i32> {
        let mut code = None;
        wait_until("it has ended", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// KiB of memory that it holds, or held at the most: `VmRSS` or `VmHWM`.
    pub fn memory(&self, which: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(which)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in self.successors() {
            // Gone already, if all went well.
            kill("KILL", pid);
        }
    }
}

fn kill(signal: &str, pid: u32) -> bool {
    let mut kill = Command::new("kill");
    let kill = kill.args(["-s", signal, &pid.to_string()]);
    kill.stderr(Stdio::null()).status().unwrap().success()
}

/// Waits for what must come, and fails if it does not within a minute.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain until {what}");
}

fn address(line: &str) -> SocketAddr {
    let (_, address) = line.rsplit_once("address=").unwrap();
    address.trim_matches('"').parse().unwrap()
}
