//! Lists that scroll so that the selected row is visible, and text that scrolls.

use ratatui::text::{Line, Span};

use super::style::TopStyle;

/// Returns the header and the rows around the selected one, at most `height` lines. `row` draws a row without the sign of
/// the selection.
pub(super) fn list(
    header: Line<'static>,
    count: usize,
    selected: usize,
    height: usize,
    style: TopStyle,
    row: impl Fn(usize) -> Line<'static>,
) -> Vec<Line<'static>> {
    let visible = height.saturating_sub(1).max(1);
    let first = (selected + 1).saturating_sub(visible);
    let mut lines = vec![header];
    let rows = (first..count).take(visible);
    lines.extend(rows.map(|index| {
        let is_selected = index == selected;
        let sign = if is_selected { "▶" } else { " " };
        let mut line = row(index);
        line.spans.insert(0, Span::raw(sign));
        if is_selected {
            line = line.patch_style(style.selected());
        }
        line
    }));
    lines
}

/// Returns the part of a text that starts at a line, at most `height` lines. The last line stays on the screen.
pub(super) fn scrolled(
    lines: Vec<Line<'static>>,
    first: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let last = lines.len().saturating_sub(height);
    lines
        .into_iter()
        .skip(first.min(last))
        .take(height)
        .collect()
}
