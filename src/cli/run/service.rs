//! The running gateway as a service: starts all servers, handles signals, hands over and stops.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

use crate::admin::{self, AdminServer};
use crate::clock::Clock;
use crate::gateway::{
    Gateway, HandoverReceiver, HandoverSender, InheritedSockets, ReloadTrigger, StartCommand,
};
use crate::observe::{LogHandle, install_panic_hook};
use crate::process::{PidFile, RunningGateway};
use crate::signals::{SignalRequest, SignalStream, UnusedSignals};
use crate::systemd::{ActivatedSockets, SystemdNotifier};

/// The timeout for logging aborted requests when a second signal ends the process.
const LAST_LINES: Duration = Duration::from_secs(1);
/// How long a stopping process waits for a handover to finish, at most.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The gateway with its admin server, signals and systemd notifications.
pub(super) struct Service {
    gateway: Gateway,
    admin: AdminServer,
    signals: SignalStream,
    notifier: SystemdNotifier,
    program: StartCommand,
    /// Removed when the process ends.
    pid_file: Option<PidFile>,
    deferred: DeferredRequests,
}

/// What signals have requested during a handover. It concerns the process that serves after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DeferredRequests {
    reload: bool,
    reopen_log: bool,
}

/// Why the gateway exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayExit {
    /// A stop signal was received.
    Stopped,
    /// Another process has taken over.
    HandedOver,
    /// A second stop signal was received.
    AtOnce,
}

// === impl Service ===

impl Service {
    /// Starts all servers. Listeners and the admin port serve requests when this returns.
    pub(super) fn start(
        config: &Path,
        activated: ActivatedSockets,
        log: &LogHandle,
    ) -> anyhow::Result<Self> {
        // Install the handlers before the first thread starts: a signal must not kill a starting process.
        let signals = SignalStream::listen()?;
        tokio::spawn(log_unused_signals(UnusedSignals::listen()?));
        let program = StartCommand::own().context("cannot find this program's path")?;
        let inherited = inherit(activated, log)?;
        let mut gateway = Gateway::start(config, Clock::System, log.clone(), inherited)?;
        install_panic_hook(&gateway.live().process.metrics.panics);
        let admin = admin::start(&gateway);
        gateway.summary().log(log);
        let pid_file = gateway
            .take_over()
            .context("cannot write server.pid_file")?;
        let notifier = SystemdNotifier::from_env();
        notifier.ready("serving");
        Ok(Self {
            gateway,
            admin,
            signals,
            notifier,
            program,
            pid_file,
            deferred: DeferredRequests::default(),
        })
    }

    /// Handles signals until a stop signal arrives or a handover completes.
    pub(super) async fn serve(&mut self) -> GatewayExit {
        loop {
            let request = match self.deferred.take() {
                Some(request) => request,
                None => self.signals.next().await,
            };
            let end = match request {
                SignalRequest::Reload => self.reload().await,
                SignalRequest::ReopenLog => {
                    reopen_access_log(self.gateway.live());
                    None
                }
                SignalRequest::HandOver => self.hand_over().await,
                SignalRequest::Stop => Some(GatewayExit::Stopped),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Reloads the configuration in the background, because reading a file from a pipe or a network
    /// may take forever. The admin port stays available, and a stop signal does not wait.
    async fn reload(&mut self) -> Option<GatewayExit> {
        self.notifier.reloading();
        let reloader = self.gateway.reloader().clone();
        // A refused reload is logged and changes nothing.
        let mut reload = spawn_blocking(move || reloader.reload(ReloadTrigger::Signal).is_ok());
        loop {
            tokio::select! {
                reloaded = &mut reload => {
                    let refused = "serving; the last reload was refused";
                    self.notifier.ready(if reloaded.unwrap_or(false) { "serving" } else { refused });
                    return None;
                }
                request = self.signals.next_urgent() => match request {
                    SignalRequest::ReopenLog => reopen_access_log(self.gateway.live()),
                    _ => return Some(GatewayExit::Stopped),
                },
            }
        }
    }

    /// Hands over to a new process. After a failed handover this process continues, unless a stop signal arrived.
    async fn hand_over(&mut self) -> Option<GatewayExit> {
        info!(program = %self.program.path().display(), "handover started");
        let handover = self.gateway.handover();
        let (program, notifier, cancel) = (
            self.program.clone(),
            self.notifier.clone(),
            handover.clone(),
        );
        let mut running =
            spawn_blocking(move || handover.run(&program, |pid| notifier.main_pid(pid)));
        let (handed, stop) = tokio::select! {
            handed = &mut running => (handed, None),
            () = self.meanwhile() => {
                info!("received a stop signal during the handover");
                match self.last_word(&cancel, &mut running).await {
                    Some(handed) => (handed, Some(GatewayExit::Stopped)),
                    None => return Some(GatewayExit::AtOnce),
                }
            }
        };
        match handed.unwrap_or_else(|panic| Err(panic.into())) {
            Ok(pid) => {
                info!(pid, "handover completed");
                let request = if stop.is_some() {
                    // It was too late to cancel the handover: stop the new process too.
                    Some(SignalRequest::Stop)
                } else {
                    // The new process may have opened its files before they were changed.
                    self.deferred.take()
                };
                if let Some(request) = request {
                    // Fails if the new process has already ended.
                    let _ = request.send(pid);
                }
                Some(GatewayExit::HandedOver)
            }
            Err(error) => {
                let error = format!("{error:#}");
                error!(error, "handover failed");
                self.restore_pid_file();
                stop
            }
        }
    }

    /// Writes the PID file again if the new process of a failed handover has replaced it.
    fn restore_pid_file(&mut self) {
        let restored = self.pid_file.as_mut().map_or(Ok(()), PidFile::publish);
        if let Err(error) = restored {
            error!(%error, "cannot write server.pid_file");
        }
    }

    /// Waits for a stop signal during a handover. Defers a reload, and ignores a second handover.
    async fn meanwhile(&mut self) {
        loop {
            match self.signals.next().await {
                SignalRequest::Stop => return,
                SignalRequest::Reload => {
                    let waited = std::mem::replace(&mut self.deferred.reload, true);
                    if !waited {
                        info!("the reload waits for the handover");
                    }
                }
                SignalRequest::ReopenLog => self.reopen_both_logs(),
                SignalRequest::HandOver => {
                    ignored(SignalRequest::HandOver, "a handover is in progress");
                }
            }
        }
    }

    /// Reopens the access log, and has the new process reopen its own.
    fn reopen_both_logs(&mut self) {
        reopen_access_log(self.gateway.live());
        self.deferred.reopen_log = true;
    }

    /// Cancels a handover after a stop signal and returns its result. `None` after a second stop signal.
    async fn last_word<T>(
        &mut self,
        handover: &HandoverSender,
        running: &mut JoinHandle<T>,
    ) -> Option<Result<T, JoinError>> {
        handover.cancel();
        let drain = self.gateway.live().current.load().settings.drain_timeout;
        let mut late = std::pin::pin!(sleep(LAST_WAIT.min(drain / 2)));
        let mut waits = true;
        loop {
            tokio::select! {
                handed = &mut *running => return Some(handed),
                request = self.signals.next_urgent() => match request {
                    SignalRequest::ReopenLog => self.reopen_both_logs(),
                    _ => {
                        handover.abandon();
                        return None;
                    }
                },
                () = &mut late, if waits => {
                    handover.abandon();
                    waits = false;
                }
            }
        }
    }

    /// Drains requests in flight; a second stop signal ends the process immediately.
    pub(super) async fn stop(self, end: GatewayExit) -> ExitCode {
        let Self {
            gateway,
            admin,
            mut signals,
            notifier,
            // Dropped at the end, which removes it.
            pid_file: _pid_file,
            ..
        } = self;
        let live = gateway.live().clone();
        if end != GatewayExit::AtOnce {
            info!("stopping");
        }
        admin.not_ready();
        if end != GatewayExit::HandedOver {
            notifier.stopping();
        }
        if end == GatewayExit::Stopped {
            delay_drain(&mut signals, &live).await;
        }
        let drain = gateway.drain();
        let mut stopping = match end {
            GatewayExit::HandedOver => spawn_blocking(move || gateway.stop_handed_over()),
            _ => spawn_blocking(move || gateway.stop()),
        };
        let told_again = async {
            if end != GatewayExit::AtOnce {
                wait_for_stop(&mut signals, &live).await;
            }
        };
        tokio::select! {
            _ = &mut stopping => {
                info!("stopped");
                return ExitCode::SUCCESS;
            }
            () = told_again => {}
        }
        drain.cut();
        // Exit even if the timeout expires.
        let _ = timeout(LAST_LINES, stopping).await;
        warn!("stopped immediately");
        ExitCode::FAILURE
    }
}

// === impl DeferredRequests ===

impl DeferredRequests {
    /// Returns the one request that does all that was requested. A reload reopens the log too.
    fn take(&mut self) -> Option<SignalRequest> {
        match std::mem::take(self) {
            Self { reload: true, .. } => Some(SignalRequest::Reload),
            Self { reopen_log, .. } => reopen_log.then_some(SignalRequest::ReopenLog),
        }
    }
}

/// Keeps the listeners open for `server.drain_delay`, so that load balancers see that the gateway is not ready.
/// A stop signal ends the delay.
async fn delay_drain(signals: &mut SignalStream, live: &RunningGateway) {
    let delay = live.current.load().settings.drain_delay;
    if delay.is_zero() {
        return;
    }
    info!(
        delay_s = delay.as_secs_f64(),
        "not ready, still accepting connections"
    );
    let ended = timeout(delay, wait_for_stop(signals, live)).await;
    let why = ended.map_or("server.drain_delay has passed", |()| "a second stop signal");
    info!(why, "draining");
}

/// Waits for a stop signal. Reopens the access log on SIGUSR1 and ignores all other signals.
async fn wait_for_stop(signals: &mut SignalStream, live: &RunningGateway) {
    loop {
        match signals.next().await {
            SignalRequest::Stop => return,
            SignalRequest::ReopenLog => reopen_access_log(live),
            request => ignored(request, "stopping"),
        }
    }
}

fn reopen_access_log(live: &RunningGateway) {
    if live.reopen_access_log() {
        info!("access log reopened");
    } else {
        info!("no access log to reopen: log.access is not a file");
    }
}

/// Logs signals that mean nothing to the gateway.
async fn log_unused_signals(mut signals: UnusedSignals) {
    loop {
        let signal = signals.next().await;
        warn!(
            signal,
            why = "it has no meaning for lockgate",
            "signal ignored"
        );
    }
}

fn ignored(request: SignalRequest, why: &str) {
    warn!(signal = request.signal(), why, "signal ignored");
}

/// Returns the sockets inherited from the previous process or from systemd.
fn inherit(activated: ActivatedSockets, log: &LogHandle) -> anyhow::Result<InheritedSockets> {
    for wrong in &activated.wrong {
        warn!(error = wrong, "unusable socket from systemd");
    }
    let mut inherited = HandoverReceiver::inherit(log)?.unwrap_or_default();
    for socket in activated.sockets {
        inherited.add(socket);
    }
    Ok(inherited)
}
