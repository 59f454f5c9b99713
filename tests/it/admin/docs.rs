//! docs/admin-api.md agrees with the admin port, and its examples run.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use super::{CONFIG, Operated};
use crate::docs::pages::{blocks_of, read, rows, section, ticked};
use crate::harness::{Origin, wait_until};

const PAGE: &str = "docs/admin-api.md";

#[test]
fn the_page_lists_every_path_and_method() {
    let document: Value = serde_json::from_str(&read("src/admin/openapi.json")).unwrap();
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().keys();
        documented.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
    }
    let text = read(PAGE);
    let table = section(&text, "## Endpoints");
    let listed = rows(table).filter_map(|row| ticked(row).next().map(str::to_owned));
    assert_eq!(listed.collect::<BTreeSet<_>>(), documented);
}

#[test]
fn the_examples_run() {
    let origin = Origin::start();
    let config = CONFIG.replace("login/site", "login").replace(
        "[log]",
        "[client_ip]\ntrusted_proxies = [\"127.0.0.1/32\"]\n[log]",
    );
    let config = config.replace(
        "[[routes]]\nrespond = { body = \"hello\" }",
        &format!(
            "[[upstreams]]\nname = \"app\"\nservers = [\"{}\"]\n[[routes]]\nupstream = \"app\"",
            origin.address
        ),
    );
    let gateway = Operated::run(&config);
    // The examples ask for this client.
    let client = gateway.client().from("203.0.113.7");
    client.get("/login").times(3).last_is(429);
    wait_until("its decision is known", || {
        let client = gateway.admin().get("/api/clients/203.0.113.7");
        client.send().status == 200
    });
    let mut run = 0;
    let mut blocks = blocks_of(PAGE);
    blocks.retain(|block| block.kind == "console");
    for line in blocks.iter().flat_map(|block| block.text.lines()) {
        let command = line.strip_prefix("$ ").expect("only commands");
        let command = command
            .replace("127.0.0.1:9901", &gateway.admin.to_string())
            .replace("127.0.0.1:9000", &origin.address.to_string())
            .replace("curl -s", "curl -s --fail-with-body");
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command}: {text}");
        serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("{command}: {text}"));
        run += 1;
    }
    assert_eq!(run, 17);
}

#[test]
fn the_objects_on_the_page_are_json() {
    let mut blocks = blocks_of(PAGE);
    blocks.retain(|block| block.kind == "json");
    assert!(!blocks.is_empty());
    for block in blocks {
        serde_json::from_str::<Value>(&block.text).unwrap();
    }
}
