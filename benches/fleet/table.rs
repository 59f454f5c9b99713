//! The report in Markdown.

use std::fmt::Write;

use crate::summary::Summary;
use crate::{Campaign, Comparison};

const ACCURACY: &str = "\
| nodes | limit | round trip | hot keys | **async**: overshoot p50 / p99 | bound p50 / p99 | largest share of its bound | keys above their bound | delta sync: overshoot p50 / p99 | innocent refused: **async** | delta sync | limit / nodes |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const COST: &str = "\
| algorithm | nodes | limit | **async**: calls/s of the fleet | per node | reports of a key/s | events/s | delta sync: calls/s of the fleet | hot keys admitted, against a lone gateway: **async** | delta sync | limit / nodes |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// The whole report.
pub fn report(campaign: &Campaign, rows: &[Comparison]) -> String {
    let mut text = format!(
        "# A limit shared by a fleet\n\n\
         Written by `benches/fleet/run`. [README.md](README.md) describes what is simulated.\n\n\
         {} requests per second for {} keys during {} s; limits per 60 s; `sync_interval` = 100 ms.\n",
        campaign.rate, campaign.keys, campaign.seconds,
    );
    for algorithm in ["sliding_window", "token_bucket"] {
        let _ = write!(text, "\n## Accuracy of {algorithm}\n\n{ACCURACY}");
        for row in rows.iter().filter(|row| row.shared.order().0 == algorithm) {
            accuracy(&mut text, row);
        }
    }
    let _ = write!(text, "\n## Cost, with a round trip of 0.5 ms\n\n{COST}");
    for row in rows.iter().filter(|row| row.shared.order().3 == 500) {
        cost(&mut text, row);
    }
    let hot: usize = rows.iter().map(|row| row.shared.hot_keys).sum();
    let above: usize = rows.iter().map(|row| row.shared.above_bound).sum();
    let _ = writeln!(
        text,
        "\nHot keys in all rows: {hot}, above their bound: {above}."
    );
    text
}

fn accuracy(text: &mut String, row: &Comparison) {
    let (_, nodes, limit, round_trip) = row.shared.order();
    let pair = |[median, high]: [f64; 2]| format!("{} / {}", percent(median), percent(high));
    let _ = writeln!(
        text,
        "| {nodes} | {limit} | {} ms | {} | **{}** | {} | {:.2} | {} | {} | {} | {} | {} |",
        round_trip as f64 / 1e3,
        row.shared.hot_keys,
        pair(row.shared.overshoot),
        pair(row.shared.bound),
        row.shared.worst,
        row.shared.above_bound,
        pair(row.delta.overshoot),
        fine(&row.shared),
        fine(&row.delta),
        fine(&row.divided),
    );
}

fn cost(text: &mut String, row: &Comparison) {
    let (algorithm, nodes, limit, _) = row.shared.order();
    let _ = writeln!(
        text,
        "| {algorithm} | {nodes} | {limit} | {:.0} | {:.1} | {:.0} | {:.0} | {:.0} | {} | {} | {} |",
        row.shared.calls,
        row.shared.calls / f64::from(nodes),
        row.shared.merges,
        row.shared.events,
        row.delta.calls,
        percent(row.shared.hot_admitted),
        percent(row.delta.hot_admitted),
        percent(row.divided.hot_admitted),
    );
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn fine(summary: &Summary) -> String {
    if summary.innocent_refused == 0.0 {
        return "0".to_owned();
    }
    format!("{:.4} %", summary.innocent_refused * 100.0)
}
