//! The pages for users of other gateways: the numbers in their tables are those of the engine.

use serde_json::Value as Json;

use super::pages::blocks_of;
use super::whole;
use crate::harness::{Folder, Process};

/// What happens to requests that arrive at once: how many are forwarded at once, held and refused.
#[derive(Debug, PartialEq)]
struct Outcome {
    forwarded: usize,
    held: usize,
    refused: usize,
}

#[test]
fn a_burst_from_nginx_passes_as_documented() {
    let page = "docs/from-nginx.md";
    assert_eq!(of(page, "queue     = 5", "/search/", 10), outcome(1, 5, 4));
    assert_eq!(of(page, "burst     = 6", "/search/", 10), outcome(6, 0, 4));
    assert_eq!(of(page, "pages-refuse", "/page/", 15), outcome(9, 4, 2));
}

#[test]
fn a_burst_from_haproxy_passes_as_documented() {
    let page = "docs/from-haproxy.md";
    assert_eq!(of(page, "\"per-address\"", "/", 25), outcome(20, 0, 5));
    assert_eq!(of(page, "wordpress", "/wp-x", 5), outcome(3, 0, 2));
    let mut rule = Burst::new(page, "\"scanners\"", "/", 14);
    rule.status = Some("404");
    assert_eq!(rule.run(), outcome(11, 0, 3));
}

#[test]
fn a_burst_from_envoy_passes_as_documented() {
    let page = "docs/from-envoy.md";
    assert_eq!(of(page, "all-requests", "/", 150), outcome(100, 0, 50));
    assert_eq!(of(page, "\"others\"", "/", 15), outcome(10, 0, 5));
}

#[test]
fn a_burst_from_traefik_passes_as_documented() {
    let page = "docs/from-traefik.md";
    assert_eq!(of(page, "\"api\"", "/api/", 60), outcome(50, 0, 10));
    assert_eq!(of(page, "api-refuse", "/api/", 70), outcome(50, 10, 10));
}

/// Requests that arrive at once under the rules of an example.
struct Burst<'a> {
    page: &'a str,
    /// A text that only the wanted example has, or that it has first.
    example: &'a str,
    path: &'a str,
    requests: usize,
    /// The status of the origin server.
    status: Option<&'a str>,
}

fn of(page: &str, example: &str, path: &str, requests: usize) -> Outcome {
    Burst::new(page, example, path, requests).run()
}

fn outcome(forwarded: usize, held: usize, refused: usize) -> Outcome {
    Outcome {
        forwarded,
        held,
        refused,
    }
}

// === impl Burst ===

impl<'a> Burst<'a> {
    fn new(page: &'a str, example: &'a str, path: &'a str, requests: usize) -> Self {
        Self {
            page,
            example,
            path,
            requests,
            status: None,
        }
    }

    fn run(&self) -> Outcome {
        let folder = Folder::new();
        folder.write("gateway.toml", self.config());
        let requests = self.requests.to_string();
        let mut arguments = vec!["explain", "GET", self.path, "--format", "json"];
        arguments.extend(["--repeat", &requests]);
        arguments.extend(self.status.iter().flat_map(|status| ["--status", status]));
        let output = Process::output(&folder, &arguments);
        let report: Json = serde_json::from_slice(&output.stdout).unwrap();
        let decisions = report["repeat"].as_array().unwrap().iter();
        let decisions: Vec<&str> = decisions.map(|d| d["decision"].as_str().unwrap()).collect();
        let count = |word: &str| decisions.iter().filter(|d| **d == word).count();
        outcome(count("forward"), count("delay"), count("block"))
    }

    fn config(&self) -> String {
        let blocks = blocks_of(self.page);
        let mut examples = blocks.iter().filter(|block| block.kind == "toml");
        let example = examples.find(|block| block.text.contains(self.example));
        let example = example.unwrap_or_else(|| panic!("{}: {}", self.page, self.example));
        whole(&format!(
            "{}\n[[routes]]\nupstream = \"app\"\n",
            example.text
        ))
    }
}
