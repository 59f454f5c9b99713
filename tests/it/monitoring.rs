//! The alerts and the Grafana dashboard in `deploy/`, checked against the metrics of a real gateway.
//!
//! What only Prometheus can judge is left to `promtool` (`$LOCKGATE_PROMTOOL`). Without it, these checks are skipped.

mod exposition;
mod files;
mod promql;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::docs::pages;
use crate::harness::Folder;
use exposition::{Labels, MonitoredGateway, labels_by_metric, series};
use files::MonitoringExpression;
use promql::{Expression, Selector};

/// The labels that Prometheus adds to each series.
const TARGET_LABELS: [&str; 2] = ["instance", "job"];
/// The metrics that Prometheus makes for each target.
const TARGET_METRICS: [&str; 1] = ["up"];
const ALERT_TESTS: &str = "prometheus/alerts.test.yml";

#[test]
fn every_metric_and_label_exists() {
    let exported = labels_by_metric(&MonitoredGateway::start().scrape());
    let alerts = files::alerts();
    let mut expressions: Vec<_> = alerts.iter().flat_map(|rule| rule.expressions()).collect();
    assert!(expressions.len() > alerts.len() && alerts.len() >= 8);
    expressions.extend(files::dashboard_expressions());
    expressions.extend(files::dashboard_variables());
    assert!(expressions.len() > 70, "{}", expressions.len());
    let wrong: Vec<_> = expressions
        .iter()
        .flat_map(|expression| mistakes(expression, &exported))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Otherwise an alert could pass its tests and never fire.
#[test]
fn the_series_of_the_alert_tests_are_those_of_the_gateway() {
    let exported = labels_by_metric(&MonitoredGateway::start().scrape());
    let text = files::read(ALERT_TESTS);
    let inputs = text.lines().filter_map(|line| {
        let series = line.trim_start().strip_prefix("- series: '")?;
        series.strip_suffix('\'')
    });
    let mut count = 0;
    for input in inputs {
        let selector = Expression::parse(input).selectors.pop().unwrap();
        if TARGET_METRICS.contains(&&*selector.metric) {
            continue;
        }
        let real = exported.get(&selector.metric).expect(input);
        let given: BTreeSet<&str> = selector.labels.iter().map(|(name, _)| &**name).collect();
        let expected = real.keys().map(String::as_str).chain(["instance"]);
        assert_eq!(given, expected.collect(), "{input}");
        count += 1;
    }
    assert!(count > 50, "{count}");
}

#[test]
fn every_alert_is_documented_and_tested() {
    let (page, tests) = (pages::read("docs/alerts.md"), files::read(ALERT_TESTS));
    let mut names = BTreeSet::new();
    for alert in files::alerts() {
        let name = &alert.name;
        let severity = alert.value("severity");
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}"
        );
        let runbook = format!("docs/alerts.md#{}", name.to_lowercase());
        assert_eq!(alert.value("runbook"), runbook);
        assert!(alert.text.contains("summary: ") && alert.text.contains("description: "));
        let row = format!("| [{name}](#{}) | {severity} |", name.to_lowercase());
        assert!(page.contains(&row), "{row}");
        assert!(tests.contains(&format!("- alertname: {name}\n")), "{name}");
        names.insert(alert.name);
    }
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let documented = headings.filter(|heading| heading.starts_with("Lockgate"));
    assert_eq!(
        documented.map(str::to_owned).collect::<BTreeSet<_>>(),
        names
    );
}

#[test]
fn alerts_fire_when_they_should_and_only_then() {
    run_promtool(&["test", "rules"], &files::path(ALERT_TESTS), Stdio::null());
}

/// Evaluates each expression over the series of a real gateway, all of which increase.
#[test]
fn every_panel_of_the_dashboard_has_data() {
    let scrape = MonitoredGateway::start().scrape();
    let mut test =
        String::from("evaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n");
    for (name, value) in series(&scrape) {
        let (metric, labels) = name.split_once('{').unwrap_or((name, "}"));
        let start = value.parse::<f64>().unwrap() as u64;
        let name =
            format!("{metric}{{instance=\"gw\",job=\"lockgate\",{labels}").replace(",}", "}");
        test += &format!("  - series: '{name}'\n    values: '{start}+60x20'\n");
    }
    test += "  promql_expr_test:\n";
    for expression in files::dashboard_expressions() {
        let expression = expression.text.replace("$__rate_interval", "5m");
        let expression = ["$instance", "$rule"]
            .iter()
            .fold(expression, |text, variable| text.replace(variable, ".*"));
        test += &format!("  - expr: 'count({expression}) > bool 0'\n");
        test += "    eval_time: 15m\n    exp_samples: [{labels: '{}', value: 1}]\n";
    }
    let folder = Folder::new();
    let path = folder.write("dashboard.test.yml", test);
    run_promtool(&["test", "rules"], &path, Stdio::null());
}

#[test]
fn promtool_accepts_the_metrics_under_load() {
    if promtool().is_none() {
        return;
    }
    let (gateway, folder) = (MonitoredGateway::start(), Folder::new());
    let mut checks = 0;
    gateway.scrape_under_load(|text| {
        let path = folder.write("metrics", text);
        let file = File::open(path).unwrap();
        run_promtool(&["check", "metrics"], Path::new(""), file.into());
        checks += 1;
    });
    assert!(checks > 1);
}

/// What an expression names that the gateway does not export.
fn mistakes(expression: &MonitoringExpression, exported: &BTreeMap<String, Labels>) -> Vec<String> {
    let parsed = Expression::parse(&expression.text);
    assert!(!parsed.selectors.is_empty(), "{expression:?}");
    let mut wrong = Vec::new();
    let mut known: BTreeSet<&str> = TARGET_LABELS.into();
    for selector in &parsed.selectors {
        match exported.get(&selector.metric) {
            Some(labels) => {
                known.extend(labels.keys().map(String::as_str));
                wrong.extend(unknown_labels(selector, labels));
            }
            None if TARGET_METRICS.contains(&&*selector.metric) => {}
            None => wrong.push(format!("metric {}", selector.metric)),
        }
    }
    let used = parsed.grouping.iter().chain(&expression.shown);
    let unknown = used.filter(|label| !known.contains(label.as_str()));
    wrong.extend(unknown.map(|label| format!("label {label}")));
    let name = &expression.name;
    wrong.iter().map(|what| format!("{name}: {what}")).collect()
}

/// The labels and values that a selector compares and the metric does not have.
fn unknown_labels(selector: &Selector, labels: &Labels) -> Vec<String> {
    let mut wrong = Vec::new();
    for (label, values) in &selector.labels {
        if TARGET_LABELS.contains(&label.as_str()) {
            continue;
        }
        let Some(real) = labels.get(label) else {
            wrong.push(format!("label {label} of {}", selector.metric));
            continue;
        };
        let fixed = values.iter().filter(|value| !value.starts_with('$'));
        let unknown = fixed.filter(|value| !real.contains(*value));
        wrong.extend(unknown.map(|value| format!("{label}={value} of {}", selector.metric)));
    }
    wrong
}

fn promtool() -> Option<OsString> {
    std::env::var_os("LOCKGATE_PROMTOOL")
}

/// Runs `promtool` on a file or on its standard input. It must find nothing wrong.
#[track_caller]
fn run_promtool(arguments: &[&str], path: &Path, input: Stdio) {
    let Some(program) = promtool() else {
        return;
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(input);
    if !path.as_os_str().is_empty() {
        command.arg(path);
    }
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "{arguments:?}\n{text}");
    let is_metrics = arguments.contains(&"metrics");
    assert!(!is_metrics || text.is_empty(), "{text}");
}
