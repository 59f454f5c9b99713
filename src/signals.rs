//! Signal handling: SIGHUP reloads, SIGUSR2 hands over, SIGTERM and SIGINT drain, a second SIGTERM or
//! SIGINT ends the process immediately.

use std::io;

use rustix::process::{Pid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The operation that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// Reload the configuration.
    Reload,
    /// Hand over to a new process.
    HandOver,
    /// Finish the requests in flight and stop.
    Stop,
}

/// The signals that the gateway handles.
pub struct SignalStream {
    hup: Signal,
    usr2: Signal,
    term: Signal,
    int: Signal,
}

// === impl SignalStream ===

impl SignalStream {
    /// Starts to handle the signals. From here on, none of them ends the process by default.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            hup: signal(SignalKind::hangup())?,
            usr2: signal(SignalKind::user_defined2())?,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next request. Signals that arrive while another is handled are not lost.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.hup.recv() => SignalRequest::Reload,
            _ = self.usr2.recv() => SignalRequest::HandOver,
            _ = self.term.recv() => SignalRequest::Stop,
            _ = self.int.recv() => SignalRequest::Stop,
        }
    }

    /// Waits for the next request to stop. Other signals stay pending.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

// === impl SignalRequest ===

impl SignalRequest {
    /// Returns the name of the signal.
    pub fn signal(self) -> &'static str {
        match self {
            SignalRequest::Reload => "SIGHUP",
            SignalRequest::HandOver => "SIGUSR2",
            SignalRequest::Stop => "SIGTERM",
        }
    }
}

/// Sends SIGTERM to another process.
pub fn stop(process: u32) {
    send(process, rustix::process::Signal::TERM);
}

/// Sends SIGHUP to another process.
pub fn reload(process: u32) {
    send(process, rustix::process::Signal::HUP);
}

fn send(process: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Fails if the process has already ended.
        let _ = kill_process(pid, signal);
    }
}
