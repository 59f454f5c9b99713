//! Signal handling: SIGHUP reloads, SIGUSR1 reopens the access log, SIGUSR2 hands over, SIGTERM, SIGINT and
//! SIGQUIT drain, and a second one of these ends the process immediately. Other signals that would end a process
//! by default do nothing, except those that report a defect, such as SIGABRT.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::{Pid, Signal as SignalNumber, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The operation that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// Reload the configuration and reopen the access log.
    Reload,
    /// Reopen the access log.
    ReopenLog,
    /// Hand over to a new process.
    HandOver,
    /// Finish the requests in flight and stop.
    Stop,
}

/// The signals that the gateway handles.
pub struct SignalStream {
    hup: Signal,
    usr1: Signal,
    usr2: Signal,
    term: Signal,
    int: Signal,
    quit: Signal,
}

/// The signals without a meaning for the gateway that would end the process by default. SIGPIPE is not one of
/// them, because the standard library ignores it.
pub struct UnusedSignals(Vec<(String, Signal)>);

const UNUSED: [(&str, SignalNumber); 8] = [
    ("SIGALRM", SignalNumber::ALARM),
    ("SIGVTALRM", SignalNumber::VTALARM),
    ("SIGPROF", SignalNumber::PROF),
    ("SIGIO", SignalNumber::IO),
    ("SIGPWR", SignalNumber::POWER),
    ("SIGSTKFLT", SignalNumber::STKFLT),
    ("SIGXCPU", SignalNumber::XCPU),
    // A write beyond the maximum file size then fails, and the lines of a log count as lost.
    ("SIGXFSZ", SignalNumber::XFSZ),
];
/// The first real-time signal that programs can use, as `kill -l` counts.
const REAL_TIME_MIN: i32 = 34;
const REAL_TIME_MAX: i32 = 64;

// === impl SignalStream ===

impl SignalStream {
    /// Starts to handle the signals. From here on, none of them ends the process by default.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            hup: signal(SignalKind::hangup())?,
            usr1: signal(SignalKind::user_defined1())?,
            usr2: signal(SignalKind::user_defined2())?,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for the next request. Signals that arrive while another is handled are not lost.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.hup.recv() => SignalRequest::Reload,
            _ = self.usr1.recv() => SignalRequest::ReopenLog,
            _ = self.usr2.recv() => SignalRequest::HandOver,
            _ = self.term.recv() => SignalRequest::Stop,
            _ = self.int.recv() => SignalRequest::Stop,
            _ = self.quit.recv() => SignalRequest::Stop,
        }
    }

    /// Waits for the next request to stop or to reopen the access log. Other signals stay pending.
    pub async fn next_urgent(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.usr1.recv() => SignalRequest::ReopenLog,
            _ = self.term.recv() => SignalRequest::Stop,
            _ = self.int.recv() => SignalRequest::Stop,
            _ = self.quit.recv() => SignalRequest::Stop,
        }
    }
}

// === impl UnusedSignals ===

impl UnusedSignals {
    /// Starts to handle the signals. From here on, none of them ends the process.
    pub fn listen() -> io::Result<Self> {
        let mut signals = Vec::new();
        for (name, number) in UNUSED {
            let stream = signal(SignalKind::from_raw(number.as_raw()))?;
            signals.push((name.to_owned(), stream));
        }
        for number in REAL_TIME_MIN..=REAL_TIME_MAX {
            // The C library may keep the first ones for itself. They cannot reach the process.
            if let Ok(stream) = signal(SignalKind::from_raw(number)) {
                signals.push((format!("SIGRTMIN+{}", number - REAL_TIME_MIN), stream));
            }
        }
        Ok(Self(signals))
    }

    /// Waits for one of the signals and returns its name.
    pub async fn next(&mut self) -> &str {
        let arrived = poll_fn(|cx| {
            let mut signals = self.0.iter_mut();
            let arrived = signals.position(|(_, stream)| stream.poll_recv(cx).is_ready());
            arrived.map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        self.0.get(arrived).map_or("", |(name, _)| name)
    }
}

// === impl SignalRequest ===

impl SignalRequest {
    /// Returns the name of the signal.
    pub fn signal(self) -> &'static str {
        match self {
            SignalRequest::Reload => "SIGHUP",
            SignalRequest::ReopenLog => "SIGUSR1",
            SignalRequest::HandOver => "SIGUSR2",
            SignalRequest::Stop => "SIGTERM",
        }
    }

    /// Sends the signal to another process.
    pub fn send(self, process: u32) -> io::Result<()> {
        let number = match self {
            SignalRequest::Reload => SignalNumber::HUP,
            SignalRequest::ReopenLog => SignalNumber::USR1,
            SignalRequest::HandOver => SignalNumber::USR2,
            SignalRequest::Stop => SignalNumber::TERM,
        };
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(kill_process(pid, number)?)
    }
}
