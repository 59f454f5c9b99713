//! A program in a pseudo-terminal, as an operator sees it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::terminal_screen::TerminalScreen;
use super::{Folder, wait_until};

/// A running program with a terminal of its own; killed with this value.
pub struct Terminal {
    child: Child,
    terminal: File,
    /// The program's side, which stays open so that its modes can be read afterwards.
    program: File,
    screen: Arc<Mutex<TerminalScreen>>,
}

impl Terminal {
    /// Runs lockgate with these arguments on a screen of this size.
    pub fn run(folder: &Folder, arguments: &[&str], width: u16, height: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(flags).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let program = File::from(ioctl_tiocgptpeer(&terminal, flags).unwrap());
        let terminal = File::from(terminal);
        set_size(&terminal, width, height);
        let stdio = || Stdio::from(program.try_clone().unwrap());
        // The program gets the terminal as its controlling terminal, from which it reads the size.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(env!("CARGO_BIN_EXE_lockgate"))
            .args(arguments)
            .env_remove("LOCKGATE_CONFIG")
            .env_remove("LOCKGATE_LOG")
            .env_remove("NO_COLOR")
            .env("TERM", "xterm-256color")
            .current_dir(folder.path())
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .unwrap();
        let screen = Arc::new(Mutex::new(TerminalScreen::new(width, height)));
        let (shown, mut output) = (screen.clone(), terminal.try_clone().unwrap());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose program has ended is an error.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().write(&bytes[..read]);
            }
        });
        Self {
            child,
            terminal,
            program,
            screen,
        }
    }

    /// Presses keys, as the terminal sends them.
    pub fn press(&self, keys: &str) {
        (&self.terminal).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen contains `text`.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        let is_shown = (0..3000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            self.text().contains(text)
        });
        assert!(is_shown, "no {text:?} in\n{}", self.text());
    }

    /// What the screen shows.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().text()
    }

    /// Whether the program shows a screen of its own.
    pub fn is_alternate(&self) -> bool {
        self.screen.lock().unwrap().is_alternate
    }

    /// Whether the terminal is as a shell needs it.
    pub fn is_restored(&self) -> bool {
        let modes = tcgetattr(&self.program).unwrap().local_modes;
        let is_cooked = modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        let screen = self.screen.lock().unwrap();
        is_cooked && !screen.is_alternate && screen.is_cursor_shown
    }

    /// Changes the size.
    pub fn resize(&self, width: u16, height: u16) {
        self.screen.lock().unwrap().resize(width, height);
        set_size(&self.terminal, width, height);
    }

    /// Sends a signal to the program.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        let sent = kill.args(["-s", name, &self.child.id().to_string()]);
        assert!(sent.status().unwrap().success());
    }

    /// Waits until the program has ended and its last output is shown.
    pub fn ends(&mut self) -> ExitStatus {
        wait_until("the program has ended", || {
            self.child.try_wait().unwrap().is_some()
        });
        wait_until("the screen is left", || !self.is_alternate());
        self.child.wait().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_size(terminal: &File, width: u16, height: u16) {
    let size = Winsize {
        ws_row: height,
        ws_col: width,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
}
