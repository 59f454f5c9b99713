//! The keys, as each screen and the help list them.

use ratatui::text::Line;

use crate::cli::top::screen::TopScreen;

/// All keys.
const ALL_KEYS: &str = "\
q            quits; on another screen than the first, goes back. Ctrl-C always quits
↑ ↓ j k      select a row; page up and page down by ten
← →          previous or next rule
enter        opens the selected rule, ban or server
esc          goes back
/            finds an address, a key, a request id or a rule, and shows every ban that applies
u            unbans the selected key, or all keys of the client; asks first
U            on the screen of a client: also exempts its address for 1 h
z            undoes the last change, within 10 s
B            bans the selected key by hand; asks for a duration
x            explains the newest request of the selected key or ban, or the selected decision
w            shows the client of the selected key, ban or decision
b f          bans; likely false positives
d            decisions: of the open rule or client, if there is one
a            in the decisions: also those in which no rule mitigates the request
o            upstreams
p            pauses the screen. The stream stays open and is counted
s S          sort the rules: as evaluated, most mitigated, most matched, most bans; reverse
+ -          refresh every 1, 2, 5 or 10 s
r            reloads the configuration; asks first

▲ ◆ ○        critical, warning, note
█ ▒ ▓ ░ ◇ ·  forwarded, shadowed, blocked, delayed, challenged, other
dry, cand    a rule that only counts what it would mitigate; a rule with a candidate limit";

/// Returns the lines of the help.
pub(super) fn all_keys() -> Vec<Line<'static>> {
    ALL_KEYS.lines().map(Line::raw).collect()
}

/// Returns the most important keys of a screen, and what follows them.
pub(super) const fn key_help(screen: &TopScreen) -> (&'static [&'static str], &'static str) {
    let items: &[&str] = match screen {
        TopScreen::Overview => &[
            "q quit",
            "↑↓ select",
            "enter open",
            "/ find",
            "b bans",
            "d decisions",
            "s sort",
            "p pause",
            "o upstreams",
            "r reload",
        ],
        TopScreen::Rule(_) => &[
            "esc back",
            "↑↓ select",
            "u unban",
            "B ban",
            "x explain",
            "w client",
            "d its decisions",
            "b its bans",
            "/ find",
            "p pause",
        ],
        TopScreen::Bans(_) | TopScreen::Ban { .. } => &[
            "esc back",
            "↑↓ select",
            "enter open",
            "u unban",
            "x explain",
            "w client",
            "f likely false positives",
            "/ find",
        ],
        TopScreen::Decisions(_) => &[
            "esc back",
            "↑↓ select",
            "x explain",
            "w client",
            "a all",
            "p pause",
            "u unban",
            "/ find",
        ],
        TopScreen::Client(_) => &[
            "esc back",
            "u unban",
            "U unban, exempt 1 h",
            "x explain",
            "d decisions",
            "z undo",
        ],
        TopScreen::Upstreams => &["esc back", "↑↓ select", "enter open", "p pause"],
        TopScreen::Server { .. } => &["esc back", "p pause"],
        TopScreen::Explanation(_) => &["esc back", "↑↓ scroll"],
        TopScreen::Help => return (&["esc back", "↑↓ scroll"], "q back"),
    };
    (items, "? more keys")
}
