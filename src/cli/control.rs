//! `lockgate reload`, `reopen-logs` and `stop` signal the process in `server.pid_file`; `lockgate health` asks the
//! admin port.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::admin_client::{AdminArgs, AdminClient, AdminClientError};
use super::{ConfigArg, print, print_error};
use crate::config::{self, Diagnostics};
use crate::process::{PidFile, PidFileError};
use crate::signals::SignalRequest;

/// The timeout for the result of a reload.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval at which the result is requested.
const POLL: Duration = Duration::from_millis(50);

/// `lockgate reload`: returns exit code 1 if the configuration is refused.
pub fn reload(args: &AdminArgs) -> ExitCode {
    let path = args.config_path();
    let (pid_file, has_errors) = match pid_file_of(path) {
        Ok(found) => found,
        Err(code) => return code,
    };
    match pid_file {
        Some(pid_file) if !args.names_gateway() => match PidFile::owner(&pid_file) {
            Err(error @ (PidFileError::Missing(_) | PidFileError::Stale(_)))
                if args.has_admin() =>
            {
                reload_without_pid_file(args, &error)
            }
            _ => reload_by_signal(args, &pid_file),
        },
        None if !args.has_admin() => {
            let wanted = "`server.pid_file` or an `[admin]` address";
            print_error(&lacks("reload", wanted, path, has_errors));
            ExitCode::FAILURE
        }
        _ => reload_by_api(args).unwrap_or_else(|error| error.report()),
    }
}

/// `lockgate reopen-logs`.
pub fn reopen_logs(config: &ConfigArg) -> ExitCode {
    signal("reopen-logs", &config.config, SignalRequest::ReopenLog)
}

/// `lockgate stop`.
pub fn stop(config: &ConfigArg) -> ExitCode {
    signal("stop", &config.config, SignalRequest::Stop)
}

/// `lockgate health`: returns exit code 0 if the gateway is ready, otherwise 1.
pub fn health(args: &AdminArgs) -> ExitCode {
    if !args.has_admin() && !args.config_is_missing() {
        let wanted = "an `[admin]` address";
        print_error(&lacks("health", wanted, args.config_path(), false));
        return ExitCode::FAILURE;
    }
    let ready = args
        .client_without_token()
        .and_then(|client| client.get_text("/readyz"));
    match ready {
        Ok(_) => print("ready\n"),
        Err(error) => {
            print_error(&format!("lockgate: not ready: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns `server.pid_file` of the configuration at `path`, and whether the configuration has errors. An error is
/// already reported.
fn pid_file_of(path: &Path) -> Result<(Option<PathBuf>, bool), ExitCode> {
    let mut diagnostics = Diagnostics::new();
    let (source, file) = config::load(path, &mut diagnostics);
    match file {
        Some(file) => {
            let settings = config::startup_settings(&file, &source);
            Ok((settings.pid_file, diagnostics.has_errors()))
        }
        None => {
            print_error(diagnostics.render(&source, false).trim_end());
            Err(ExitCode::FAILURE)
        }
    }
}

/// Returns the message about a setting that a command needs.
fn lacks(command: &str, wanted: &str, path: &Path, has_errors: bool) -> String {
    let mut message = format!("lockgate: `{command}` needs {wanted} in {}", path.display());
    if has_errors {
        let _ = write!(
            message,
            "; the file has errors, which `lockgate check` shows"
        );
    }
    message
}

fn signal(command: &str, config: &Path, request: SignalRequest) -> ExitCode {
    let (pid_file, has_errors) = match pid_file_of(config) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let Some(pid_file) = pid_file else {
        print_error(&lacks(command, "`server.pid_file`", config, has_errors));
        return ExitCode::FAILURE;
    };
    match send(&pid_file, request) {
        Ok(pid) => print(&format!("sent {} to process {pid}\n", request.signal())),
        Err(message) => {
            print_error(&message);
            ExitCode::FAILURE
        }
    }
}

/// Sends the signal of `request` and returns the id of the process. The error is a message.
fn send(pid_file: &Path, request: SignalRequest) -> Result<u32, String> {
    let pid = PidFile::owner(pid_file).map_err(|error| format!("lockgate: {error}"))?;
    request
        .send(pid)
        .map_err(|error| format!("lockgate: cannot signal process {pid}: {error}"))?;
    Ok(pid)
}

/// Sends SIGHUP. Waits for the result if there is an admin port.
fn reload_by_signal(args: &AdminArgs, pid_file: &Path) -> ExitCode {
    let status = args.has_admin().then(|| {
        let client = args.client()?;
        let before = client.get("/api/status")?;
        Ok::<_, AdminClientError>((client, before))
    });
    if let Some(Ok((_, before))) = &status
        && is_stopping(before)
    {
        return stopping().report();
    }
    let pid = match send(pid_file, SignalRequest::Reload) {
        Ok(pid) => pid,
        Err(message) => {
            print_error(&message);
            return ExitCode::FAILURE;
        }
    };
    match status {
        Some(Ok((client, before))) => {
            let before = last_reload(&before).clone();
            wait_for_result(&client, &before).unwrap_or_else(|error| error.report())
        }
        Some(Err(error)) => print(&format!(
            "sent SIGHUP to process {pid}; the result is in its log, because its admin port did not respond: {error}\n"
        )),
        None => print(&format!(
            "sent SIGHUP to process {pid}; the result is in its log\n"
        )),
    }
}

fn last_reload(status: &Value) -> &Value {
    status
        .pointer("/config/last_reload")
        .unwrap_or(&Value::Null)
}

/// Waits until the last reload is another one than `before`, and prints its result.
fn wait_for_result(client: &AdminClient, before: &Value) -> Result<ExitCode, AdminClientError> {
    let deadline = Instant::now() + RELOAD_TIMEOUT;
    while Instant::now() < deadline {
        let status = client.get("/api/status")?;
        if last_reload(&status) != before {
            return Ok(print_result(&status));
        }
        if is_stopping(&status) {
            return Err(stopping());
        }
        thread::sleep(POLL);
    }
    Err(AdminClientError::Refused(format!(
        "the gateway has not reloaded within {} seconds; the result will be in its log",
        RELOAD_TIMEOUT.as_secs()
    )))
}

/// Reloads through the admin port, because a gateway that was started before `pid_file` was set has no PID file.
fn reload_without_pid_file(args: &AdminArgs, missing: &PidFileError) -> ExitCode {
    reload_by_api(args).unwrap_or_else(|error| {
        if matches!(error, AdminClientError::Unreachable(_)) {
            print_error(&format!("lockgate: {missing}"));
        }
        error.report()
    })
}

fn reload_by_api(args: &AdminArgs) -> Result<ExitCode, AdminClientError> {
    let client = args.client()?;
    let is_refused = match client.call("POST", "/api/reload") {
        Ok(_) => false,
        Err(AdminClientError::Refused(_)) => true,
        Err(error) => return Err(error),
    };
    // It has all errors of a refused configuration.
    let status = client.get("/api/status")?;
    if is_refused && is_stopping(&status) {
        return Err(stopping());
    }
    Ok(print_result(&status))
}

/// Returns whether a gateway stops, so that it ignores requests to reload.
fn is_stopping(status: &Value) -> bool {
    status.get("state").and_then(Value::as_str) == Some("draining")
}

fn stopping() -> AdminClientError {
    AdminClientError::Refused("the gateway is stopping and does not reload".to_owned())
}

/// Prints the result of the last reload.
fn print_result(status: &Value) -> ExitCode {
    let reload = last_reload(status);
    if reload.get("ok").and_then(Value::as_bool) == Some(true) {
        let rules = status.pointer("/config/rules").and_then(Value::as_u64);
        return print(&format!("reloaded: {} rules\n", rules.unwrap_or_default()));
    }
    let errors = reload.get("errors").and_then(Value::as_array);
    for error in errors.into_iter().flatten() {
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| error.get(name).and_then(Value::as_u64).unwrap_or_default();
        print_error(&format!(
            "{}:{}:{}: error: {}",
            text("file"),
            number("line"),
            number("column"),
            text("message")
        ));
    }
    print_error("lockgate: the reload was refused; the gateway keeps its configuration");
    ExitCode::FAILURE
}
