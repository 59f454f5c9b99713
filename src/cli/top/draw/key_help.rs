//! The keys, as each screen and the help list them.

use ratatui::text::Line;

use super::layout::cut;
use crate::cli::top::screen::TopScreen;

/// All keys.
const ALL_KEYS: &str = "\
q            quits; goes back on other screens than the first. Ctrl-C quits
↑ ↓ j k      select a row; page up and page down move by ten
← →          previous or next rule
enter        opens the selected rule, ban or server
esc          goes back
/            finds an address, a key, a request id or a rule
u            unbans the selected key, or all keys of a client; asks first
U            on the screen of a client: also exempts its address for 1 h
z            undoes the last change, within 10 s
B            bans the selected key by hand; asks for a duration
x            explains the newest request of a key or a ban, or a decision
w            shows the client of the selected key, ban or decision
b f          bans; likely false positives
d            decisions: of the open rule or client, if there is one
a            in the decisions: also requests that no rule mitigates
o            upstreams
p            pauses the screen; the stream stays open and is counted
s S          sort the rules: as evaluated, mitigated, matched, bans; reverse
+ -          refresh every 1, 2, 5 or 10 s
r            reloads the configuration; asks first

▲ ◆ ○        critical, warning, note
█ ▒ ▓ ░ ◇ ·  forwarded, shadowed, blocked, delayed, challenged, other
dry cand off a dry run; a rule with a candidate; a disabled rule";

/// The number of lines of the help.
pub(in crate::cli::top) const HELP_LINES: usize = 24;

/// Returns the lines of the help, cut to `width`.
pub(super) fn all_keys(width: usize) -> Vec<Line<'static>> {
    let lines = ALL_KEYS.lines();
    lines.map(|line| Line::raw(cut(line, width))).collect()
}

/// Returns the most important keys of a screen, separated by two spaces, and what follows them.
pub(super) const fn key_help(screen: &TopScreen) -> (&'static str, &'static str) {
    let items = match screen {
        TopScreen::Overview => {
            "q quit  ↑↓ select  enter open  / find  b bans  d decisions  s sort  p pause  o upstreams  r reload"
        }
        TopScreen::Rule(_) => {
            "esc back  ↑↓ select  u unban  B ban  x explain  w client  d its decisions  b its bans  / find  p pause"
        }
        TopScreen::Bans(_) | TopScreen::Ban { .. } => {
            "esc back  ↑↓ select  enter open  u unban  x explain  w client  f likely false positives  / find"
        }
        TopScreen::Decisions(_) => {
            "esc back  ↑↓ select  x explain  w client  a all  p pause  u unban  / find"
        }
        TopScreen::Client(_) => {
            "esc back  u unban  U unban, exempt 1 h  x explain  d decisions  z undo"
        }
        TopScreen::Upstreams => "esc back  ↑↓ select  enter open  p pause",
        TopScreen::Server { .. } => "esc back  p pause",
        TopScreen::Explanation(_) => "esc back  ↑↓ scroll",
        TopScreen::Help => return ("esc back  ↑↓ scroll", "q back"),
    };
    (items, "? more keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_80_columns_and_has_its_number_of_lines() {
        assert_eq!(all_keys(80), all_keys(200));
        assert_eq!(all_keys(80).len(), HELP_LINES);
    }
}
