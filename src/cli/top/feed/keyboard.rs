//! Reads the keyboard, and waits for the signals that end the program.

use std::sync::mpsc::Sender;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::signal::unix::{SignalKind, signal};

use super::TopEvent;
use crate::cli::top::command::TopKey;

/// Reads keys until the terminal is closed.
pub(super) fn read_keys(events: &Sender<TopEvent>) {
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

/// Ends the program on SIGTERM, SIGHUP and SIGINT, so that the terminal is restored.
pub(super) fn wait_for_end(events: &Sender<TopEvent>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let (terminate, hang_up, interrupt) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
            signal(SignalKind::interrupt()),
        );
        let (Ok(mut terminate), Ok(mut hang_up), Ok(mut interrupt)) =
            (terminate, hang_up, interrupt)
        else {
            return;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
            _ = interrupt.recv() => {}
        }
        let _ = events.send(TopEvent::Quit);
    });
}
