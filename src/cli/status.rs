//! `lockgate status`: the state of a running gateway, for people and scripts.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::admin_client::{AdminArgs, AdminClientError};
use super::records::{Record, RecordCell, RecordStyle};
use super::{OutputFormat, print};

/// The arguments.
#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// List every server, not only unhealthy ones.
    #[arg(long)]
    all: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Prints the status. Returns exit code 1 if something is critical, 2 if the gateway cannot be reached, 3 for a wrong
/// token.
pub fn status(args: &StatusArgs) -> ExitCode {
    match read(args) {
        Ok((text, status)) => {
            let printed = print(&text);
            if is_critical(&status) {
                ExitCode::FAILURE
            } else {
                printed
            }
        }
        Err(error) => error.report(),
    }
}

fn read(args: &StatusArgs) -> Result<(String, Value), AdminClientError> {
    let client = args.admin.client()?;
    let text = client.get_text("/api/status")?;
    let status: Value = serde_json::from_str(&text).unwrap_or_default();
    let text = match args.format {
        OutputFormat::Json => text + "\n",
        OutputFormat::Human => {
            let upstreams = client.get("/api/upstreams")?;
            let records = records(&status, &upstreams, args.all);
            RecordStyle::of_stdout().render(&["NAME", "VALUE"], &records)
        }
    };
    Ok((text, status))
}

fn is_critical(status: &Value) -> bool {
    let entries = list(status, "/attention");
    entries.iter().any(|entry| text(entry, "/level") == "crit")
}

/// The lines of the status.
fn records(status: &Value, upstreams: &Value, all: bool) -> Vec<Record> {
    let mut records = vec![
        line("instance", [cell(status, "/instance")]),
        line("version", [cell(status, "/version")]),
        line("state", [cell(status, "/state")]),
        line(
            "uptime_s",
            [RecordCell::Seconds(
                at(status, "/uptime_s").as_u64().unwrap_or_default(),
            )],
        ),
    ];
    records.extend(traffic(at(status, "/tick")));
    records.extend([
        line(
            "connections",
            [
                cell(status, "/connections/open"),
                cell(status, "/connections/max"),
            ],
        ),
        line(
            "held",
            [cell(status, "/held/now"), cell(status, "/held/max")],
        ),
        store(status),
        line(
            "config",
            [
                cell(status, "/config/file"),
                RecordCell::time(at(status, "/config/loaded_at")),
                cell(status, "/config/rules"),
            ],
        ),
        last_reload(at(status, "/config/last_reload")),
    ]);
    let certificates = list(status, "/certificates").iter().map(|certificate| {
        let end = RecordCell::time(at(certificate, "/not_after"));
        line("certificate", [cell(certificate, "/name"), end])
    });
    records.extend(certificates);
    records.push(line("bans", [cell(status, "/store/bans")]));
    records.extend(servers(upstreams, all));
    let attention = list(status, "/attention").iter().map(|entry| {
        let text = ["/level", "/id", "/text"].map(|name| cell(entry, name));
        line("attention", text)
    });
    records.extend(attention);
    records
}

fn traffic(tick: &Value) -> Vec<Record> {
    let rate = |actions: &[&str]| {
        let rates = actions
            .iter()
            .map(|action| at(tick, &format!("/actions_per_s/{action}")));
        let sum: f64 = rates.filter_map(Value::as_f64).sum();
        [RecordCell::rate(&sum.into())]
    };
    let latency = |name| [RecordCell::rate(at(tick, name))];
    vec![
        line(
            "requests_per_s",
            [RecordCell::rate(at(tick, "/requests_per_s"))],
        ),
        line("forwarded_per_s", rate(&["forward", "allow", "tag", "log"])),
        line("blocked_per_s", rate(&["block", "close"])),
        line("shadowed_per_s", rate(&["shadow", "divert"])),
        line("challenged_per_s", rate(&["challenge"])),
        line("p50_ms", latency("/latency_ms/p50")),
        line("p99_ms", latency("/latency_ms/p99")),
    ]
}

fn store(status: &Value) -> Record {
    let mut record = line(
        "store",
        [cell(status, "/store/kind"), cell(status, "/store/state")],
    );
    if text(status, "/store/state") != "ok" {
        record.push(RecordCell::time(at(status, "/store/since")));
        record.push(cell(status, "/store/error"));
    }
    record
}

fn last_reload(last: &Value) -> Record {
    let Some(is_ok) = at(last, "/ok").as_bool() else {
        return line("last_reload", ["-".into()]);
    };
    let time = RecordCell::time(at(last, "/at"));
    if is_ok {
        return line("last_reload", ["ok".into(), time]);
    }
    let mut record = line("last_reload", ["refused".into(), time]);
    record.extend(list(last, "/errors").first().map(|error| {
        let [file, line, column] = ["/file", "/line", "/column"].map(|name| shown(error, name));
        let message = text(error, "/message");
        RecordCell::Text(format!("{file}:{line}:{column}: {message}"))
    }));
    record
}

fn servers(upstreams: &Value, all: bool) -> Vec<Record> {
    let mut records = Vec::new();
    for upstream in upstreams.as_array().into_iter().flatten() {
        for server in list(upstream, "/servers") {
            let health = text(server, "/health");
            let is_drained = text(server, "/state") == "drain";
            if !all && health == "healthy" {
                continue;
            }
            let mut record = line(
                "upstream",
                [cell(upstream, "/name"), cell(server, "/address")],
            );
            record.push(if is_drained {
                "drain".into()
            } else {
                health.into()
            });
            if !at(server, "/reason").is_null() {
                record.push(cell(server, "/reason"));
            }
            records.push(record);
        }
    }
    records
}

fn line<const N: usize>(name: &str, values: [RecordCell; N]) -> Record {
    let name = [RecordCell::from(name)];
    name.into_iter().chain(values).collect()
}

/// The value at a JSON pointer, null if there is none.
fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

fn cell(value: &Value, pointer: &str) -> RecordCell {
    RecordCell::of(at(value, pointer))
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    at(value, pointer).as_str().unwrap_or_default()
}

fn shown(value: &Value, pointer: &str) -> String {
    match at(value, pointer) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    at(value, pointer).as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
