//! A chart of the overshoot over the number of nodes, as SVG: one panel per limit, both axes logarithmic.

use std::fmt::Write;

use crate::{Campaign, Comparison};

const PANEL: f64 = 250.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 50.0;
/// The overshoot at the lower and upper end of the axis, in per cent, as powers of ten.
const DECADES: (i32, i32) = (-1, 4);
const COLOURS: [&str; 3] = ["#1668b8", "#8fb8de", "#c8501e"];
const LABELS: [&str; 3] = ["async, p99", "async, bound p99", "delta sync, p99"];

/// The chart for `sliding_window` and a round trip of 0.5 ms.
pub fn chart(campaign: &Campaign, rows: &[Comparison]) -> String {
    let panels = campaign.limits.len() as f64;
    let width = LEFT + panels * (PANEL + 20.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\">Overshoot of hot keys over the number of nodes \
         (sliding_window, round trip 0.5 ms, sync interval 100 ms)</text>\n",
        TOP + HEIGHT + 60.0,
    );
    for (index, &limit) in campaign.limits.iter().enumerate() {
        let left = LEFT + index as f64 * (PANEL + 20.0);
        frame(&mut svg, left, limit, &campaign.nodes, index == 0);
        let points: Vec<_> = rows
            .iter()
            .filter(|row| {
                let (algorithm, _, row_limit, round_trip) = row.shared.order();
                algorithm == "sliding_window" && row_limit == limit && round_trip == 500
            })
            .map(|row| {
                let shares = [
                    row.shared.overshoot[1],
                    row.shared.bound[1],
                    row.delta.overshoot[1],
                ];
                (row.shared.scenario.fleet.nodes, shares)
            })
            .collect();
        for (series, colour) in COLOURS.iter().enumerate() {
            let line = points
                .iter()
                .map(|(nodes, shares)| (left + across(*nodes), down(shares[series])));
            draw(&mut svg, line, colour);
        }
    }
    legend(&mut svg);
    svg.push_str("</svg>\n");
    svg
}

fn frame(svg: &mut String, left: f64, limit: u64, nodes: &[u32], is_first: bool) {
    let _ = writeln!(
        svg,
        "<rect x=\"{left}\" y=\"{TOP}\" width=\"{PANEL}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#888\"/>\n\
         <text x=\"{}\" y=\"{}\">limit {limit}</text>",
        left + 5.0,
        TOP - 6.0,
    );
    for decade in DECADES.0..=DECADES.1 {
        let share = 10f64.powi(decade) / 100.0;
        let height = down(share);
        let end = left + PANEL;
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {height:.1}H{end}\" stroke=\"#ddd\"/>"
        );
        if is_first {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{} %</text>",
                left - 5.0,
                height + 4.0,
                share * 100.0,
            );
        }
    }
    for &count in nodes {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{count}</text>",
            left + across(count),
            TOP + HEIGHT + 16.0,
        );
    }
}

fn draw(svg: &mut String, points: impl Iterator<Item = (f64, f64)>, colour: &str) {
    let mut path = String::new();
    for (x, y) in points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{x:.1} {y:.1}");
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
    );
}

fn legend(svg: &mut String) {
    let y = TOP + HEIGHT + 42.0;
    for (index, (label, colour)) in LABELS.iter().zip(COLOURS).enumerate() {
        let x = LEFT + index as f64 * 160.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"18\" height=\"4\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{y}\">{label}</text>",
            y - 6.0,
            x + 24.0,
        );
    }
}

/// The horizontal position of a number of nodes: 1 to 2,000.
fn across(nodes: u32) -> f64 {
    f64::from(nodes).ln() / 2_000f64.ln() * PANEL
}

/// The vertical position of an overshoot as a share of the limit. None is drawn on the lower edge.
fn down(share: f64) -> f64 {
    let (low, high) = (f64::from(DECADES.0), f64::from(DECADES.1));
    let power = (share * 100.0).max(1e-9).log10().clamp(low, high);
    TOP + HEIGHT * (high - power) / (high - low)
}
