//! The threads of `lockgate top`: one reads the stream, one the keyboard, one calls the gateway, and one waits for
//! SIGTERM. They send [`TopEvent`]s to the thread that draws.

use std::io::{self, BufRead as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::model::{ListedRow, TopCommand, TopKey, TopModel, TopScreen};
use crate::cli::admin_client::{AdminClient, AdminClientError, escaped, query};
use crate::clock::Clock;

/// The longest wait before the stream is opened again.
const MAX_BACKOFF: Duration = Duration::from_secs(15);

/// Something that happened.
pub(super) enum TopEvent {
    Key(TopKey),
    Resized,
    Quit,
    Tick(Value),
    Status(Value),
    Rules(Value),
    History(Value),
    Rows(Vec<ListedRow>),
    /// A command ended, with a text and the object that `z` restores.
    Done(String, Option<Value>),
}

/// A call for the thread that calls the gateway.
enum FeedCall {
    Refresh(TopScreen, Option<String>),
    Run(TopCommand),
}

/// The threads.
pub(super) struct TopFeed {
    calls: Sender<FeedCall>,
    refreshed: Instant,
}

// === impl TopFeed ===

impl TopFeed {
    /// Starts the threads, which end with the process.
    pub(super) fn start(client: AdminClient) -> io::Result<(Self, Receiver<TopEvent>)> {
        let (events, received) = channel();
        let (calls, called) = channel();
        let (stream, keys, end) = (events.clone(), events.clone(), events.clone());
        let streaming = client.clone();
        spawn("stream", move || read_stream(&streaming, &stream))?;
        spawn("keys", move || read_keys(&keys))?;
        spawn("signals", move || wait_for_end(&end))?;
        spawn("calls", move || serve_calls(&client, &called, &events))?;
        let refreshed = Clock::System.instant();
        Ok((Self { calls, refreshed }, received))
    }

    /// Reads what the screen shows.
    pub(super) fn refresh(&mut self, model: &TopModel) {
        self.refreshed = Clock::System.instant();
        let search = model.search().map(str::to_owned);
        // The thread ends only with the process.
        let _ = self
            .calls
            .send(FeedCall::Refresh(model.screen.clone(), search));
    }

    /// Reads what the screen shows if the last time is long enough ago.
    pub(super) fn refresh_if_due(&mut self, model: &TopModel) {
        let age = Clock::System
            .instant()
            .saturating_duration_since(self.refreshed);
        if age >= model.refresh_interval().max(Duration::from_secs(1)) {
            self.refresh(model);
        }
    }

    /// Calls the gateway.
    pub(super) fn run(&self, command: TopCommand) {
        let _ = self.calls.send(FeedCall::Run(command));
    }
}

fn spawn(name: &str, task: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(task)
        .map(drop)
}

/// Reads ticks forever, and opens the stream again after an error.
fn read_stream(client: &AdminClient, events: &Sender<TopEvent>) {
    let mut backoff = Duration::from_secs(1);
    loop {
        if let Ok(stream) = client.open("GET", "/api/events", None) {
            let mut is_tick = false;
            for line in stream.lines().map_while(Result::ok) {
                if let Some(name) = line.strip_prefix("event: ") {
                    is_tick = name == "tick";
                } else if let Some(data) = line.strip_prefix("data: ").filter(|_| is_tick) {
                    backoff = Duration::from_secs(1);
                    let tick = serde_json::from_str(data).unwrap_or_default();
                    if events.send(TopEvent::Tick(tick)).is_err() {
                        return;
                    }
                }
            }
        }
        thread::sleep(backoff);
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

fn read_keys(events: &Sender<TopEvent>) {
    loop {
        let event = match event::read() {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                key_of(key).map(TopEvent::Key)
            }
            Ok(Event::Resize(..)) => Some(TopEvent::Resized),
            Ok(_) => None,
            Err(_) => Some(TopEvent::Quit),
        };
        let is_end = matches!(event, Some(TopEvent::Quit));
        let is_sent = event.is_none_or(|event| events.send(event).is_ok());
        if is_end || !is_sent {
            return;
        }
    }
}

fn key_of(key: KeyEvent) -> Option<TopKey> {
    let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if has_control => TopKey::CtrlC,
        KeyCode::Char(c) if !has_control => TopKey::Char(c),
        KeyCode::Up => TopKey::Up,
        KeyCode::Down => TopKey::Down,
        KeyCode::Left => TopKey::Left,
        KeyCode::Right => TopKey::Right,
        KeyCode::PageUp => TopKey::PageUp,
        KeyCode::PageDown => TopKey::PageDown,
        KeyCode::Enter => TopKey::Enter,
        KeyCode::Esc => TopKey::Esc,
        KeyCode::Backspace => TopKey::Backspace,
        _ => return None,
    })
}

/// Ends the program on SIGTERM and SIGHUP, so that the terminal is restored.
fn wait_for_end(events: &Sender<TopEvent>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let (terminate, hang_up) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        );
        if let (Ok(mut terminate), Ok(mut hang_up)) = (terminate, hang_up) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
            let _ = events.send(TopEvent::Quit);
        }
    });
}

fn serve_calls(client: &AdminClient, calls: &Receiver<FeedCall>, events: &Sender<TopEvent>) {
    while let Ok(call) = calls.recv() {
        let sent = match call {
            FeedCall::Refresh(screen, search) => {
                refresh(client, &screen, search.as_deref(), events)
            }
            FeedCall::Run(command) => {
                let (text, removed) = run(client, &command);
                events.send(TopEvent::Done(text, removed)).is_ok()
            }
        };
        if !sent {
            return;
        }
    }
}

/// Reads what a screen shows. A part that cannot be read keeps its last state. Returns `false` if the program ends.
fn refresh(
    client: &AdminClient,
    screen: &TopScreen,
    search: Option<&str>,
    events: &Sender<TopEvent>,
) -> bool {
    let send = |read: Result<Value, AdminClientError>, event: fn(Value) -> TopEvent| {
        read.is_err() || read.is_ok_and(|value| events.send(event(value)).is_ok())
    };
    let mut is_sent = send(client.get("/api/status"), TopEvent::Status);
    if matches!(screen, TopScreen::Overview | TopScreen::Rule(_)) {
        is_sent &= send(client.get("/api/rules"), TopEvent::Rules);
        is_sent &= send(client.get("/api/history"), TopEvent::History);
    }
    let rows = match rows(client, screen, search) {
        Ok(rows) => TopEvent::Rows(rows),
        Err(error) => TopEvent::Done(error.to_string(), None),
    };
    let is_failed = matches!(rows, TopEvent::Done(..));
    is_sent && (is_failed || events.send(rows).is_ok())
}

fn rows(
    client: &AdminClient,
    screen: &TopScreen,
    search: Option<&str>,
) -> Result<Vec<ListedRow>, AdminClientError> {
    let (path, rule) = match screen {
        TopScreen::Overview | TopScreen::Help => return Ok(Vec::new()),
        TopScreen::Rule(name) => (format!("/api/rules/{}/top?n=20", escaped(name)), Some(name)),
        TopScreen::Bans { is_likely_false } => {
            let mut parameters = vec![("limit", "100")];
            parameters.extend(search.map(|text| ("q", text)));
            if *is_likely_false {
                parameters.push(("view", "likely_false_positives"));
            }
            (format!("/api/mitigations{}", query(&parameters)), None)
        }
        TopScreen::Upstreams => return Ok(servers(&client.get("/api/upstreams")?)),
    };
    let list = client.get(&path)?;
    let items = list.get("items").unwrap_or(&list).as_array().cloned();
    let text = |object: &Value, name| {
        let text = object.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let row = |object: Value| ListedRow {
        rule: rule.cloned().unwrap_or_else(|| text(&object, "rule")),
        key: text(&object, "key"),
        object,
    };
    Ok(items.unwrap_or_default().into_iter().map(row).collect())
}

fn servers(upstreams: &Value) -> Vec<ListedRow> {
    let mut rows = Vec::new();
    for upstream in upstreams.as_array().into_iter().flatten() {
        let name = upstream
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let servers = upstream.get("servers").and_then(Value::as_array);
        rows.extend(servers.into_iter().flatten().map(|server| {
            ListedRow {
                rule: name.to_owned(),
                key: server
                    .get("address")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                object: server.clone(),
            }
        }));
    }
    rows
}

/// Runs a command. Returns the result as text, and the ban that `z` restores.
fn run(client: &AdminClient, command: &TopCommand) -> (String, Option<Value>) {
    let result = match command {
        TopCommand::Quit | TopCommand::Refresh => return (String::new(), None),
        TopCommand::Unban { rule, key } => {
            let path = format!("/api/mitigations{}", query(&[("rule", rule), ("key", key)]));
            let removed = client.call("DELETE", &path);
            removed.map(|ban| (format!("{key} is unbanned. z undoes."), Some(ban)))
        }
        TopCommand::Ban {
            rule,
            key,
            duration,
        } => {
            let body = json!({ "rule": rule, "key": key, "duration": duration });
            let banned = client.send("POST", "/api/mitigations", &body);
            banned.map(|_| (format!("{key} is banned for {duration}."), None))
        }
        TopCommand::Undo(ban) => {
            let restored = client.send("POST", "/api/mitigations", ban);
            restored.map(|_| ("The ban is restored.".to_owned(), None))
        }
        TopCommand::Reload => {
            let reloaded = client.call("POST", "/api/reload");
            reloaded.map(|_| ("The configuration is reloaded.".to_owned(), None))
        }
    };
    result.unwrap_or_else(|error| (error.to_string(), None))
}
