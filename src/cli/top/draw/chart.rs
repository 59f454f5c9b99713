//! Sparklines, bars and the time axis.

use std::time::Duration;

use ratatui::text::{Line, Span};

use super::layout::{clock_text, grouped_rate, left, right};
use super::style::{TopStyle, layer_char};
use crate::cli::top::action_layer::ActionLayer;
use crate::cli::top::traffic_history::TrafficHistory;
use crate::clock::Timestamp;

/// The width of the name before a sparkline, and of the rate behind it.
const NAME: usize = 11;
const RATE: usize = 13;
/// The time between two marks of the axis.
const MARK: Duration = Duration::from_secs(180);
/// The width of the time at a mark, with a space.
const MARK_WIDTH: usize = 6;

/// Draws rates as blocks of eight heights. Several steps in one column have their mean.
pub(super) fn sparkline(rates: &[f64], width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let means: Vec<f64> = (0..width)
        .map(|column| mean(rates, column, width))
        .collect();
    // Less than one request per second is drawn as next to nothing.
    let largest = means.iter().copied().fold(1.0, f64::max);
    let block = |rate: &f64| {
        let height = (rate / largest * BLOCKS.len() as f64) as usize;
        BLOCKS.get(height.min(BLOCKS.len() - 1)).copied()
    };
    if rates.is_empty() {
        return String::new();
    }
    means.iter().filter_map(block).collect()
}

/// The mean of the rates in one of `width` columns.
fn mean(rates: &[f64], column: usize, width: usize) -> f64 {
    let first = column * rates.len() / width;
    let end = ((column + 1) * rates.len() / width).max(first + 1);
    let part = rates.get(first..end.min(rates.len())).unwrap_or_default();
    part.iter().sum::<f64>() / part.len().max(1) as f64
}

/// Draws a sparkline over the whole width, with its name and the newest rate.
pub(super) fn named_sparkline(
    name: &str,
    rates: &[f64],
    now: f64,
    layer: ActionLayer,
    width: usize,
    style: TopStyle,
) -> Line<'static> {
    let chart = left(&sparkline(rates, chart_width(width)), chart_width(width));
    Line::from(vec![
        Span::raw(left(name, NAME)),
        Span::styled(chart, style.layer(layer)),
        Span::raw(right(&format!("{} /s", grouped_rate(now)), RATE)),
    ])
}

fn chart_width(width: usize) -> usize {
    width.saturating_sub(NAME + RATE)
}

/// Draws the times below a sparkline.
pub(super) fn time_axis(history: &TrafficHistory, width: usize) -> Line<'static> {
    let columns = chart_width(width);
    let total = history.step.as_secs() * history.forwarded.len() as u64;
    let mut axis = String::new();
    if total == 0 || columns < MARK_WIDTH {
        return Line::default();
    }
    let start = history.start.as_secs();
    let first = start.next_multiple_of(MARK.as_secs());
    for seconds in (first..start + total).step_by(MARK.as_secs() as usize) {
        let column = ((seconds - start) as usize * columns) / total as usize;
        if column < axis.len() || column + MARK_WIDTH > columns {
            continue;
        }
        let time = clock_text(Timestamp::from_secs(seconds));
        axis = left(&axis, column) + time.get(..5).unwrap_or_default() + " ";
    }
    Line::raw(" ".repeat(NAME) + &axis)
}

/// Draws shares of 1 as one bar with a character for each layer. A layer of at least 0.5 % has a column.
pub(super) fn split_bar(
    shares: &[(ActionLayer, f64)],
    width: usize,
    style: TopStyle,
) -> Line<'static> {
    let columns = |share: f64| match (share * width as f64).round() as usize {
        0 if share >= 0.005 => 1,
        columns => columns,
    };
    let mut cells: Vec<(ActionLayer, usize)> = shares
        .iter()
        .map(|(layer, share)| (*layer, columns(*share)))
        .collect();
    let sum: usize = cells.iter().map(|(_, columns)| columns).sum();
    // The largest layer takes what rounding has left.
    if let Some((_, largest)) = cells.iter_mut().max_by_key(|(_, columns)| *columns)
        && sum > 0
    {
        *largest = (*largest + width).saturating_sub(sum);
    }
    let spans = cells.into_iter().map(|(layer, columns)| {
        let text = layer_char(layer).to_string().repeat(columns);
        Span::styled(text, style.layer(layer))
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// Draws a share of 1 in eighths of a column.
pub(super) fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    let part = PARTS.get(eighths % 8).copied().unwrap_or_default();
    left(&("█".repeat(eighths / 8) + part), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_has_the_mean_of_each_column() {
        assert_eq!(sparkline(&[0.0, 0.0, 8.0, 8.0], 2), "▁█");
        assert_eq!(sparkline(&[0.0, 8.0], 4), "▁▁██");
        assert_eq!(sparkline(&[0.0, 0.2], 2), "▁▂");
        assert_eq!(sparkline(&[], 4), "");
        assert_eq!(sparkline(&[1.0], 0), "");
    }

    #[test]
    fn a_bar_has_eighths() {
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(0.53, 4), "██▏ ");
        assert_eq!(bar(7.0, 2), "██");
        assert_eq!(bar(f64::NAN, 2), "  ");
    }

    #[test]
    fn a_split_bar_fills_its_width() {
        let text =
            |shares: &[(ActionLayer, f64)]| split_bar(shares, 20, TopStyle::default()).to_string();
        let shares = [
            (ActionLayer::Forwarded, 0.6),
            (ActionLayer::Shadowed, 0.38),
            (ActionLayer::Blocked, 0.01),
            (ActionLayer::Other, 0.01),
        ];
        assert_eq!(text(&shares), "██████████▒▒▒▒▒▒▒▒▓·");
        assert_eq!(text(&[(ActionLayer::Forwarded, 0.0)]), "");
    }

    #[test]
    fn the_axis_has_a_mark_every_three_minutes() {
        let history = TrafficHistory {
            start: Timestamp::from_utc([2026, 11, 18], [2, 59, 0]).unwrap(),
            step: Duration::from_secs(5),
            forwarded: vec![0.0; 180],
            mitigated: Vec::new(),
        };
        let axis = time_axis(&history, 24 + 60).to_string();
        let marks = "               03:00       03:03       03:06       03:09       03:12";
        assert_eq!(axis.trim_end(), marks);
    }
}
