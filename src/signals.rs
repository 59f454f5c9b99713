//! Signals → the gateway: SIGHUP reloads, SIGUSR2 hands over, SIGTERM and SIGINT drain, a second
//! one ends at once.

use std::io;

use rustix::process::{Pid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// Read the configuration again.
    Reload,
    /// Give the sockets to a new process.
    HandOver,
    /// Finish what is under way and end.
    Stop,
}

/// The signals a gateway listens to.
pub struct SignalStream {
    hup: Signal,
    usr2: Signal,
    term: Signal,
    int: Signal,
}

// === impl SignalStream ===

impl SignalStream {
    /// Starts to listen. From here on none of these signals ends the process by itself.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            hup: signal(SignalKind::hangup())?,
            usr2: signal(SignalKind::user_defined2())?,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    /// The next request. Signals that arrive while one is handled are not lost.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.hup.recv() => SignalRequest::Reload,
            _ = self.usr2.recv() => SignalRequest::HandOver,
            _ = self.term.recv() => SignalRequest::Stop,
            _ = self.int.recv() => SignalRequest::Stop,
        }
    }

    /// The next request to stop; others wait.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

// === impl SignalRequest ===

impl SignalRequest {
    /// The signal, as people call it.
    pub fn signal(self) -> &'static str {
        match self {
            SignalRequest::Reload => "SIGHUP",
            SignalRequest::HandOver => "SIGUSR2",
            SignalRequest::Stop => "SIGTERM",
        }
    }
}

/// Tells another process to stop.
pub fn stop(process: u32) {
    send(process, rustix::process::Signal::TERM);
}

/// Tells another process to read its configuration again.
pub fn reload(process: u32) {
    send(process, rustix::process::Signal::HUP);
}

fn send(process: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It fails where the process has ended.
        let _ = kill_process(pid, signal);
    }
}
