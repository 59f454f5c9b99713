//! `lockgate run`: the gateway in the foreground, until a signal ends it.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio::task::spawn_blocking;

use super::say;
use crate::admin::{self, Admin};
use crate::clock::Clock;
use crate::gateway::{Gateway, Refused};
use crate::observe::Log;
use crate::signals::{Request, Signals};

/// How long the last log lines may take.
const FLUSH: Duration = Duration::from_secs(1);

/// Runs until SIGTERM or SIGINT: 0. 1 if it could not start, or was told twice to stop.
pub fn run(config: &Path) -> ExitCode {
    match run_to_end(config) {
        Ok(code) => code,
        Err(error) => {
            match error.downcast_ref::<Refused>() {
                Some(refused) => say(refused.to_string().trim_end()),
                None => say(&format!("lockgate: {error:#}")),
            }
            ExitCode::FAILURE
        }
    }
}

fn run_to_end(config: &Path) -> anyhow::Result<ExitCode> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    let log = Log::stderr(Clock::System)?;
    let code = runtime.block_on(async {
        // Before the first thread starts: a signal during the start must not kill it.
        let mut signals = Signals::listen()?;
        let gateway = Gateway::start(config, Clock::System, log.clone())?;
        let admin = admin::start(&gateway);
        tell_addresses(&gateway, &log);
        reload_until_stopped(&gateway, &mut signals).await;
        Ok(stop(gateway, admin, signals, &log).await)
    });
    log.flush(FLUSH);
    // A thread that was told twice to stop may still hold a connection.
    runtime.shutdown_background();
    code
}

/// Follows the signals to reload until there is one to stop. Files can take long, and a pipe or a
/// network may never give them: the admin port answers meanwhile, and a stop does not wait.
async fn reload_until_stopped(gateway: &Gateway, signals: &mut Signals) {
    while signals.next().await == Request::Reload {
        let reloader = gateway.reloader().clone();
        // A refusal is in the log, and nothing has changed.
        let reload = spawn_blocking(move || reloader.reload().is_ok());
        tokio::select! {
            _ = reload => {}
            () = signals.stop() => return,
        }
    }
}

fn tell_addresses(gateway: &Gateway, log: &Log) {
    for address in gateway.addresses() {
        log.info("listening", &[("address", &address)]);
    }
    let admin = gateway.admin();
    let admin = admin.borrow().as_ref().and_then(|door| door.address().ok());
    if let Some(address) = admin {
        log.info("admin port", &[("address", &address)]);
    }
}

/// Finishes what is under way; a second signal ends it at once.
async fn stop(gateway: Gateway, admin: Admin, mut signals: Signals, log: &Log) -> ExitCode {
    log.info("stopping", &[]);
    admin.not_ready();
    let stopping = spawn_blocking(move || gateway.stop());
    tokio::select! {
        _ = stopping => {
            log.info("stopped", &[]);
            ExitCode::SUCCESS
        }
        () = signals.stop() => {
            log.warn("stopped at once", &[]);
            ExitCode::FAILURE
        }
    }
}
