//! Runs `tests/scenarios/*.toml`: cases of behaviour that are data and read as documentation.
//!
//! A scenario has a configuration and steps. A step moves the clock, reloads, or sends requests, and states the
//! expected results. `tests/scenarios/README.md` lists every setting.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;

use crate::docs::pages;
use crate::harness::{Answer, Client, Running};

mod check;
mod jar;

use jar::CookieJars;

/// How many run at once.
const AT_ONCE: usize = 8;

/// How often a step is taken again that must hold soon.
const SOON: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    about: String,
    config: Option<String>,
    whole: Option<String>,
    guide: Option<String>,
    #[serde(default)]
    replace: BTreeMap<String, String>,
    step: Vec<Step>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Step {
    wait: Option<String>,
    soon: bool,
    reload: Option<String>,
    reload_error: Option<String>,

    request: Option<String>,
    from: Option<String>,
    headers: BTreeMap<String, OneOrMany<String>>,
    body: Option<String>,
    jar: Option<String>,
    tls: bool,
    suites: Option<usize>,
    origin: Option<u16>,
    origin_headers: BTreeMap<String, String>,
    times: Option<usize>,

    expect: Option<OneOrMany<u16>>,
    headers_are: BTreeMap<String, String>,
    headers_absent: Vec<String>,
    sets_cookies: Option<Vec<String>>,
    headers_at_most: Option<Vec<String>>,
    body_is: Option<String>,
    body_contains: Option<OneOrMany<String>>,
    by_origin: Option<bool>,
    origin_saw: Option<usize>,
    origin_line: Option<String>,
    origin_got: BTreeMap<String, String>,
    origin_got_not: Vec<String>,
    metrics: BTreeMap<String, u64>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

#[test]
fn every_scenario_passes() {
    let files = files();
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = file.file_stem().unwrap().to_string_lossy();
                    let ran = catch_unwind(AssertUnwindSafe(|| run(file)));
                    if let Err(why) = ran.unwrap_or_else(|_| Err("it panicked (above)".into())) {
                        failed.lock().unwrap().push(format!("{name}: {why}"));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    let (count, all) = (failed.len(), files.len());
    assert!(count == 0, "{count} of {all} failed\n{}", failed.join("\n"));
}

/// All scenarios, or those whose name contains `$SCENARIO`.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let wanted = std::env::var("SCENARIO").unwrap_or_default();
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "toml"));
    files.retain(|file| file.to_string_lossy().contains(&wanted));
    files.sort();
    assert!(!files.is_empty(), "no scenario is called {wanted:?}");
    files
}

fn run(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).unwrap();
    let scenario: Scenario = toml::from_str(&text).map_err(|error| error.to_string())?;
    let gateway = scenario.gateway()?;
    let jars = CookieJars::default();
    for (number, step) in (1..).zip(&scenario.step) {
        let place = |why| format!("{}\n  step {number}: {why}", scenario.about);
        scenario.settle(step, &gateway, &jars).map_err(place)?;
    }
    Ok(())
}

// === impl Scenario ===

impl Scenario {
    fn gateway(&self) -> Result<Running, String> {
        let guide = self.guide.as_deref().map(|title| self.defence(title));
        match (&self.config, guide, &self.whole) {
            (None, None, Some(whole)) => Ok(Running::on(whole)),
            (None, None, None) | (_, _, Some(_)) => {
                Err("it needs `config`, `guide` or `whole`".into())
            }
            (config, guide, None) => {
                let config = config.as_deref().unwrap_or_default();
                let rules = format!("{}\n{config}", guide.transpose()?.unwrap_or_default());
                Ok(Running::with(&rules))
            }
        }
    }

    /// The configuration of a section of the guide, with what is replaced in it.
    fn defence(&self, title: &str) -> Result<String, String> {
        let page = pages::read("docs/guide.md");
        let section = pages::section(&page, &format!("## {title}"));
        let mut blocks = section.split("```toml\n").skip(1);
        let first = blocks.next().ok_or("the section has no configuration")?;
        let mut text = first.split("```").next().unwrap_or_default().to_owned();
        for (from, to) in &self.replace {
            if !text.contains(from.as_str()) {
                return Err(format!("the guide does not have {from:?}"));
            }
            text = text.replace(from.as_str(), to);
        }
        Ok(text)
    }

    /// Takes a step, again and again where it must hold soon and not at once.
    fn settle(&self, step: &Step, gateway: &Running, jars: &CookieJars) -> Result<(), String> {
        let mut taken = self.take(step, gateway, jars);
        for _ in 0..if step.soon { SOON } else { 0 } {
            if taken.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            taken = self.take(step, gateway, jars);
        }
        taken
    }

    fn take(&self, step: &Step, gateway: &Running, jars: &CookieJars) -> Result<(), String> {
        if let Some(wait) = &step.wait {
            gateway.wait(duration(wait));
        }
        if let Some(text) = &step.reload {
            let reloaded = match self.whole {
                Some(_) => gateway.reload_whole(text),
                None => gateway.reload(text),
            };
            step.check_reload(reloaded)?;
        }
        let before = gateway.origin.count();
        let answers = step.send(gateway, jars);
        let seen = gateway.origin.seen().split_off(before);
        step.check(&answers, &seen)?;
        step.check_metrics(gateway)
    }
}

// === impl Step ===

impl Step {
    fn send(&self, gateway: &Running, jars: &CookieJars) -> Vec<Answer> {
        let Some(request) = &self.request else {
            return Vec::new();
        };
        let (method, target) = request.split_once(' ').unwrap();
        let client = self.client(gateway).method(method, target);
        let jar = self.jar.as_deref();
        let send = |_| {
            let answer = jars.fill(jar, client.clone()).send();
            jars.keep(jar, &answer);
            answer
        };
        (0..self.times()).map(send).collect()
    }

    fn times(&self) -> usize {
        let listed = match &self.expect {
            Some(OneOrMany::Many(statuses)) => statuses.len(),
            _ => 1,
        };
        self.times.unwrap_or(listed)
    }

    fn client(&self, gateway: &Running) -> Client {
        let mut client = match (self.tls, self.suites) {
            (_, Some(suites)) => gateway.tls_client().suites(suites),
            (true, None) => gateway.tls_client(),
            (false, None) => gateway.client(),
        };
        if let Some(address) = &self.from {
            client = client.from(address);
        }
        for (name, values) in &self.headers {
            for value in values.all() {
                client = client.header(name, value);
            }
        }
        if let Some(status) = self.origin {
            client = client.wants(status);
        }
        for (name, value) in &self.origin_headers {
            client = client.header("x-answer-header", &format!("{name}: {value}"));
        }
        client.body(self.body.as_deref().unwrap_or_default().as_bytes())
    }
}

// === impl OneOrMany ===

impl<T> OneOrMany<T> {
    fn all(&self) -> &[T] {
        match self {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        }
    }
}

/// `500ms`, `30s`, `10m`, `1h`.
fn duration(text: &str) -> Duration {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().unwrap();
    match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number * 60),
        "h" => Duration::from_secs(number * 3600),
        _ => panic!("{text} is not a duration"),
    }
}
