//! Colours, signs, and their replacement for plain terminals.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::cli::records::clean;
use crate::cli::top::action_layer::ActionLayer;

/// How the terminal may be used.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cli::top) struct TopStyle {
    pub(in crate::cli::top) has_color: bool,
    pub(in crate::cli::top) is_ascii: bool,
}

// === impl TopStyle ===

impl TopStyle {
    /// Replaces signs that the terminal cannot show. Each takes one column, so nothing moves.
    pub(super) fn finish(self, mut line: Line<'static>) -> Line<'static> {
        if !self.is_ascii {
            return line;
        }
        for span in &mut line.spans {
            if !span.content.is_ascii() {
                span.content = span.content.chars().map(ascii).collect::<String>().into();
            }
        }
        line
    }

    /// One of the terminal's 16 colours.
    pub(super) fn colored(self, color: Color) -> Style {
        if self.has_color {
            Style::new().fg(color)
        } else {
            Style::new()
        }
    }

    /// The colour of a layer. Forwarded requests need none.
    pub(super) fn layer(self, layer: ActionLayer) -> Style {
        self.colored(match layer {
            ActionLayer::Forwarded => Color::Reset,
            ActionLayer::Shadowed => Color::Blue,
            ActionLayer::Blocked => Color::LightRed,
            ActionLayer::Delayed => Color::Yellow,
            ActionLayer::Challenged => Color::Cyan,
            ActionLayer::Other => Color::DarkGray,
        })
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// An action as its sign and its word, in its colour. A dry run says what it would do.
    pub(super) fn action(self, action: &str, is_dry_run: bool) -> Span<'static> {
        let (sign, participle) = action_words(action);
        let text = if is_dry_run {
            format!("{sign} would {}", clean(action))
        } else {
            format!("{sign} {participle}")
        };
        Span::styled(text, self.layer(ActionLayer::of(action)))
    }
}

/// The character of a layer in the split bar. Each layer has its own.
pub(super) const fn layer_char(layer: ActionLayer) -> char {
    match layer {
        ActionLayer::Forwarded => '█',
        ActionLayer::Shadowed => '▒',
        ActionLayer::Blocked => '▓',
        ActionLayer::Delayed => '░',
        ActionLayer::Challenged => '◇',
        ActionLayer::Other => '·',
    }
}

/// The sign and the participle of an action.
pub(super) fn action_words(action: &str) -> (&'static str, String) {
    let (sign, participle) = match action {
        "forward" => ("→", "forwarded"),
        "allow" => ("✓", "allowed"),
        "tag" => ("#", "tagged"),
        "log" => ("≡", "logged"),
        "delay" => ("◔", "delayed"),
        "tarpit" => ("◕", "held, blocked"),
        "challenge" => ("◇", "challenged"),
        "shadow" => ("◐", "shadowed"),
        "divert" => ("↷", "diverted"),
        "block" => ("–", "blocked"),
        "close" => ("×", "closed"),
        "own" => ("·", "gateway error"),
        "refuse" => ("·", "refused by the gateway"),
        other => return ("·", clean(other)),
    };
    (sign, participle.to_owned())
}

fn ascii(c: char) -> char {
    match c {
        c if c.is_ascii() => c,
        '█' | '▇' => '#',
        '▄' | '▅' | '▆' | '▋' | '▊' | '▉' | '▒' | '≡' => '=',
        '▁' | '▂' | '▃' | '▏' | '▎' | '▍' | '▌' | '▓' | '–' | '─' => '-',
        '░' => '+',
        '◇' => 'c',
        '·' => '.',
        '▲' => '!',
        '◆' => '*',
        '●' | '○' => 'o',
        '▶' | '→' | '↷' => '>',
        '←' => '<',
        '↑' => '^',
        '↓' => 'v',
        '×' => 'x',
        '✓' => 'y',
        '◔' | '◕' => 'd',
        '◐' => 's',
        '…' => '~',
        _ => '?',
    }
}
