//! What each key does: on a screen, and while a question or an input is open.

use super::{REFRESH, ScreenPause, TopModel};
use crate::cli::top::command::{GatewayChange, TopCommand, TopKey, TopPrompt};
use crate::cli::top::screen::TopScreen;

/// How many rows a page has.
const PAGE: isize = 10;

// === impl TopModel ===

impl TopModel {
    /// Handles a key.
    pub fn press(&mut self, key: TopKey) -> Option<TopCommand> {
        if key == TopKey::CtrlC {
            return Some(TopCommand::Quit);
        }
        match self.prompt.take() {
            Some(prompt) => self.press_in_prompt(prompt, key),
            None => self.press_on_screen(key),
        }
    }

    fn press_on_screen(&mut self, key: TopKey) -> Option<TopCommand> {
        match key {
            TopKey::Up => self.select(-1),
            TopKey::Down => self.select(1),
            TopKey::PageUp => self.select(-PAGE),
            TopKey::PageDown => self.select(PAGE),
            TopKey::Left => self.open_neighbour(-1),
            TopKey::Right => self.open_neighbour(1),
            TopKey::Enter => self.open_selected(),
            TopKey::Esc => self.go_back(),
            TopKey::Char(letter) => self.press_letter(letter),
            TopKey::Backspace | TopKey::CtrlC => None,
        }
    }

    fn press_letter(&mut self, letter: char) -> Option<TopCommand> {
        match letter {
            'q' if self.screen == TopScreen::Overview => return Some(TopCommand::Quit),
            'q' => return self.go_back(),
            'k' => return self.select(-1),
            'j' => return self.select(1),
            'b' => return self.open_bans(false),
            'f' => return self.open_bans(true),
            'd' => return self.open_decisions(),
            'o' => return self.open(TopScreen::Upstreams),
            'w' => return self.open_client(),
            'x' => return self.explain(),
            '?' => return self.open(TopScreen::Help),
            'z' => {
                let undo = self.take_undo()?;
                return Some(TopCommand::Change(GatewayChange::Undo(undo)));
            }
            '/' => self.prompt = Some(TopPrompt::Find(String::new())),
            'u' => self.ask_unban(),
            'U' => self.ask_release(true),
            'B' => self.ask_ban(),
            'r' => self.ask_reload(),
            'a' if matches!(self.screen, TopScreen::Decisions(_)) => {
                self.decisions.toggle_forwarded();
                self.follow_selection();
            }
            'p' => return self.toggle_pause(),
            's' if self.screen == TopScreen::Overview => self.sort_by(self.sort.next()),
            'S' if self.screen == TopScreen::Overview => self.reverse(),
            '+' => self.refresh = (self.refresh + 1).min(REFRESH.len() - 1),
            '-' => self.refresh = self.refresh.saturating_sub(1),
            _ => {}
        }
        None
    }

    fn toggle_pause(&mut self) -> Option<TopCommand> {
        if self.pause.take().is_some() {
            self.decisions.missed = 0;
            return Some(TopCommand::Refresh);
        }
        self.pause = Some(ScreenPause {
            at: self.now,
            gateway: self.gateway_now(),
        });
        None
    }

    fn press_in_prompt(&mut self, prompt: TopPrompt, key: TopKey) -> Option<TopCommand> {
        match (prompt, key) {
            (_, TopKey::Esc) => None,
            (TopPrompt::Confirm { change, .. }, TopKey::Char('y')) => {
                Some(TopCommand::Change(change))
            }
            (TopPrompt::Confirm { .. }, TopKey::Char('n')) => None,
            (TopPrompt::Duration { target, text }, TopKey::Enter) => {
                let duration = text;
                Some(TopCommand::Change(GatewayChange::Ban { target, duration }))
            }
            (TopPrompt::Duration { target, text }, key) => {
                let text = edited(text, key);
                self.prompt = Some(TopPrompt::Duration { target, text });
                None
            }
            (TopPrompt::Find(text), TopKey::Enter) => self.find(&text),
            (TopPrompt::Find(text), key) => {
                self.prompt = Some(TopPrompt::Find(edited(text, key)));
                None
            }
            (prompt, _) => {
                self.prompt = Some(prompt);
                None
            }
        }
    }
}

fn edited(mut text: String, key: TopKey) -> String {
    match key {
        TopKey::Char(c) if !c.is_control() && text.len() < 256 => text.push(c),
        TopKey::Backspace => drop(text.pop()),
        _ => {}
    }
    text
}
