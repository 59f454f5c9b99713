//! `lockgate explain`: sends one simulated request, once or repeatedly, through the live traffic engine.
//!
//! It starts with an empty store and a manual clock. It opens only the files that the configuration
//! names, writes nothing and opens no port.

mod human;
pub(crate) mod json;
pub(crate) mod parse;
pub(crate) mod request;

use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory};
use http::header::COOKIE;
use http::{Response, StatusCode};

use self::request::RequestOptions;
use super::{Cli, ConfigArg, OutputFormat, check, print, print_error};
use crate::clock::{Clock, ManualClock, Timestamp};
use crate::config::{self, Diagnostics};
use crate::observe::LogHandle;
use crate::pipeline::simulate::{SimulatedOutcome, SimulationReport};
use crate::process::ProcessState;
use crate::snapshot::Snapshot;
use crate::store::{StoreBounds, StoreHandle};

/// The store's capacity, enough for one key per rule.
const KEYS: usize = 100_000;

/// The arguments.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    #[command(flatten)]
    config: ConfigArg,
    #[command(flatten)]
    request: RequestOptions,
    /// How many times to send the request.
    #[arg(long, value_name = "TIMES", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// The time between two requests, such as `10s`.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = config::duration)]
    every: Duration,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// The results of all simulated requests.
struct ExplainOutput {
    /// The request as one line of text.
    request: String,
    /// Additional notes for the user.
    notes: Vec<String>,
    /// A summary of each request, in order.
    lines: Vec<ExplainedRequest>,
    /// The full report of the last request.
    last: SimulationReport,
}

/// The summary of one simulated request.
struct ExplainedRequest {
    /// The time since the first request.
    at: Duration,
    outcome: SimulatedOutcome,
    decided_by: Option<(Arc<str>, &'static str)>,
    /// `None` if the request gets no response.
    status: Option<StatusCode>,
    /// The outcome as text.
    text: String,
}

/// Returns exit code 0 if the request could be explained, 1 if the configuration is unusable.
pub fn explain(args: &ExplainArgs) -> ExitCode {
    match run(args) {
        Ok(code) => code,
        Err(error) => {
            print_error(&format!("lockgate: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let clock = ManualClock::at(start_of(args));
    let mut diagnostics = Diagnostics::new();
    let (source, file) = config::load(&args.config.config, &mut diagnostics);
    let now = clock.now();
    let blueprint =
        file.and_then(|file| config::compile(&file, &source, now, None, &mut diagnostics));
    let Some(blueprint) = blueprint else {
        check::print_findings(&diagnostics, &source, args.format);
        return Ok(ExitCode::FAILURE);
    };
    let secrets = blueprint.credentials.secrets.as_ref();
    let secret = secrets.map(|ring| *ring.first());
    let mut process = ProcessState::new(
        Clock::Manual(clock.clone()),
        LogHandle::off(),
        StoreBounds::keys(KEYS),
    )?;
    if let Some(secret) = secret {
        // The hashes of secret values are then those of the logs.
        process = process.with_secret(secret);
    }
    let snapshot = process.install(blueprint, None, None);
    let store = StoreHandle::new(process.store.clone(), process.clock.clone());
    let output = print_report(args, &snapshot, &store, &clock)?;
    Ok(match args.format {
        OutputFormat::Human => print(&human::human(&output)),
        OutputFormat::Json => print(&format!("{:#}\n", json::json(&output, &snapshot.redactor))),
    })
}

fn print_report(
    args: &ExplainArgs,
    snapshot: &Snapshot,
    store: &Rc<StoreHandle>,
    clock: &ManualClock,
) -> anyhow::Result<ExplainOutput> {
    let options = &args.request;
    let (simulation, mut notes) =
        request::simulation(options, snapshot).unwrap_or_else(|message| {
            let mut command = Cli::command();
            command.error(ErrorKind::ArgumentConflict, message).exit()
        });
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let pass = |detail| {
        let run = simulation.run(snapshot, store, clock.now(), detail);
        runtime.block_on(run)
    };
    notes.extend(request::unused_credentials(options, snapshot));
    let start = clock.now();
    let (mut lines, mut any_counted) = (Vec::new(), false);
    for _ in 1..args.repeat {
        let report = pass(false);
        any_counted |= report.response_counted;
        lines.push(ExplainedRequest::of(&report, clock.now().since(start)));
        clock.advance(args.every);
    }
    let last = pass(true);
    lines.push(ExplainedRequest::of(&last, clock.now().since(start)));
    let simulates_response = options.status.is_some() || !options.response_header.is_empty();
    if simulates_response && !any_counted && !last.response_counted {
        notes.push(
            "--status and --response-header have no effect: the request reaches no origin server"
                .into(),
        );
    }
    Ok(ExplainOutput {
        request: request::words(options, &simulation),
        notes,
        lines,
        last,
    })
}

// === impl ExplainedRequest ===

impl ExplainedRequest {
    fn of(report: &SimulationReport, at: Duration) -> Self {
        Self {
            at,
            outcome: report.outcome,
            decided_by: report.decided_by.clone(),
            status: report.response.as_ref().map(Response::status),
            text: human::line(report),
        }
    }
}

/// Returns when the request arrives: at the last midnight, when windows of all common lengths start, so that two runs
/// give equal output. A request with cookies arrives now, because a cookie of today was not valid at midnight.
fn start_of(args: &ExplainArgs) -> Timestamp {
    const DAY: u64 = 86_400;
    let now = Clock::System.now();
    if args.request.headers.iter().any(|(name, _)| *name == COOKIE) {
        return now;
    }
    Timestamp::from_secs(now.as_secs() / DAY * DAY)
}
