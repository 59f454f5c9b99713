//! What each key does: on a screen, and while a question or an input is open.

use super::{ConfirmedAction, REFRESH, TopCommand, TopKey, TopModel, TopPrompt, TopScreen};

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
            TopKey::Char('q') if self.screen == TopScreen::Overview => {
                return Some(TopCommand::Quit);
            }
            TopKey::Char('q') | TopKey::Esc => return self.open(TopScreen::Overview),
            TopKey::Up | TopKey::Char('k') => self.select(-1),
            TopKey::Down | TopKey::Char('j') => self.select(1),
            TopKey::PageUp => self.select(-10),
            TopKey::PageDown => self.select(10),
            TopKey::Left => return self.open_neighbour(-1),
            TopKey::Right => return self.open_neighbour(1),
            TopKey::Enter => return self.open_selected(),
            TopKey::Char('b') => {
                return self.open(TopScreen::Bans {
                    is_likely_false: false,
                });
            }
            TopKey::Char('f') => {
                return self.open(TopScreen::Bans {
                    is_likely_false: true,
                });
            }
            TopKey::Char('o') => return self.open(TopScreen::Upstreams),
            TopKey::Char('?') => return self.open(TopScreen::Help),
            TopKey::Char('/') => self.prompt = Some(TopPrompt::Find(String::new())),
            TopKey::Char('p') => self.toggle_pause(),
            TopKey::Char('s') => self.sort_by(self.sort.next()),
            TopKey::Char('S') => self.reverse(),
            TopKey::Char('+') => self.refresh = (self.refresh + 1).min(REFRESH.len() - 1),
            TopKey::Char('-') => self.refresh = self.refresh.saturating_sub(1),
            TopKey::Char('r') => self.prompt = Some(TopPrompt::Confirm(ConfirmedAction::Reload)),
            TopKey::Char('z') => return self.removed.take().map(TopCommand::Undo),
            TopKey::Char('u') => {
                let target = self.selected_key();
                let ask = |(rule, key)| TopPrompt::Confirm(ConfirmedAction::Unban(rule, key));
                self.prompt = target.map(ask);
            }
            TopKey::Char('B') => {
                let text = "10m".to_owned();
                let ask = |target| TopPrompt::Duration { target, text };
                self.prompt = self.selected_key().map(ask);
            }
            _ => {}
        }
        None
    }

    fn press_in_prompt(&mut self, prompt: TopPrompt, key: TopKey) -> Option<TopCommand> {
        match (prompt, key) {
            (_, TopKey::Esc) => None,
            (TopPrompt::Confirm(action), TopKey::Char('y')) => Some(match action {
                ConfirmedAction::Unban(rule, key) => TopCommand::Unban { rule, key },
                ConfirmedAction::Reload => TopCommand::Reload,
            }),
            (TopPrompt::Confirm(_), TopKey::Char('n')) => None,
            (TopPrompt::Duration { target, text }, TopKey::Enter) => {
                let (rule, key) = target;
                let duration = text;
                Some(TopCommand::Ban {
                    rule,
                    key,
                    duration,
                })
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
