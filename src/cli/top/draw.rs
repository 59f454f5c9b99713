//! Turns the state of `lockgate top` into lines. Text of clients is escaped. Colour never carries a meaning alone.

mod ban_screens;
mod chart;
mod client_screen;
mod decision_screen;
mod explanation;
mod frame;
mod key_help;
mod layout;
mod list;
mod overview;
mod rule_screen;
mod rule_table;
mod style;
mod upstream_screens;

use ratatui::Frame;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

pub(super) use self::key_help::HELP_LINES;
pub(super) use self::style::TopStyle;
use super::model::TopModel;
use super::screen::TopScreen;

/// The space for a part of the screen.
#[derive(Clone, Copy, Debug)]
struct DrawArea {
    width: usize,
    height: usize,
    style: TopStyle,
}

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &TopModel, style: TopStyle) {
    let size = frame.area();
    let area = DrawArea {
        width: size.width.into(),
        height: size.height.into(),
        style,
    };
    frame.render_widget(Paragraph::new(lines(model, area)), size);
}

/// Returns the lines of a screen.
fn lines(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let style = area.style;
    let is_framed = area.height >= 8;
    let mut lines = vec![frame::head(model, area.width)];
    let footer = frame::footer(model, area, is_framed);
    if is_framed {
        lines.push(frame::ruler(area.width));
    }
    let height = area.height.saturating_sub(lines.len() + footer.len());
    let mut content = content(model, DrawArea { height, ..area });
    content.resize(height, Line::default());
    content.extend(footer);
    if model.lost().is_some() {
        let dim = |line: Line<'static>| line.patch_style(style.dim());
        content = content.into_iter().map(dim).collect();
    }
    lines.extend(content);
    lines.into_iter().map(|line| style.finish(line)).collect()
}

fn content(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(error) = &model.figures.error {
        lines.push(frame::error(error, area));
    }
    let height = area.height.saturating_sub(lines.len());
    let area = DrawArea { height, ..area };
    lines.extend(match &model.screen {
        TopScreen::Overview => overview::overview(model, area),
        TopScreen::Rule(name) => rule_screen::rule(model, name, area),
        TopScreen::Bans(search) => ban_screens::bans(model, search, area),
        TopScreen::Ban { rule, key } => ban_screens::ban(model, rule, key, area),
        TopScreen::Decisions(filter) => decision_screen::decisions(model, filter, area),
        TopScreen::Upstreams => upstream_screens::upstreams(model, area),
        TopScreen::Server { upstream, address } => {
            upstream_screens::server(model, upstream, address, area)
        }
        TopScreen::Client(id) => client_screen::client(model, id, area),
        TopScreen::Explanation(_) => explanation::explanation(model, area),
        TopScreen::Help => list::scrolled(
            key_help::all_keys(area.width),
            model.selected_index(),
            height,
        ),
    });
    lines
}

#[cfg(test)]
mod tests;
