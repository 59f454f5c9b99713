//! Signals → the gateway: SIGHUP reloads, SIGTERM and SIGINT drain, a second one ends at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read the configuration again.
    Reload,
    /// Finish what is under way and end.
    Stop,
}

/// The signals a gateway listens to.
pub struct Signals {
    hup: Signal,
    term: Signal,
    int: Signal,
}

// === impl Signals ===

impl Signals {
    /// Starts to listen. From here on none of these signals ends the process by itself.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            hup: signal(SignalKind::hangup())?,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    /// The next request. Signals that arrive while one is handled are not lost.
    pub async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.hup.recv() => Request::Reload,
            _ = self.term.recv() => Request::Stop,
            _ = self.int.recv() => Request::Stop,
        }
    }

    /// The next request to stop; one to reload waits.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
