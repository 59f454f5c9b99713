//! The README's tour, line by line: every `$ command` of its console blocks is run against the
//! real program on a copy of the root gateway.toml, and its output is compared. docs/explain.md
//! is run the same way, without a gateway.
//!
//! In what they show, `…` stands for anything within a line and, alone, for any lines.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::docs::pages::{Block, blocks_of, read};
use crate::harness::Folder;

/// The program.
const BINARY: &str = env!("CARGO_BIN_EXE_lockgate");
/// The README's ports: the site's and the admin port.
const PORTS: [&str; 2] = ["8443", "9901"];
/// How often a test looks before it gives up, and how long it waits in between.
const LOOKS: usize = 400;
const PAUSE: Duration = Duration::from_millis(50);

/// A command of the tour and what it prints.
struct Step {
    place: String,
    command: String,
    output: Vec<String>,
}

/// The tour under way.
struct Tour {
    folder: Folder,
    ports: [String; 2],
    gateway: Child,
}

#[test]
fn the_tour_matches_the_output() {
    let steps: Vec<Step> = blocks_of("README.md")
        .iter()
        .filter(|block| block.kind == "console")
        .flat_map(steps)
        .collect();
    let starts = steps.iter().filter(|step| step.starts_the_gateway());
    assert_eq!(starts.count(), 1, "the tour starts the gateway once");
    assert!(steps.len() > 8, "only {} commands", steps.len());
    let tour = Tour::start();
    for step in steps.iter().filter(|step| !step.starts_the_gateway()) {
        tour.take(step);
    }
}

#[test]
fn the_page_about_explain_matches_the_output() {
    let folder = Folder::new();
    folder.write("gateway.toml", read("gateway.toml"));
    let blocks = blocks_of("docs/explain.md");
    for block in blocks.iter().filter(|block| block.kind == "toml") {
        let first = block
            .text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# "));
        folder.write(
            first.expect("the file's name is its first line"),
            &block.text,
        );
    }
    let consoles = blocks.iter().filter(|block| block.kind == "console");
    let steps: Vec<Step> = consoles.flat_map(steps).collect();
    assert!(steps.len() > 2, "only {} commands", steps.len());
    for step in &steps {
        step.compare(&shell(&folder, &step.command));
    }
}

fn steps(block: &Block) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let mut continues = false;
    for (number, line) in block.text.lines().enumerate() {
        let place = format!("{}:{}", block.file, block.line + number);
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push(Step {
                place,
                command: command.to_owned(),
                output: Vec::new(),
            }),
            (None, Some(step)) if continues => step.command += &format!("\n{line}"),
            (None, Some(step)) => step.output.push(line.to_owned()),
            (None, None) => panic!("{place}: output before a command"),
        }
        continues = line.ends_with('\\');
    }
    found
}

// === impl Step ===

impl Step {
    fn starts_the_gateway(&self) -> bool {
        self.command == "cargo run --release"
    }

    /// Fails with both texts if `real` is not what the README shows.
    fn compare(&self, real: &str) {
        let real: Vec<&str> = real.lines().map(str::trim_end).collect();
        assert!(
            fits(&self.output, &real),
            "{}: $ {}\n--- the README shows\n{}\n--- it prints\n{}\n",
            self.place,
            self.command,
            self.output.join("\n"),
            real.join("\n"),
        );
    }
}

/// Whether lines are those shown, where `…` alone is any lines.
fn fits(shown: &[String], real: &[&str]) -> bool {
    match shown.split_first() {
        None => real.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=real.len()).any(|skipped| fits(rest, &real[skipped..]))
        }
        Some((first, rest)) => real
            .split_first()
            .is_some_and(|(line, others)| fits_line(first.trim_end(), line) && fits(rest, others)),
    }
}

/// Whether a line is the one shown, where `…` is anything.
fn fits_line(shown: &str, line: &str) -> bool {
    match shown.split_once('…') {
        None => shown == line,
        Some((before, after)) => line.strip_prefix(before).is_some_and(|rest| {
            let mut ends = (0..=rest.len()).filter(|end| rest.is_char_boundary(*end));
            ends.any(|end| fits_line(after, &rest[end..]))
        }),
    }
}

/// What is left of a quota is shown as it is within a window, which begins with the minute.
fn wait_for_a_young_minute() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let second = now.as_secs() % 60;
    if second > 30 {
        sleep(Duration::from_secs(60 - second));
    }
}

// === impl Tour ===

impl Tour {
    fn start() -> Self {
        wait_for_a_young_minute();
        let folder = Folder::new();
        let ports = free_ports();
        let config = PORTS.iter().zip(&ports);
        let config = config.fold(read("gateway.toml"), |text, (old, new)| {
            assert!(text.contains(old), "gateway.toml has no port {old}");
            text.replace(old, new)
        });
        folder.write("gateway.toml", config);
        fs::create_dir_all(folder.path().join("target/release")).unwrap();
        symlink(BINARY, folder.path().join("target/release/lockgate")).unwrap();
        let log = |name: &str| Stdio::from(fs::File::create(folder.path().join(name)).unwrap());
        let gateway = Command::new(BINARY)
            .current_dir(folder.path())
            .env_remove("LOCKGATE_CONFIG")
            .stdout(log("access.log"))
            .stderr(log("error.log"))
            .spawn()
            .unwrap();
        let tour = Self {
            folder,
            ports,
            gateway,
        };
        tour.wait_for("it is ready", |tour| tour.admin("readyz").contains("ready"));
        tour
    }

    fn take(&self, step: &Step) {
        let reloads = self.reloads();
        let output = self.shell(&self.fill(&step.command));
        step.compare(&self.unfill(&output));
        if step.command.contains("kill -HUP") {
            self.wait_for("the reload has happened", |tour| tour.reloads() != reloads);
        }
    }

    /// A command of the README as it is meant here.
    fn fill(&self, command: &str) -> String {
        let pid = self.gateway.id().to_string();
        let command = command.replace("$(pgrep -x lockgate)", &pid);
        let ports = PORTS.iter().zip(&self.ports);
        ports.fold(command, |text, (old, new)| text.replace(old, new))
    }

    fn unfill(&self, output: &str) -> String {
        let ports = PORTS.iter().zip(&self.ports);
        ports.fold(output.to_owned(), |text, (old, new)| text.replace(new, old))
    }

    fn shell(&self, command: &str) -> String {
        shell(&self.folder, command)
    }

    /// How many reloads there were, good and bad.
    fn reloads(&self) -> String {
        let metrics = self.admin("metrics");
        let lines = metrics.lines();
        let mut own: Vec<&str> = lines
            .filter(|line| line.contains("config_reloads_total{"))
            .collect();
        own.sort_unstable();
        own.join("\n")
    }

    fn admin(&self, page: &str) -> String {
        let [_, admin] = &self.ports;
        self.shell(&format!("curl -s http://127.0.0.1:{admin}/{page}"))
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..LOOKS {
            if is_so(self) {
                return;
            }
            sleep(PAUSE);
        }
        let log = fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default();
        panic!("waited in vain until {what}\n{log}");
    }
}

impl Drop for Tour {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

/// What a command prints, in this folder.
fn shell(folder: &Folder, command: &str) -> String {
    let own = Path::new(BINARY).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let ran = Command::new("sh")
        .arg("-c")
        .arg(format!("exec 2>&1\n{command}"))
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", own.display()))
        .env_remove("LOCKGATE_CONFIG")
        .output()
        .unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Two ports that were free a moment ago.
fn free_ports() -> [String; 2] {
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let held = [bind(), bind()];
    held.map(|socket| socket.local_addr().unwrap().port().to_string())
}

#[test]
fn an_ellipsis_matches_any_text() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(fits(&shown("a … c\n…\nend"), &["a b c", "x", "y", "end"]));
    assert!(fits(&shown("a\n…"), &["a"]));
    assert!(!fits(&shown("a …"), &["b"]));
    assert!(!fits(&shown("a"), &["a", "b"]));
    assert!(!fits(&shown("t=…;x"), &["t=1;y"]));
}
