//! The rule language over real facts: `tests/data/expr/NAME.toml` is one request and what holds
//! for it; `tests/data/expr/errors/NAME.toml` are rules with mistakes, and `NAME.txt` what `check`
//! says of them. `UPDATE_GOLDEN=1` writes these anew.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Version};
use lockgate::clock::{Clock, Timestamp};
use lockgate::config::{self, ConfigSource, Diagnostics};
use lockgate::expr::{self, ExprEnv, FieldFacts, NamedList, NamedLists, ScalarValue};
use lockgate::facts::fields::{self, FieldTable};
use lockgate::facts::{
    BodyKind, CertificateFields, ClientCertificate, ClientConnection, GeoSource, HelloFacts,
    InspectedBody, RequestFacts, RequestHead, ResponseFacts, TlsFacts,
};
use toml::{Table, Value as Toml};

use crate::docs::pages::root;

const LISTENER: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n";

/// One request and what holds for it.
struct Case {
    name: String,
    table: Table,
}

/// Where the client of a case is.
struct Place {
    asn: Option<u32>,
    country: Option<[u8; 2]>,
    continent: Option<[u8; 2]>,
}

#[test]
fn expressions_evaluate_as_listed() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for case in cases() {
        for (key, expected) in [("true", true), ("false", false)] {
            for source in case.texts(key) {
                let got =
                    case.ask(|env, facts| expr::predicate(&source, env).map(|p| p.test(facts)));
                count += 1;
                if got.as_ref().ok() != Some(&expected) {
                    wrong.push(format!("{}: {source}\n    is {got:?}", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count >= 300, "only {count}");
}

#[test]
fn values_evaluate_as_listed() {
    let mut wrong = Vec::new();
    for case in cases() {
        for (source, expected) in case.values() {
            let got = case.ask(|env, facts| {
                expr::scalar(&source, env)
                    .map(|scalar| scalar.eval(facts).map(|value| shown(&value)))
            });
            if got != Ok(expected.clone()) {
                wrong.push(format!(
                    "{}: {source}\n    is {got:?}, not {expected:?}",
                    case.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_field_and_function_has_a_case() {
    let mut all = String::new();
    for case in cases() {
        let values = case.values().into_iter().map(|(source, _)| source);
        let sources = case
            .texts("true")
            .into_iter()
            .chain(case.texts("false"))
            .chain(values);
        for source in sources {
            all.extend([" ", &source, " "]);
        }
    }
    let ends = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.';
    let words: std::collections::HashSet<&str> = all.split(ends).collect();
    for field in fields::all() {
        for name in field.aliases.iter().chain([&field.name]) {
            assert!(words.contains(name), "no case reads {name}");
        }
    }
    for function in expr::functions() {
        assert!(
            words.contains(function.name),
            "no case calls {}",
            function.name
        );
    }
}

#[test]
fn errors_match_their_golden_text() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut count = 0;
    for toml in files("tests/data/expr/errors") {
        let golden = toml.with_extension("txt");
        let got = rendered(&toml);
        if update {
            fs::write(&golden, &got).unwrap();
        }
        count += got
            .lines()
            .filter(|line| line.contains(": error: "))
            .count();
        let want = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(want, got, "{}: UPDATE_GOLDEN=1 writes it", toml.display());
    }
    assert!(count >= 60, "only {count}");
}

/// Every rule of these files has a mistake; a rule without one is a hole in the checks.
#[test]
fn every_rule_of_the_golden_files_is_refused() {
    for toml in files("tests/data/expr/errors") {
        let text = fs::read_to_string(&toml).unwrap();
        let table: Table = text.parse().unwrap();
        for rule in table["rules"].as_array().unwrap() {
            let name = rule["name"].as_str().unwrap();
            let mut one = Table::new();
            let keep = |key: &String| key != "rules";
            one.extend(table.clone().into_iter().filter(|(key, _)| keep(key)));
            one.insert("rules".into(), Toml::Array(vec![rule.clone()]));
            let found = mistakes("one.toml", one.to_string());
            assert!(
                found.contains(": error: "),
                "{}: {name}: {found}",
                toml.display()
            );
        }
    }
}

// === impl Case ===

impl Case {
    /// Runs `ask` with the facts of the case, those of the response included.
    fn ask<T>(&self, ask: impl FnOnce(&ExprEnv, &dyn FieldFacts) -> T) -> T {
        let request = self.table["request"].as_table().unwrap();
        let (parts, connection, place) = (parts(request), connection(request), place(request));
        let head = RequestHead::read(&parts, connection.tls.is_some()).unwrap();
        let client: IpAddr = text(request, "ip")
            .unwrap_or("203.0.113.7")
            .parse()
            .unwrap();
        let now = Timestamp::from_millis(int(request, "at_ms").unwrap_or(0).try_into().unwrap());
        let mut facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, &place);
        facts.route = text(request, "route");
        facts.id = text(request, "id").unwrap_or_default();
        if let Some(body) = text(request, "body") {
            let kind = BodyKind::of(&parts.headers);
            let truncated = request.get("truncated").and_then(Toml::as_bool);
            let is_complete = truncated != Some(true);
            facts.set_body(InspectedBody::new(
                body.to_owned().into(),
                is_complete,
                kind,
            ));
        }
        let lists = self.lists();
        let env = ExprEnv {
            scheme: &FieldTable,
            lists: &lists,
            allow_response: true,
        };
        let Some(response) = self.table.get("response").and_then(Toml::as_table) else {
            return ask(&env, &facts);
        };
        let headers = headers(response);
        let response = ResponseFacts {
            status: int(response, "status").unwrap().try_into().unwrap(),
            headers: &headers,
            duration_ms: int(response, "duration_ms")
                .unwrap_or(0)
                .try_into()
                .unwrap(),
            body_size: int(response, "body_size").map(|size| size.try_into().unwrap()),
            upstream: text(response, "upstream"),
            upstream_error: text(response, "error"),
        };
        ask(&env, &facts.with_response(&response))
    }

    fn lists(&self) -> NamedLists {
        let mut lists = NamedLists::new();
        let tables = self.table.get("lists").and_then(Toml::as_table);
        for (name, values) in tables.into_iter().flatten() {
            let values = values.as_array().unwrap().iter();
            let list = NamedList::from_texts(values.map(|value| value.as_str().unwrap()));
            lists.insert(name.as_str(), list);
        }
        lists
    }

    fn texts(&self, key: &str) -> Vec<String> {
        let texts = self.table.get(key).and_then(Toml::as_array);
        let texts = texts.into_iter().flatten();
        texts
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    }

    /// Key parts with what they give, as text; those of `missing` give nothing.
    fn values(&self) -> Vec<(String, Option<String>)> {
        let missing = self
            .texts("missing")
            .into_iter()
            .map(|source| (source, None));
        let pairs = self.table.get("values").and_then(Toml::as_array);
        let pairs = pairs.into_iter().flatten().map(|pair| {
            let [source, value] = pair.as_array().unwrap().as_slice() else {
                panic!("{pair}")
            };
            let text = |toml: &Toml| toml.as_str().unwrap().to_owned();
            (text(source), Some(text(value)))
        });
        pairs.chain(missing).collect()
    }
}

// === impl Place ===

impl GeoSource for Place {
    fn asn(&self, _: IpAddr) -> Option<u32> {
        self.asn
    }

    fn country(&self, _: IpAddr) -> Option<[u8; 2]> {
        self.country
    }

    fn continent(&self, _: IpAddr) -> Option<[u8; 2]> {
        self.continent
    }
}

fn cases() -> Vec<Case> {
    let read = |path: PathBuf| Case {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        table: fs::read_to_string(&path)
            .unwrap()
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    };
    files("tests/data/expr").into_iter().map(read).collect()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    assert!(files.len() > 5, "{folder}");
    files
}

fn parts(request: &Table) -> Parts {
    let builder = Request::builder()
        .method(text(request, "method").unwrap_or("GET"))
        .uri(text(request, "uri").unwrap_or("/"))
        .version(match text(request, "version") {
            Some("HTTP/2") => Version::HTTP_2,
            Some("HTTP/1.0") => Version::HTTP_10,
            _ => Version::HTTP_11,
        });
    let (mut parts, ()) = builder.body(()).unwrap().into_parts();
    parts.headers = headers(request);
    if !parts.headers.contains_key("host") && parts.uri.authority().is_none() {
        parts
            .headers
            .insert("host", HeaderValue::from_static("example.com"));
    }
    parts
}

/// `headers = [["name", "value"], …]`; `\xHH` in a value is that byte.
fn headers(table: &Table) -> HeaderMap {
    let pairs = table.get("headers").and_then(Toml::as_array);
    let mut headers = HeaderMap::new();
    for pair in pairs.into_iter().flatten() {
        let name: HeaderName = pair[0].as_str().unwrap().parse().unwrap();
        let value = pair[1].as_str().unwrap().replace("\\xff", "\u{1}");
        let bytes: Vec<u8> = value
            .bytes()
            .map(|byte| if byte == 1 { 0xff } else { byte })
            .collect();
        headers.append(name, HeaderValue::from_bytes(&bytes).unwrap());
    }
    headers
}

/// A certificate whose DER is these fields as TOML.
fn client_certificate(fields: &Toml) -> ClientCertificate {
    let text = toml::to_string(fields).unwrap();
    ClientCertificate::new(text.into_bytes(), |text| {
        let table: Table = std::str::from_utf8(text).unwrap().parse().unwrap();
        let field = |key: &str| -> Box<str> { self::text(&table, key).unwrap().into() };
        let names = table["names"].as_array().unwrap().iter();
        CertificateFields {
            subject: field("subject"),
            names: names.map(|name| name.as_str().unwrap().into()).collect(),
            serial: field("serial"),
            fingerprint: field("fingerprint"),
        }
    })
}

fn connection(request: &Table) -> ClientConnection {
    let peer: SocketAddr = text(request, "peer")
        .unwrap_or("10.0.0.1:4711")
        .parse()
        .unwrap();
    let own = |tls: &Table, key: &str| text(tls, key).map(Box::<str>::from);
    let leak = |tls: &Table, key: &str| -> &'static str {
        text(tls, key).unwrap_or_default().to_owned().leak()
    };
    let tls = request
        .get("tls")
        .and_then(Toml::as_table)
        .map(|tls| TlsFacts {
            version: leak(tls, "version"),
            cipher: leak(tls, "cipher"),
            sni: own(tls, "sni"),
            alpn: tls.contains_key("alpn").then(|| leak(tls, "alpn")),
            client: tls.get("client").map(client_certificate),
            hello: HelloFacts {
                ja3: own(tls, "ja3").unwrap_or_default().into(),
                ja3_raw: own(tls, "ja3_raw").unwrap_or_default().into(),
                ja4: own(tls, "ja4").unwrap_or_default().into(),
                length: int(tls, "hello_length").unwrap_or(0).try_into().unwrap(),
            },
        });
    ClientConnection {
        peer,
        listener: "0.0.0.0:8443".into(),
        tls,
    }
}

fn place(request: &Table) -> Place {
    let code = |key| text(request, key).map(|code| code.as_bytes().try_into().unwrap());
    Place {
        asn: int(request, "asn").map(|asn| asn.try_into().unwrap()),
        country: code("country"),
        continent: code("continent"),
    }
}

fn text<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    table.get(key).map(|value| value.as_str().unwrap())
}

fn int(table: &Table, key: &str) -> Option<i64> {
    table.get(key).map(|value| value.as_integer().unwrap())
}

fn shown(value: &ScalarValue<'_>) -> String {
    match value {
        ScalarValue::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ScalarValue::Int(int) => int.to_string(),
        ScalarValue::Ip(ip) => ip.to_string(),
        ScalarValue::Bool(value) => value.to_string(),
    }
}

/// What `check` says of a file.
fn rendered(toml: &std::path::Path) -> String {
    let name = toml.file_name().unwrap().to_string_lossy().into_owned();
    mistakes(&name, fs::read_to_string(toml).unwrap())
}

fn mistakes(name: &str, text: String) -> String {
    let source = ConfigSource::new(name, text + "\n" + LISTENER);
    let mut diagnostics = Diagnostics::new();
    if let Some(file) = config::read(&source, &mut diagnostics) {
        let now = Clock::System.now();
        config::compile(&file, &source, now, None, &mut diagnostics);
    }
    diagnostics.render(&source, false)
}
