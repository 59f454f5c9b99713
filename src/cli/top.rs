//! `lockgate top`: a live view of a running gateway in the terminal.
//!
//! `model` is the state and what keys do, `draw` turns it into lines, `feed` reads the gateway and the keyboard on
//! threads. This file connects them.

mod action_layer;
mod api_fields;
mod command;
mod decision_feed;
mod draw;
mod explain_request;
mod feed;
mod model;
mod rule_row;
mod screen;
mod traffic_history;

use std::env;
use std::io::{self, BufWriter, IsTerminal as _, stdout};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use clap::{Args, ValueEnum};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use serde_json::json;

use self::command::TopCommand;
use self::draw::TopStyle;
use self::feed::{TopEvent, TopFeed};
use self::model::TopModel;
use super::admin_client::{AdminArgs, AdminClient, AdminClientError};
use super::{OutputFormat, print, print_error};
use crate::clock::Clock;

/// How often the screen is drawn at least, for the clock.
const FRAME: Duration = Duration::from_millis(500);
/// The size of the output buffer, in bytes. A complete frame of a large terminal fits.
const MAX_FRAME: usize = 256 << 10;

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "Press ? for all keys. `lockgate help operations` describes them.")]
pub struct TopArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Whether to use colours.
    #[arg(long, value_enum, default_value_t)]
    color: ColorChoice,
    /// Use only ASCII characters.
    #[arg(long)]
    ascii: bool,
    /// `json` prints the state once.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ColorChoice {
    #[default]
    Auto,
    Never,
}

/// Shows the gateway until a key ends it. Returns exit code 2 without a terminal, and if the gateway cannot be reached.
pub fn top(args: &TopArgs) -> ExitCode {
    let client = match args.admin.client() {
        Ok(client) => client,
        Err(error) => return error.report(),
    };
    if args.format == OutputFormat::Json {
        let document = document(&client);
        return document.map_or_else(|error| error.report(), |text| print(&text));
    }
    if !stdout().is_terminal() || !io::stdin().is_terminal() {
        print_error("lockgate: top needs a terminal; use lockgate status or --format json");
        return ExitCode::from(2);
    }
    // A wrong address or token is an error before the screen changes.
    if let Err(error) = client.get("/api/status") {
        return error.report();
    }
    let shown = show(args, &client);
    ratatui::restore();
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("lockgate: cannot use the terminal: {error}"));
            ExitCode::from(2)
        }
    }
}

fn document(client: &AdminClient) -> Result<String, AdminClientError> {
    let (status, rules) = (client.get("/api/status")?, client.get("/api/rules")?);
    let document = json!({ "status": status, "rules": rules });
    Ok(format!("{document:#}\n"))
}

fn show(args: &TopArgs, client: &AdminClient) -> io::Result<()> {
    // A signal that arrives after this line restores the terminal.
    let (mut feed, events) = TopFeed::start(client)?;
    // Enters the alternate screen, which is left at the end and by a panic.
    drop(ratatui::try_init()?);
    // One write per frame, which has only the cells that changed.
    let output = BufWriter::with_capacity(MAX_FRAME, stdout());
    let mut terminal = Terminal::new(CrosstermBackend::new(output))?;
    let style = TopStyle {
        has_color: args.color == ColorChoice::Auto && !is_plain_terminal(),
        is_ascii: args.ascii,
    };
    let mut model = TopModel::new(Clock::System.now());
    feed.refresh(&model);
    loop {
        terminal.draw(|frame| draw::draw(frame, &model, style))?;
        let mut next = next_event(&events);
        model.set_now(Clock::System.now());
        // All events that have arrived share a frame.
        while let Some(event) = next {
            if let Some(ended) = take(&mut model, &mut feed, event) {
                return ended;
            }
            next = events.try_recv().ok();
        }
        feed.follow(&model.decisions.filter);
        feed.refresh_if_due(&model);
    }
}

/// Waits for an event, at most until the next frame.
fn next_event(events: &Receiver<TopEvent>) -> Option<TopEvent> {
    match events.recv_timeout(FRAME) {
        Ok(event) => Some(event),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(TopEvent::Quit),
    }
}

/// Handles an event. Returns how the program ends, if it does.
fn take(model: &mut TopModel, feed: &mut TopFeed, event: TopEvent) -> Option<io::Result<()>> {
    match event {
        TopEvent::Quit => return Some(Ok(())),
        TopEvent::Failed => return Some(Err(io::Error::other("a thread has panicked"))),
        TopEvent::Resized => {}
        TopEvent::Key(key) => match model.press(key) {
            Some(TopCommand::Quit) => return Some(Ok(())),
            Some(TopCommand::Refresh) => feed.refresh(model),
            Some(TopCommand::Change(change)) => feed.change(change),
            None => {}
        },
        TopEvent::Tick(tick) => model.take_tick(tick),
        TopEvent::Decision(filter, decision) => model.take_decision(&filter, decision),
        TopEvent::Skipped(skipped) => model.take_skipped(&skipped),
        TopEvent::Mark => feed.refresh(model),
        TopEvent::Lost(retry_at, reason) => model.take_lost(retry_at, reason),
        TopEvent::Status(status) => model.take_status(status),
        TopEvent::Rules(rules) => model.take_rules(&rules),
        TopEvent::History(history) => model.take_history(&history),
        TopEvent::Figures(screen, figures) => model.take_figures(&screen, figures),
        TopEvent::Read => feed.end_read(),
        TopEvent::Changed(result) => {
            model.take_result(result);
            feed.refresh(model);
        }
    }
    None
}

/// Returns whether the environment asks for no colours.
fn is_plain_terminal() -> bool {
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    no_color || env::var_os("TERM").is_some_and(|term| term == "dumb")
}
