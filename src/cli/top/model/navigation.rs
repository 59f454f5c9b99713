//! How one screen leads to another.

use serde_json::json;

use super::{RowSelection, TopModel};
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::command::TopCommand;
use crate::cli::top::screen::{
    BanSearch, ExplainSubject, ListedRow, RowKind, ScreenFigures, StreamFilter, TopScreen,
};

/// The number of screens to which `esc` leads.
const MAX_BACK: usize = 32;

// === impl TopModel ===

impl TopModel {
    /// Opens a screen, from which `esc` leads back.
    pub(super) fn open(&mut self, screen: TopScreen) -> Option<TopCommand> {
        if screen == self.screen {
            return None;
        }
        // A screen that is open already is not opened twice.
        let is_open = |(known, _): &(TopScreen, RowSelection)| *known == screen;
        if let Some(depth) = self.back.iter().position(is_open) {
            self.back.truncate(depth + 1);
            return self.go_back();
        }
        let selection = std::mem::take(&mut self.selection);
        self.back.push((self.screen.clone(), selection));
        if self.back.len() > MAX_BACK {
            self.back.remove(1);
        }
        self.show(screen)
    }

    /// Goes back to the screen before. `None` on the overview.
    pub(super) fn go_back(&mut self) -> Option<TopCommand> {
        let (screen, mut selection) = self.back.pop()?;
        if let (TopScreen::Rule(name), TopScreen::Overview) = (&self.screen, &screen) {
            selection.id = Some((name.clone(), String::new()));
        }
        let command = self.show(screen);
        self.selection = selection;
        self.follow_selection();
        command
    }

    fn show(&mut self, screen: TopScreen) -> Option<TopCommand> {
        self.selection = RowSelection::default();
        self.figures = ScreenFigures::default();
        if let TopScreen::Decisions(filter) = &screen {
            self.decisions.follow(filter);
        }
        self.screen = screen;
        Some(TopCommand::Refresh)
    }

    /// Opens the selected rule, ban or server, or what the screen suggests.
    pub(super) fn open_selected(&mut self) -> Option<TopCommand> {
        let screen = match (&self.screen, self.selected_row()) {
            (TopScreen::Overview, _) => {
                let row = self.rules.get(self.selection.line)?;
                TopScreen::Rule(row.name.clone())
            }
            (TopScreen::Ban { rule, .. }, _) => TopScreen::Rule(rule.clone()),
            (TopScreen::Client(id), None) => TopScreen::Bans(BanSearch {
                text: Some(id.clone()),
                ..BanSearch::default()
            }),
            (TopScreen::Decisions(_) | TopScreen::Client(_), Some(row))
                if row.kind == RowKind::Decision =>
            {
                return self.explain();
            }
            (TopScreen::Bans(_) | TopScreen::Client(_) | TopScreen::Rule(_), Some(row))
                if row.is_banned() =>
            {
                TopScreen::Ban {
                    rule: row.rule.clone(),
                    key: row.key.clone(),
                }
            }
            (TopScreen::Upstreams, Some(row)) => TopScreen::Server {
                upstream: row.rule.clone(),
                address: row.key.clone(),
            },
            (TopScreen::Rule(_), Some(_)) => return self.explain(),
            _ => return None,
        };
        let key = match (&self.screen, &screen) {
            (TopScreen::Ban { rule, key }, TopScreen::Rule(_)) => Some((rule.clone(), key.clone())),
            _ => None,
        };
        let command = self.open(screen);
        if key.is_some() {
            self.selection.id = key;
        }
        command
    }

    /// Opens the rule before or after the one that is open.
    pub(super) fn open_neighbour(&mut self, step: isize) -> Option<TopCommand> {
        let TopScreen::Rule(name) = &self.screen else {
            return None;
        };
        let index = self.rules.iter().position(|row| row.name == *name)?;
        let next = index.checked_add_signed(step)?;
        let name = self.rules.get(next)?.name.clone();
        self.show(TopScreen::Rule(name))
    }

    /// Opens active bans: those of the open rule, if there is one.
    pub(super) fn open_bans(&mut self, is_likely_false: bool) -> Option<TopCommand> {
        self.open(TopScreen::Bans(BanSearch {
            is_likely_false,
            rule: self.open_rule().filter(|_| !is_likely_false),
            text: None,
        }))
    }

    /// Opens the decisions: those of the open rule or client, if there is one.
    pub(super) fn open_decisions(&mut self) -> Option<TopCommand> {
        let ip = match (&self.screen, &self.figures.about) {
            (TopScreen::Client(_), Some(client)) => Some(client.text("ip").to_owned()),
            _ => None,
        };
        self.open(TopScreen::Decisions(StreamFilter {
            rule: self.open_rule(),
            ip: ip.filter(|ip| !ip.is_empty()),
        }))
    }

    fn open_rule(&self) -> Option<String> {
        match &self.screen {
            TopScreen::Rule(name) | TopScreen::Ban { rule: name, .. } => Some(name.clone()),
            _ => None,
        }
    }

    /// Opens the rule with this name, or looks for a client.
    pub(super) fn find(&mut self, text: &str) -> Option<TopCommand> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let screen = if self.rules.iter().any(|row| row.name == text) {
            TopScreen::Rule(text.to_owned())
        } else {
            TopScreen::Client(text.to_owned())
        };
        self.open(screen)
    }

    /// Opens the client of the selected key, ban or decision.
    pub(super) fn open_client(&mut self) -> Option<TopCommand> {
        let id = self.selected_row()?.client_id()?;
        self.open(TopScreen::Client(id))
    }

    /// Explains the newest request of the selected key or ban, or of the selected decision.
    pub(super) fn explain(&mut self) -> Option<TopCommand> {
        let subject = match (self.selected_row(), &self.screen) {
            (Some(row), _) => explain_subject(row),
            (None, TopScreen::Client(_)) => {
                let client = self.figures.about.as_ref()?;
                let ip = client.text("ip");
                let request = json!({ "method": "GET", "url": "/", "ip": ip });
                (!ip.is_empty()).then_some(ExplainSubject::Request(request))
            }
            (None, _) => return None,
        };
        match subject {
            Some(subject) => self.open(TopScreen::Explanation(subject)),
            None => {
                self.show_notice("No request with this key is known.");
                None
            }
        }
    }
}

fn explain_subject(row: &ListedRow) -> Option<ExplainSubject> {
    match row.kind {
        RowKind::HotKey | RowKind::Decision => row.explain_request().map(ExplainSubject::Request),
        RowKind::Ban => Some(ExplainSubject::Ban {
            rule: row.rule.clone(),
            key: row.key.clone(),
        }),
        RowKind::Server => None,
    }
}
