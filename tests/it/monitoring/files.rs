//! The files in `deploy/` that Prometheus and Grafana read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// An expression of the dashboard or of an alert, with all texts that may name its labels.
#[derive(Debug)]
pub struct MonitoringExpression {
    /// The name of the panel or alert.
    pub name: String,
    /// The expression.
    pub text: String,
    /// The labels that legends and annotations show.
    pub shown: Vec<String>,
}

/// An alert of `alerts.yml`.
#[derive(Debug)]
pub struct AlertRule {
    /// Its name.
    pub name: String,
    /// Its lines, from its name to the next alert.
    pub text: String,
}

/// The path of a file in `deploy/`.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy")
        .join(name)
}

/// The text of a file in `deploy/`.
pub fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

/// All alerts.
pub fn alerts() -> Vec<AlertRule> {
    let text = read("prometheus/alerts.yml");
    let parts = text.split("- alert: ").skip(1);
    let alert = |part: &str| AlertRule {
        name: part.lines().next().unwrap().to_owned(),
        text: part.to_owned(),
    };
    parts.map(alert).collect()
}

/// The expressions of all panels, variables and annotations of the dashboard.
pub fn dashboard_expressions() -> Vec<MonitoringExpression> {
    let dashboard: Value = serde_json::from_str(&read("grafana/lockgate.json")).unwrap();
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        found.extend(targets.map(|target| {
            let shown = braced(target["legendFormat"].as_str().unwrap(), "{{");
            expression(&panel["title"], &target["expr"], shown)
        }));
    }
    for marks in dashboard["annotations"]["list"].as_array().unwrap() {
        let titles = format!("{}{}", marks["titleFormat"], marks["textFormat"]);
        let shown = braced(&titles, "{{");
        found.push(expression(&marks["name"], &marks["expr"], shown));
    }
    found
}

/// The metric and the label that each variable of the dashboard lists.
pub fn dashboard_variables() -> Vec<MonitoringExpression> {
    let dashboard: Value = serde_json::from_str(&read("grafana/lockgate.json")).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let queries = variables.filter(|variable| variable["type"] == "query");
    let listed = queries.map(|variable| {
        let query = variable["definition"].as_str().unwrap();
        let inside = query.strip_prefix("label_values(").unwrap();
        let (selector, label) = inside.strip_suffix(')').unwrap().rsplit_once(", ").unwrap();
        let shown = vec![label.to_owned()];
        expression(&variable["name"], &Value::from(selector), shown)
    });
    listed.collect()
}

fn expression(name: &Value, text: &Value, shown: Vec<String>) -> MonitoringExpression {
    MonitoringExpression {
        name: name.as_str().unwrap().to_owned(),
        text: text.as_str().unwrap().to_owned(),
        shown,
    }
}

// === impl AlertRule ===

impl AlertRule {
    /// The condition, and the queries of the annotations.
    pub fn expressions(&self) -> Vec<MonitoringExpression> {
        let mut found = vec![MonitoringExpression {
            name: self.name.clone(),
            text: self.condition(),
            shown: braced(&self.text, "$labels."),
        }];
        for query in self.text.split("printf \"topk").skip(1) {
            let query = query.split("\" $labels").next().unwrap();
            let text = format!("topk{query}").replace("\\\"", "\"");
            found.push(MonitoringExpression {
                name: self.name.clone(),
                text: text.replace("%q", "\"$instance\""),
                shown: braced(&self.text, "first | label \""),
            });
        }
        found
    }

    /// The value of a key in one line.
    pub fn value(&self, key: &str) -> &str {
        let (_, rest) = self.text.split_once(&format!("{key}: ")).expect(key);
        rest.lines().next().unwrap()
    }

    fn condition(&self) -> String {
        let (_, rest) = self.text.split_once("expr: ").unwrap();
        let is_of_block = |line: &&str| line.starts_with("          ");
        match rest.strip_prefix("|\n") {
            Some(block) => block
                .lines()
                .take_while(is_of_block)
                .collect::<Vec<_>>()
                .join("\n"),
            None => rest.lines().next().unwrap().to_owned(),
        }
    }
}

/// The words that follow each `start`.
fn braced(text: &str, start: &str) -> Vec<String> {
    let parts = text.split(start).skip(1);
    let word = |part: &str| {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        part[..end.unwrap_or(part.len())].to_owned()
    };
    parts.map(word).collect()
}
