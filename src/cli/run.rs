//! `lockgate run`: runs the gateway in the foreground until a signal stops it.

mod service;

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tracing::error;

use self::service::Service;
use super::print_error;
use crate::clock::Clock;
use crate::gateway::RejectedConfig;
use crate::observe::{LogHandle, LogOutput, log};
use crate::systemd::ActivatedSockets;

/// The timeout for writing the last log lines.
const FLUSH: Duration = Duration::from_secs(1);
/// How long a thread for blocking work waits for more of it.
const IDLE_THREAD: Duration = Duration::from_secs(1);

/// Runs until a stop signal or a completed handover. Returns exit code 0, or 1 if the start fails
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
