//! `lockgate bans`, `ban` and `unban`: the bans of a running gateway.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::admin_client::{AdminArgs, AdminClient, AdminClientError, query};
use super::records::{Record, RecordCell, RecordStyle};
use super::{OutputFormat, print, print_error};

/// The number of bans in one request.
const PAGE: usize = 1_000;

/// The header on a terminal.
const HEADER: [&str; 7] = [
    "RULE",
    "KEY",
    "ACTION",
    "LEFT",
    "OFFENCE",
    "MITIGATED",
    "BY",
];

/// The arguments of `bans`.
#[derive(Args, Debug)]
pub struct BansArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Only bans of this rule.
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Only bans with this text in the key or the rule, ignoring case.
    #[arg(long = "match", value_name = "TEXT")]
    text: Option<String>,
    /// Only first offences that mitigated at most 5 requests and were not made by hand; not of dry runs.
    #[arg(long)]
    likely_false_positives: bool,
    /// The maximum number of bans [default: all].
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// The arguments of `ban`.
#[derive(Args, Debug)]
pub struct BanArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The rule.
    rule: String,
    /// The key, as `bans` prints it.
    key: String,
    /// How long, such as `10m`.
    duration: String,
    /// Why, for the log and the listing.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// The arguments of `unban`.
#[derive(Args, Debug)]
pub struct UnbanArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The rule.
    rule: String,
    /// The key, as `bans` prints it. Without a key, every ban of the rule ends.
    key: Option<String>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Prints the bans page by page. Returns exit code 2 if the gateway cannot be reached.
pub fn bans(args: &BansArgs) -> ExitCode {
    let listed = args.admin.client().and_then(|client| list(args, &client));
    listed.unwrap_or_else(|error| error.report())
}

/// Bans a key and prints the ban.
pub fn ban(args: &BanArgs) -> ExitCode {
    let mut body = json!({ "rule": args.rule, "key": args.key, "duration": args.duration });
    if let (Some(note), Some(object)) = (&args.note, body.as_object_mut()) {
        object.insert("note".to_owned(), json!(note));
    }
    let client = args.admin.client();
    let banned = client.and_then(|client| client.send("POST", "/api/mitigations", &body));
    print_result(banned, args.format, true)
}

/// Unbans a key, or all keys of a rule, and prints the removed ban or the number of them.
pub fn unban(args: &UnbanArgs) -> ExitCode {
    let mut parameters = vec![("rule", args.rule.as_str())];
    parameters.extend(args.key.iter().map(|key| ("key", key.as_str())));
    let path = format!("/api/mitigations{}", query(&parameters));
    let client = args.admin.client();
    let removed = client.and_then(|client| client.call("DELETE", &path));
    print_result(removed, args.format, false)
}

fn print_result(
    result: Result<Value, AdminClientError>,
    format: OutputFormat,
    is_ban: bool,
) -> ExitCode {
    for note in result.iter().flat_map(|changed| notes(changed, is_ban)) {
        print_error(&format!("lockgate: {note}"));
    }
    match (result, format) {
        (Ok(object), OutputFormat::Json) => print(&format!("{object:#}\n")),
        (Ok(object), OutputFormat::Human) => {
            let style = RecordStyle::of_stdout();
            match object.get("removed") {
                Some(removed) => {
                    let record = vec!["removed".into(), RecordCell::of(removed)];
                    print(&style.render(&[], &[record]))
                }
                None => print(&style.render(&HEADER, &[record(&object)])),
            }
        }
        (Err(error), _) => error.report(),
    }
}

/// Prints page after page, so that 250,000 bans need little memory.
fn list(args: &BansArgs, client: &AdminClient) -> Result<ExitCode, AdminClientError> {
    let style = RecordStyle::of_stdout();
    let mut printer = BanPrinter::new(args.format, style);
    let (mut left, mut cursor) = (args.limit.unwrap_or(usize::MAX), None);
    while left > 0 {
        let page = client.get(&page_path(args, left.min(PAGE), cursor.as_deref()))?;
        let items = page.get("items").and_then(Value::as_array);
        let items = items.map_or(&[][..], Vec::as_slice);
        let shown = items.get(..left.min(items.len())).unwrap_or_default();
        if print(&printer.page(shown)) != ExitCode::SUCCESS {
            return Ok(ExitCode::FAILURE);
        }
        left -= shown.len();
        cursor = page.get("next").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() || items.is_empty() {
            break;
        }
    }
    Ok(print(&printer.end()))
}

fn page_path(args: &BansArgs, limit: usize, cursor: Option<&str>) -> String {
    let limit = limit.to_string();
    let mut parameters = vec![("limit", limit.as_str())];
    parameters.extend(args.rule.iter().map(|rule| ("rule", rule.as_str())));
    parameters.extend(args.text.iter().map(|text| ("q", text.as_str())));
    if args.likely_false_positives {
        parameters.push(("view", "likely_false_positives"));
    }
    parameters.extend(cursor.map(|cursor| ("cursor", cursor)));
    format!("/api/mitigations{}", query(&parameters))
}

/// The columns of a ban.
fn record(ban: &Value) -> Record {
    let cell = |name: &str| RecordCell::of(ban.get(name).unwrap_or(&Value::Null));
    let action = match ban.get("action").and_then(Value::as_str) {
        Some(action) if is_dry_run(ban) => RecordCell::Text(format!("would {action}")),
        _ => cell("action"),
    };
    vec![
        cell("rule"),
        cell("key"),
        action,
        RecordCell::time(ban.get("until").unwrap_or(&Value::Null)),
        cell("offence"),
        cell("mitigated"),
        cell("by"),
    ]
}

fn is_dry_run(ban: &Value) -> bool {
    ban.get("dry_run").and_then(Value::as_bool) == Some(true)
}

/// What the operator must know about a change, for the standard error.
fn notes(changed: &Value, is_ban: bool) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if changed.get("scope").and_then(Value::as_str) == Some("node") {
        notes.push("on this gateway only: the shared store is out of reach");
    }
    if is_ban && is_dry_run(changed) {
        notes.push("the rule is a dry run and does not act: this ban mitigates nothing");
    }
    notes
}

/// Writes pages of bans as one document.
struct BanPrinter {
    format: OutputFormat,
    style: RecordStyle,
    is_first: bool,
}

// === impl BanPrinter ===

impl BanPrinter {
    fn new(format: OutputFormat, style: RecordStyle) -> Self {
        Self {
            format,
            style,
            is_first: true,
        }
    }

    /// The text of a page. The first one has the header.
    fn page(&mut self, bans: &[Value]) -> String {
        let text = match self.format {
            OutputFormat::Json => self.json(bans),
            OutputFormat::Human => {
                let header: &[&str] = if self.is_first { &HEADER } else { &[] };
                let records: Vec<Record> = bans.iter().map(record).collect();
                self.style.render(header, &records)
            }
        };
        self.is_first = false;
        text
    }

    fn json(&self, bans: &[Value]) -> String {
        let mut text = String::new();
        for (index, ban) in bans.iter().enumerate() {
            let is_first = self.is_first && index == 0;
            text.push_str(if is_first { "[\n" } else { ",\n" });
            text.push_str(&ban.to_string());
        }
        if self.is_first && bans.is_empty() {
            text.push('[');
        }
        text
    }

    fn end(&self) -> String {
        match self.format {
            OutputFormat::Json if self.is_first => "[]\n".to_owned(),
            OutputFormat::Json => "\n]\n".to_owned(),
            OutputFormat::Human => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ban() -> Value {
        json!({
            "rule": "login-stuffing", "key": "203.0.113.42 t13i190800_9dc949149365_97f8aa674fd9", "action": "shadow",
            "until": "2026-11-18T03:21:21.480Z", "offence": 1, "mitigated": 612, "by": "rule",
        })
    }

    #[test]
    fn a_pipe_gets_one_ban_per_line() {
        let mut printer = BanPrinter::new(OutputFormat::Human, RecordStyle::Tabs);
        let expected = "login-stuffing\t203.0.113.42 t13i190800_9dc949149365_97f8aa674fd9\tshadow\t\
                        2026-11-18T03:21:21.480Z\t1\t612\trule\n";
        assert_eq!(printer.page(&[ban()]), expected);
        assert_eq!(printer.page(&[ban()]), expected);
        assert_eq!(printer.end(), "");
    }

    #[test]
    fn a_ban_of_a_dry_run_says_what_it_would_do() {
        let mut ban = ban();
        ban["dry_run"] = json!(true);
        let text = BanPrinter::new(OutputFormat::Human, RecordStyle::Tabs).page(&[ban]);
        assert!(text.contains("\twould shadow\t"), "{text}");
    }

    #[test]
    fn a_change_says_where_and_whether_it_applies() {
        let changed =
            |scope: &str, is_dry_run: bool| json!({"scope": scope, "dry_run": is_dry_run});
        let here = "on this gateway only: the shared store is out of reach";
        let dry = "the rule is a dry run and does not act: this ban mitigates nothing";
        assert!(notes(&changed("fleet", false), true).is_empty());
        assert_eq!(notes(&changed("node", true), true), [here, dry]);
        assert_eq!(notes(&changed("node", true), false), [here]);
        assert_eq!(
            notes(&json!({"removed": 3, "scope": "node"}), false),
            [here]
        );
    }

    #[test]
    fn several_pages_are_one_json_document() {
        for pages in [vec![], vec![0], vec![1], vec![2, 1]] {
            let mut printer = BanPrinter::new(OutputFormat::Json, RecordStyle::Tabs);
            let total: usize = pages.iter().sum();
            let pages = pages
                .into_iter()
                .map(|count| printer.page(&vec![ban(); count]));
            let text = pages.collect::<String>() + &printer.end();
            let parsed: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(parsed.as_array().unwrap().len(), total, "{text}");
        }
    }
}
