//! Questions before a change of the gateway.

use super::TopModel;
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::command::{BanTarget, ChangeResult, GatewayChange, TopPrompt};
use crate::cli::top::screen::{ListedRow, RowKind, TopScreen, key_name};

// === impl TopModel ===

impl TopModel {
    /// Asks whether to unban the selected key, or on the screen of a client, all its keys.
    pub(super) fn ask_unban(&mut self) {
        if matches!(self.screen, TopScreen::Client(_)) {
            return self.ask_release(false);
        }
        let Some(row) = self
            .selected_row()
            .filter(|row| row.kind != RowKind::Server)
        else {
            return;
        };
        let name = key_name(&row.key).to_owned();
        if !row.is_banned() {
            return self.show_notice(&format!("{name} is not banned."));
        }
        let question = format!("Unban {name} from {}?", row.rule);
        let bans = vec![target_of(row)];
        self.prompt = Some(TopPrompt::Confirm {
            question,
            change: GatewayChange::Release {
                name,
                bans,
                exempt: None,
            },
        });
    }

    /// Asks whether to remove all bans of the client on the screen, and whether to exempt it.
    pub(super) fn ask_release(&mut self, is_exempted: bool) {
        let TopScreen::Client(id) = &self.screen else {
            return;
        };
        let Some(client) = &self.figures.about else {
            return;
        };
        let ip = client.text("ip").to_owned();
        let bans = client.list("bans").iter();
        let bans: Vec<_> = bans
            .map(|ban| target_of(&ListedRow::of(RowKind::Ban, ban)))
            .collect();
        let name = if ip.is_empty() {
            id.clone()
        } else {
            ip.clone()
        };
        let exempt = (is_exempted && !ip.is_empty()).then_some(ip);
        let question = match (bans.len(), &exempt) {
            (0, None) if is_exempted => {
                return self.show_notice("Only an address can be exempted.");
            }
            (0, None) => return self.show_notice("No ban applies."),
            (0, Some(_)) => format!("Exempt {name} for 1 h?"),
            (1, None) => format!("Unban {name}?"),
            (1, Some(_)) => format!("Unban {name} and exempt it for 1 h?"),
            (count, None) => format!("Unban {name}, {count} keys?"),
            (count, Some(_)) => format!("Unban {name}, {count} keys, and exempt it for 1 h?"),
        };
        self.prompt = Some(TopPrompt::Confirm {
            question,
            change: GatewayChange::Release { name, bans, exempt },
        });
    }

    /// Asks how long to ban the selected key.
    pub(super) fn ask_ban(&mut self) {
        let row = self.selected_row().filter(|row| !row.rule.is_empty());
        let Some(row) = row.filter(|row| row.kind != RowKind::Server) else {
            return;
        };
        let rule = self.rules.iter().find(|rule| rule.name == row.rule);
        let text = rule.map_or("10m", |rule| rule.ban_duration()).to_owned();
        let target = target_of(row);
        self.prompt = Some(TopPrompt::Duration { target, text });
    }

    /// Asks whether to reload the configuration.
    pub(super) fn ask_reload(&mut self) {
        self.prompt = Some(TopPrompt::Confirm {
            question: "Reload the configuration?".to_owned(),
            change: GatewayChange::Reload,
        });
    }

    /// Shows a sentence for ten seconds.
    pub(super) fn show_notice(&mut self, text: &str) {
        self.take_result(ChangeResult {
            text: text.to_owned(),
            undo: None,
        });
    }
}

fn target_of(row: &ListedRow) -> BanTarget {
    // The id of a decision is that of the request.
    let has_id = row.kind != RowKind::Decision;
    let id = row.object.object("id").as_str().filter(|_| has_id);
    BanTarget {
        rule: row.rule.clone(),
        key: row.key.clone(),
        id: id.map(str::to_owned),
    }
}
