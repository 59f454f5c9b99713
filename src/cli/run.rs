//! `lockgate run`: runs the gateway in the foreground until a signal stops it.

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

use super::print_error;
use crate::admin::{self, AdminServer};
use crate::clock::Clock;
use crate::gateway::{
    Gateway, HandoverReceiver, HandoverSender, InheritedSockets, RejectedConfig, ReloadTrigger,
    StartCommand,
};
use crate::observe::{LogHandle, LogOutput, install_panic_hook, log};
use crate::signals::{self, SignalRequest, SignalStream};
use crate::systemd::{ActivatedSockets, SystemdNotifier};

/// The timeout for writing the last log lines.
const FLUSH: Duration = Duration::from_secs(1);
/// How long a thread for blocking work waits for more of it.
const IDLE_THREAD: Duration = Duration::from_secs(1);
/// The timeout for logging aborted requests when a second signal ends the process.
const LAST_LINES: Duration = Duration::from_secs(1);
/// How long a stopping process waits for a handover to finish, at most.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The gateway with its admin server, signals and systemd notifications.
struct Service {
    gateway: Gateway,
    admin: AdminServer,
    signals: SignalStream,
    notifier: SystemdNotifier,
    program: StartCommand,
    /// Whether a reload was requested during a handover.
    reload_waits: bool,
}

/// Why the gateway exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GatewayExit {
    /// A stop signal was received.
    Stopped,
    /// Another process has taken over.
    HandedOver,
    /// A second stop signal was received.
    AtOnce,
}

/// Runs until SIGTERM, SIGINT or a completed handover. Returns exit code 0, or 1 if the start fails
/// or a second stop signal arrives.
pub fn run(config: &Path) -> ExitCode {
    // Take `LISTEN_FDS` before anything else opens a descriptor.
    let activated = ActivatedSockets::from_env();
    let filter = env::var_os(log::VARIABLE).unwrap_or_default();
    let log = match LogHandle::install(Clock::System, &filter.to_string_lossy()) {
        Ok(log) => log,
        Err(error) => {
            show(&error.into());
            return ExitCode::FAILURE;
        }
    };
    let ran = run_to_end(config, activated, &log);
    ran.unwrap_or_else(|error| {
        log.report_bad_filter();
        if log.format() == LogOutput::Json {
            log_failure(&error);
            log.flush(FLUSH);
        } else {
            log.flush(FLUSH);
            show(&error);
        }
        ExitCode::FAILURE
    })
}

/// Prints the reason of a failed start as text.
fn show(error: &anyhow::Error) {
    match error.downcast_ref::<RejectedConfig>() {
        Some(refused) => print_error(refused.to_string().trim_end()),
        None => print_error(&format!("lockgate: {error:#}")),
    }
}

/// Logs the reason of a failed start as JSON lines.
fn log_failure(error: &anyhow::Error) {
    match error.downcast_ref::<RejectedConfig>() {
        Some(refused) => {
            error!("not started");
            refused.log_errors();
        }
        None => error!(error = format!("{error:#}"), "not started"),
    }
}

fn run_to_end(
    config: &Path,
    activated: ActivatedSockets,
    log: &LogHandle,
) -> anyhow::Result<ExitCode> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    // Threads for the admin port and reloads are rarely needed.
    let runtime = runtime.thread_keep_alive(IDLE_THREAD);
    let runtime = runtime.enable_all().build()?;
    let code = runtime.block_on(async {
        let mut service = Service::start(config, activated, log)?;
        let end = service.serve().await;
        Ok(service.stop(end).await)
    });
    log.flush(FLUSH);
    // After a second stop signal, a thread may still hold a connection.
    runtime.shutdown_background();
    code
}

// === impl Service ===

impl Service {
    /// Starts all servers. Listeners and the admin port serve requests when this returns.
    fn start(config: &Path, activated: ActivatedSockets, log: &LogHandle) -> anyhow::Result<Self> {
        // Install the handlers before the first thread starts: a signal must not kill a starting process.
        let signals = SignalStream::listen()?;
        let program = StartCommand::own().context("cannot find this program's path")?;
        let inherited = inherit(activated, log)?;
        let mut gateway = Gateway::start(config, Clock::System, log.clone(), inherited)?;
        install_panic_hook(&gateway.live().process.metrics.panics);
        let admin = admin::start(&gateway);
        log_addresses(&gateway);
        gateway.take_over();
        let notifier = SystemdNotifier::from_env();
        notifier.ready("serving");
        Ok(Self {
            gateway,
            admin,
            signals,
            notifier,
            program,
            reload_waits: false,
        })
    }

    /// Handles signals until a stop signal arrives or a handover completes.
    async fn serve(&mut self) -> GatewayExit {
        loop {
            let request = if std::mem::take(&mut self.reload_waits) {
                SignalRequest::Reload
            } else {
                self.signals.next().await
            };
            let end = match request {
                SignalRequest::Reload => self.reload().await,
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
        let reload = spawn_blocking(move || reloader.reload(ReloadTrigger::Signal).is_ok());
        tokio::select! {
            reloaded = reload => {
                let refused = "serving; the last reload was refused";
                self.notifier.ready(if reloaded.unwrap_or(false) { "serving" } else { refused });
                None
            }
            () = self.signals.stop() => Some(GatewayExit::Stopped),
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
                if stop.is_some() {
                    // It was too late to cancel the handover: stop the new process too.
                    signals::stop(pid);
                } else if self.reload_waits {
                    // The new process may have read the file before it was changed.
                    signals::reload(pid);
                }
                Some(GatewayExit::HandedOver)
            }
            Err(error) => {
                let error = format!("{error:#}");
                error!(error, "handover failed");
                stop
            }
        }
    }

    /// Waits for a stop signal during a handover. Defers a reload and ignores other signals.
    async fn meanwhile(&mut self) {
        loop {
            match self.signals.next().await {
                SignalRequest::Stop => return,
                SignalRequest::Reload => {
                    let waited = std::mem::replace(&mut self.reload_waits, true);
                    if !waited {
                        info!("the reload waits for the handover");
                    }
                }
                request => ignored(request, "a handover is in progress"),
            }
        }
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
                () = self.signals.stop() => {
                    handover.abandon();
                    return None;
                }
                () = &mut late, if waits => {
                    handover.abandon();
                    waits = false;
                }
            }
        }
    }

    /// Drains requests in flight; a second stop signal ends the process immediately.
    async fn stop(self, end: GatewayExit) -> ExitCode {
        let Self {
            gateway,
            admin,
            mut signals,
            notifier,
            ..
        } = self;
        if end != GatewayExit::AtOnce {
            info!("stopping");
        }
        admin.not_ready();
        let drain = gateway.drain();
        let mut stopping = match end {
            GatewayExit::HandedOver => spawn_blocking(move || gateway.stop_handed_over()),
            _ => {
                notifier.stopping();
                spawn_blocking(move || gateway.stop())
            }
        };
        let told_again = async {
            if end != GatewayExit::AtOnce {
                wait_for_second_stop(&mut signals).await;
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

/// Waits for a second stop signal and ignores all other signals.
async fn wait_for_second_stop(signals: &mut SignalStream) {
    loop {
        match signals.next().await {
            SignalRequest::Stop => return,
            request => ignored(request, "stopping"),
        }
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

fn log_addresses(gateway: &Gateway) {
    for address in gateway.addresses() {
        info!(%address, "listening");
    }
    let admin = gateway.admin();
    let admin = admin
        .borrow()
        .as_ref()
        .and_then(|admin| admin.socket.local_addr().ok());
    if let Some(address) = admin {
        info!(%address, "admin port");
    }
}
