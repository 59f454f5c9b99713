//! What the documents say is true: every example loads, every table is the code's.
//!
//! `UPDATE_DOCS=1 cargo test` writes the tables of fields and functions anew.

mod glance;
mod links;
mod migration;
pub mod pages;
mod ranges;
mod shapes;
mod spellings;
mod warnings;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use lockgate::clock::Clock;
use lockgate::config::{self, ConfigSource, Diagnostics, schema};
use lockgate::expr::{self, ExprEnv, NamedList, NamedLists, Phase, ValueType};
use lockgate::facts::fields::{self, FieldTable};

use crate::harness::{Folder, Process, Running, wait_until};
use pages::{
    Block, blocks, documents, key_tables, keys_of, read, reference, root, rows, section, ticked,
};

/// What a fragment needs to be a whole file.
const LISTENER: &str = "\n[[listeners]]\naddress = \"127.0.0.1:0\"\n";
const UPSTREAM: &str = "\n[[upstreams]]\nname = \"app\"\nservers = [\"127.0.0.1:9000\"]\n";

/// The least that has every section of the reference whose keys have defaults.
const LEAST: &str = r#"
[[listeners]]
address = "0.0.0.0:8443"
[listeners.tls]
[admin]
address = "127.0.0.1:9901"
[challenge]
[[upstreams]]
name = "app"
servers = ["127.0.0.1:9000"]
[[routes]]
upstream = "app"
[[routes]]
path = "/robots.txt"
respond = {}
[[rules]]
name = "example"
mitigate = 'http.request.uri.path eq "/search"'
limit = 100
period = "1m"
[responses.sorry]
"#;

#[test]
fn every_toml_block_loads() {
    let folder = fixtures();
    let mut wrong = String::new();
    let blocks = blocks("toml");
    assert!(blocks.len() > 15, "only {} blocks were found", blocks.len());
    for block in &blocks {
        wrong.push_str(&mistakes(block, &folder));
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_expression_compiles() {
    let blocks = blocks("expr");
    let lines: Vec<_> = blocks.iter().flat_map(Block::lines).collect();
    assert!(lines.len() > 30, "only {} were found", lines.len());
    let lists = lists();
    check(&lines, |text| expr::predicate(text, &env(&lists)).map(drop));
}

#[test]
fn every_key_part_compiles() {
    let blocks = blocks("key");
    let lines: Vec<_> = blocks.iter().flat_map(Block::lines).collect();
    assert!(lines.len() > 5, "only {} were found", lines.len());
    let lists = lists();
    check(&lines, |text| expr::scalar(text, &env(&lists)).map(drop));
}

#[test]
fn the_field_table_matches_the_code() {
    same_table("docs/rule-language.md", "fields", &field_rows());
}

#[test]
fn the_function_table_matches_the_code() {
    same_table("docs/rule-language.md", "functions", &function_rows());
}

#[test]
fn the_reference_lists_every_default() {
    let (reference, least) = (meaning(&reference().text), meaning(LEAST));
    let different = reference
        .lines()
        .zip(least.lines())
        .position(|(a, b)| a != b);
    if let Some(line) = different {
        let around = |text: &str| -> String {
            let lines = text.lines().skip(line.saturating_sub(3)).take(5);
            lines.fold(String::new(), |all, line| all + line + "\n")
        };
        let (written, code) = (around(&reference), around(&least));
        panic!("\n--- the reference in docs/configuration.md\n{written}--- the code\n{code}");
    }
    assert_eq!(reference.len(), least.len());
}

#[test]
fn the_tables_of_settings_agree_with_the_reference() {
    let tables = key_tables();
    let reference = keys_of(&reference().text);
    assert!(tables.len() > 50, "{tables:?}");
    let names = |keys: &[(String, String)]| -> BTreeSet<String> {
        keys.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&tables), names(&reference));
    for (name, default) in tables.iter().filter(|(_, default)| !default.is_empty()) {
        let written = reference.iter().find(|(n, _)| n == name);
        assert_eq!(written.map(|(_, v)| v), Some(default), "{name}");
    }
}

#[test]
fn settings_that_are_not_implemented_are_refused() {
    let text = read("docs/configuration.md");
    let listed = section(&text, "## Not yet");
    let keys: BTreeSet<&str> = ticked(listed).filter(|word| word.contains('.')).collect();
    let mut code = Vec::new();
    shapes::each_table(&schema::root(), &mut |path, table| {
        code.extend(table.later.iter().map(|key| format!("{path}.{key}")));
    });
    assert_eq!(keys, code.iter().map(String::as_str).collect());
    for key in keys {
        let (section, name) = key.rsplit_once('.').unwrap();
        let written = match section {
            "listeners" | "upstreams" | "routes" | "rules" => format!("[[{section}]]\n{name} = 1"),
            "listeners.tls" => format!("[[listeners]]\n[listeners.tls]\n{name} = 1"),
            "responses.NAME" => format!("[responses.x]\n{name} = 1"),
            _ => format!("[{section}]\n{name} = 1"),
        };
        let found = errors(&written);
        let refusal = format!("`{name}` is not supported yet");
        assert!(found.contains(&refusal), "{key}: {found}");
    }
}

#[test]
fn the_metrics_table_matches_the_code() {
    let text = read("docs/operations.md");
    let table = section(&text, "## Metrics");
    let documented: BTreeSet<String> = rows(table)
        .filter_map(|row| ticked(row).next())
        .map(|name| name.split('{').next().unwrap().to_owned())
        .collect();
    let rule = "[[rules]]\nname = \"r\"\nmitigate = 'ssl'\nlimit = 1\nperiod = \"1m\"\n\
                key = [\"ip.src\"]\ncandidate = { limit = 2 }\n";
    let scrape = Running::with(rule).metrics();
    let types = scrape.lines().filter_map(|l| l.strip_prefix("# TYPE "));
    let real = types.map(|line| line.split(' ').next().unwrap());
    let real = real.map(|name| name.strip_prefix("lockgate_").unwrap().to_owned());
    assert_eq!(documented, real.collect());
}

#[test]
fn label_values_are_documented() {
    let text = read("docs/operations.md");
    let scrape = Running::with("").metrics();
    for (metric, heading) in [
        ("lockgate_protocol_errors_total", "## What is refused"),
        ("lockgate_responses_cut_total", "## The access log"),
    ] {
        let table = section(&text, heading);
        let explained: BTreeSet<&str> = rows(table)
            .filter_map(|row| row.split('|').nth(1))
            .flat_map(ticked)
            .collect();
        let series = scrape.lines().filter(|line| line.starts_with(metric));
        let words: Vec<&str> = series.filter_map(|line| line.split('"').nth(1)).collect();
        assert!(words.len() > 4, "{metric}");
        for word in words {
            assert!(explained.contains(word), "{metric}: {word}");
        }
    }
}

#[test]
fn restart_only_settings_stay_unchanged_and_are_reported() {
    let process = Process::run(&whole("[server]\nworkers = 2"));
    let secret = process.folder.write("secret", [7; 32]);
    for (config, named) in [
        ("[server]\nworkers = 3", "`workers`"),
        (
            "[server]\nworkers = 2\nsecret_file = \"secret\"",
            "`secret_file`",
        ),
        (
            "[server]\nworkers = 2\npid_file = \"run.pid\"",
            "`pid_file`",
        ),
        ("[server]\nworkers = 2\n[store]\nmax_keys = 7", "`max_keys`"),
        (
            "[server]\nworkers = 2\n[store]\nmax_log_bytes = \"1MiB\"",
            "`max_log_bytes`",
        ),
        (
            "[server]\nworkers = 2\n[store]\nsnapshot = \"counters\"",
            "`snapshot`",
        ),
        (
            "[server]\nworkers = 2\n[store]\nkind = \"redis\"",
            "`store.kind`",
        ),
    ] {
        process.reload(&whole(config));
        let expected = format!(
            "warning[restart-needed]: the new {named} takes effect after a restart or SIGUSR2"
        );
        wait_until("it says so", || process.logged(&expected).len() == 1);
    }
    assert_eq!(process.logged(" reloaded ").len(), 7);
    assert!(secret.exists() && !process.folder.path().join("counters").exists());
    // What stays is listed.
    let text = read("docs/operations.md");
    for named in [
        "workers",
        "pid_file",
        "secret_file",
        "max_keys",
        "max_log_bytes",
        "snapshot",
        "store.redis",
    ] {
        assert!(section(&text, "## Reload").contains(named), "{named}");
    }
}

#[test]
fn every_link_has_a_target() {
    for file in documents() {
        let text = read(&file);
        let folder = root().join(&file).parent().unwrap().to_owned();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            let path = target.split('#').next().unwrap();
            if path.is_empty() || target.contains("://") {
                continue;
            }
            assert!(folder.join(path).exists(), "{file}: {target}");
        }
    }
}

fn empty_revocation_list() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let issuer = rcgen::Issuer::new(rcgen::CertificateParams::default(), key);
    let params = rcgen::CertificateRevocationListParams {
        this_update: rcgen::date_time_ymd(2020, 1, 1),
        next_update: rcgen::date_time_ymd(2090, 1, 1),
        crl_number: rcgen::SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: rcgen::KeyIdMethod::Sha256,
    };
    params.signed_by(&issuer).unwrap().pem().unwrap()
}

/// A folder with the files that the examples name.
fn fixtures() -> Folder {
    let folder = Folder::new();
    let made = rcgen::generate_simple_self_signed(["example.com".to_owned()]).unwrap();
    folder.write("site.pem", made.cert.pem());
    folder.write("clients.pem", made.cert.pem());
    folder.write("revoked.pem", empty_revocation_list());
    folder.write("site.key", made.signing_key.serialize_pem());
    folder.write("admin.token", "secret\n");
    folder.write("redis.password", "secret\n");
    folder.write("secret", [7; 32]);
    folder.write("agents.txt", "# scanners\nsqlmap\nnikto # old\n");
    folder.write(
        "ip2asn-combined.tsv.gz",
        "1.0.0.0\t1.0.0.255\t13335\tUS\tx\n",
    );
    for kind in ["ASN", "Country"] {
        let data = root().join(format!("tests/data/geo/GeoLite2-{kind}-Test.mmdb"));
        folder.write(&format!("GeoLite2-{kind}.mmdb"), fs::read(data).unwrap());
    }
    folder
}

/// What is wrong with a block, with its place in its document; empty: nothing.
fn mistakes(block: &Block, folder: &Folder) -> String {
    let text = "\n".repeat(block.line - 1) + &whole(&block.text);
    // Beside the files that it names, whatever folder the document is in.
    let flat = folder.path().join(block.file.replace('/', "-"));
    let flat = flat.display().to_string();
    let source = ConfigSource::new(flat.as_str(), text);
    let mut diagnostics = Diagnostics::new();
    if let Some(file) = config::read(&source, &mut diagnostics) {
        let now = Clock::System.now();
        config::compile(&file, &source, now, None, &mut diagnostics);
    }
    match diagnostics.has_errors() {
        true => diagnostics
            .render(&source, false)
            .replace(&flat, &block.file),
        false => String::new(),
    }
}

/// A fragment with what it needs to be a whole file.
pub fn whole(fragment: &str) -> String {
    let mut text = fragment.to_owned();
    if !text.contains("[[listeners]]") {
        text.push_str(LISTENER);
        // Clients solve challenges only over TLS.
        if text.contains("[[protect]]") || text.contains("\"challenge\"") {
            text.push_str("[listeners.tls]\n");
        }
    }
    if text.contains("upstream = \"app\"") && !text.contains("[[upstreams]]") {
        text.push_str(UPSTREAM);
    }
    text
}

/// What is wrong with a configuration as it is read.
fn errors(text: &str) -> String {
    let source = ConfigSource::new("gateway.toml", text);
    let mut diagnostics = Diagnostics::new();
    config::read(&source, &mut diagnostics);
    diagnostics.render(&source, false)
}

fn check(lines: &[(String, &str)], compile: impl Fn(&str) -> Result<(), Vec<expr::ExprError>>) {
    let mut wrong = String::new();
    for (place, text) in lines {
        for error in compile(text).err().unwrap_or_default() {
            let _ = writeln!(wrong, "{place}: {}\n    {text}", error.message);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn env(lists: &NamedLists) -> ExprEnv<'_> {
    ExprEnv {
        scheme: &FieldTable,
        lists,
        allow_response: true,
    }
}

/// The lists that the examples name.
fn lists() -> NamedLists {
    let mut lists = NamedLists::new();
    let mut add = |name: &str, values: &[&str]| {
        let list = NamedList::from_texts(values.iter().copied());
        lists.insert(name, list);
    };
    add("office", &["192.0.2.0/24", "2001:db8::/48"]);
    add("bad_agents", &["sqlmap", "nikto"]);
    add("hosters", &["64500", "64501"]);
    lists
}

fn field_rows() -> String {
    let mut rows = String::from("| field | type | what it is |\n| --- | --- | --- |\n");
    for field in fields::all() {
        let phase = match field.phase {
            Phase::Request => "",
            Phase::Body => "; in rules only",
            Phase::Response => "; in `count` and `cost` only",
        };
        let aliases: Vec<_> = field.aliases.iter().map(|a| format!("`{a}`")).collect();
        let also = match aliases.as_slice() {
            [] => String::new(),
            some => format!("; also {}", some.join(", ")),
        };
        let _ = writeln!(
            rows,
            "| `{}` | {} | {}{also}{phase} |",
            field.name,
            type_name(field.ty()),
            field.doc
        );
    }
    rows
}

fn function_rows() -> String {
    let mut rows = String::from("| function | what it gives |\n| --- | --- |\n");
    for function in expr::functions() {
        let _ = writeln!(rows, "| `{}` | {} |", function.signature, function.doc);
    }
    rows
}

fn type_name(ty: ValueType) -> &'static str {
    match ty {
        ValueType::Bytes => "string",
        ValueType::Int => "integer",
        ValueType::Ip => "address",
        ValueType::Bool => "boolean",
        ValueType::Map => "map",
        ValueType::Array => "list",
    }
}

/// Compares what stands between `<!-- name -->` and `<!-- /name -->` with the code's table.
fn same_table(file: &str, name: &str, table: &str) {
    let text = read(file);
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = text.split_once(&open).expect("the table's beginning");
    let (written, after) = rest.split_once(&close).expect("the table's end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let text = format!("{before}{open}{table}{close}{after}");
        return fs::write(root().join(file), text).unwrap();
    }
    for (ours, theirs) in table.lines().zip(written.lines()) {
        assert_eq!(theirs, ours, "{file}: UPDATE_DOCS=1 cargo test writes it");
    }
    assert_eq!(written.lines().count(), table.lines().count());
}

/// A file as the code reads it, without the places of its values.
fn meaning(text: &str) -> String {
    let source = ConfigSource::new("gateway.toml", text);
    let mut diagnostics = Diagnostics::new();
    let file = config::read(&source, &mut diagnostics);
    assert!(
        !diagnostics.has_errors(),
        "{}",
        diagnostics.render(&source, false)
    );
    let spans = regex::Regex::new(r"\s*span: \d+\.\.\d+,?").unwrap();
    let shown = format!("{:#?}", file.unwrap());
    spans.replace_all(&shown, "").into_owned()
}
