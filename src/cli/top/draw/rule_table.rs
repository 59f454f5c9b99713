//! The table of the rules. On a narrow screen, columns disappear: first KEYS, then the sparkline, then LIMIT. Below 60
//! columns, each rule has its name and its rates.

use ratatui::text::{Line, Span};

use super::DrawArea;
use super::chart::sparkline;
use super::layout::{cut, grouped, grouped_rate, left, right, styled};
use super::list::list;
use crate::cli::records::clean;
use crate::cli::top::action_layer::ActionLayer;
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::model::TopModel;
use crate::cli::top::rule_row::RuleRow;

const NAME: usize = 16;
const LIMIT: usize = 12;
const ACTION: usize = 11;
const MATCHED: usize = 9;
const MITIGATED: usize = 11;
const KEYS: usize = 7;
const BANS: usize = 6;
const MIN_SPARKS: usize = 8;
const USUAL_SPARKS: usize = 18;
/// Name, action, rates and bans, with the sign of the selection and the spaces between columns.
const FIXED: usize = 1 + NAME + 1 + ACTION + 1 + MATCHED + 1 + MITIGATED + 1 + BANS;

/// The widths of the columns that depend on the width of the screen. `None` for a hidden column.
struct RuleColumns {
    name: usize,
    limit: Option<usize>,
    sparks: Option<usize>,
    keys: Option<usize>,
}

/// The columns below 60 columns.
struct CompactColumns {
    name: usize,
    /// Whether there is space for more than the name and the mitigated requests.
    has_all: bool,
}

/// Returns the table with its header, at most as high as the area.
pub(super) fn rule_table(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let rules = &model.rules;
    if rules.is_empty() && !model.status.is_null() {
        let text = "There are no rules: see `lockgate help rules`.";
        return vec![Line::raw(cut(text, area.width))];
    }
    let (width, style) = (area.width, area.style);
    let selected = model.selected_index();
    if width < 60 {
        let header = compact_header(width, &model.sort_name());
        return list(header, rules.len(), selected, area.height, style, |index| {
            rules
                .get(index)
                .map_or_else(Line::default, |row| compact(row, area))
        });
    }
    let columns = RuleColumns::new(width);
    let header = columns.header(&model.sort_name());
    list(header, rules.len(), selected, area.height, style, |index| {
        rules
            .get(index)
            .map_or_else(Line::default, |row| columns.row(row, area))
    })
}

fn compact_header(width: usize, sort: &str) -> Line<'static> {
    let columns = CompactColumns::new(width);
    let mut cells = vec![left(&title(sort), columns.name)];
    if columns.has_all {
        cells.push(right("MATCHED/S", MATCHED));
    }
    cells.push(right("MITIGATED/S", MITIGATED));
    if columns.has_all {
        cells.push(right("BANS", BANS));
    }
    Line::raw(format!(" {}", cells.join(" ")))
}

fn compact(row: &RuleRow, area: DrawArea) -> Line<'static> {
    let columns = CompactColumns::new(area.width);
    let mut cells = vec![named(row, columns.name)];
    if columns.has_all {
        cells.push(right(&grouped_rate(row.matched_per_s), MATCHED));
    }
    cells.push(right(&mitigated(row), MITIGATED));
    if columns.has_all {
        cells.push(right(&count(row.bans), BANS));
    }
    Line::raw(cells.join(" "))
}

/// The order of the rules, if it is not that of their evaluation.
fn title(sort: &str) -> String {
    if sort == "as evaluated" {
        "RULE".to_owned()
    } else {
        format!("RULE, {sort}")
    }
}

/// The name with its signs at the end of the column.
fn named(row: &RuleRow, width: usize) -> String {
    let signs = row.signs();
    if signs.is_empty() || width < signs.len() + 4 {
        return left(&clean(&row.name), width);
    }
    let name = width - signs.len() - 1;
    format!("{} {signs}", left(&clean(&row.name), name))
}

fn mitigated(row: &RuleRow) -> String {
    if row.is_dry_run() {
        format!("({})", grouped_rate(row.would_mitigate_per_s))
    } else {
        grouped_rate(row.mitigated_per_s)
    }
}

fn count(number: Option<u64>) -> String {
    number.map_or_else(|| "–".to_owned(), grouped)
}

// === impl CompactColumns ===

impl CompactColumns {
    fn new(width: usize) -> Self {
        let has_all = width >= 44;
        let more = if has_all { 1 + MATCHED + 1 + BANS } else { 0 };
        Self {
            name: width.saturating_sub(1 + 1 + MITIGATED + more),
            has_all,
        }
    }
}

// === impl RuleColumns ===

impl RuleColumns {
    fn new(width: usize) -> Self {
        let mut free = width.saturating_sub(FIXED);
        let mut take = |wanted: usize, needed: usize| {
            let is_enough = free >= needed;
            if is_enough {
                free -= wanted + 1;
            }
            is_enough.then_some(wanted)
        };
        let limit = take(LIMIT, LIMIT + 1);
        let sparks = take(MIN_SPARKS, MIN_SPARKS + 1);
        let keys = take(KEYS, KEYS + 1 + USUAL_SPARKS - MIN_SPARKS);
        // The sparkline grows to its usual width, then the name, then both.
        let growth = free.min(USUAL_SPARKS - MIN_SPARKS);
        let sparks = sparks.map(|sparks| sparks + growth);
        let growth = if sparks.is_some() { growth } else { 0 };
        let left = free - growth;
        let name = left.min(12) + left.saturating_sub(12) / 3;
        Self {
            name: NAME + name,
            limit,
            sparks: sparks.map(|sparks| sparks + left - name),
            keys,
        }
    }

    fn header(&self, sort: &str) -> Line<'static> {
        let mut cells = vec![left(&title(sort), self.name)];
        cells.extend(self.limit.map(|width| left("LIMIT", width)));
        cells.push(left("ACTION", ACTION));
        let sparks = |width| {
            if width < 17 {
                "15 MIN"
            } else {
                "15 MIN, MITIGATED"
            }
        };
        cells.extend(self.sparks.map(|width| left(sparks(width), width)));
        cells.push(right("MATCHED/S", MATCHED));
        cells.push(right("MITIGATED/S", MITIGATED));
        cells.extend(self.keys.map(|width| right("KEYS", width)));
        cells.push(right("BANS", BANS));
        Line::raw(format!(" {}", cells.join(" ")))
    }

    fn row(&self, row: &RuleRow, area: DrawArea) -> Line<'static> {
        let layer = ActionLayer::of(row.object.text("action"));
        let color = area.style.layer(layer);
        let mut cells = vec![Span::raw(named(row, self.name))];
        cells.extend(self.limit.map(|width| Span::raw(left(&row.limit(), width))));
        cells.push(styled(left(&row.action(), ACTION), color));
        let sparks = |width| left(&sparkline(&row.mitigated, width), width);
        cells.extend(self.sparks.map(|width| styled(sparks(width), color)));
        cells.push(Span::raw(right(&grouped_rate(row.matched_per_s), MATCHED)));
        cells.push(Span::raw(right(&mitigated(row), MITIGATED)));
        cells.extend(
            self.keys
                .map(|width| Span::raw(right(&count(row.keys), width))),
        );
        cells.push(Span::raw(right(&count(row.bans), BANS)));
        let mut spans = Vec::new();
        for cell in cells {
            if !spans.is_empty() {
                spans.push(Span::raw(" "));
            }
            spans.push(cell);
        }
        Line::from(spans)
    }
}
