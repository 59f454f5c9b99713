//! The document names every path, method, parameter and field, and no others.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::DOCUMENT;
use crate::admin::access::PathAccess;
use crate::admin::objects::*;
use crate::admin::router::ROUTES;
use crate::clock::Timestamp;
use crate::observe::activity::{
    ActionClass, CandidateRates, DecisionRecord, LatencyPercentiles, Marker, MarkerKind, RuleRates,
    Tick,
};
use crate::store::FillLevels;

fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap()
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_path_and_method_is_documented() {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeMap<_, _> = paths
        .iter()
        .map(|(path, item)| (path.clone(), names(item)))
        .collect();
    let routes = ROUTES.iter().map(|route| {
        let methods = route
            .methods
            .iter()
            .map(|(method, _)| method.as_str().to_lowercase());
        (route.pattern.to_owned(), methods.collect())
    });
    assert_eq!(documented, routes.collect());
}

#[test]
fn the_segments_in_braces_are_parameters() {
    let document = document();
    for (path, item) in document["paths"].as_object().unwrap() {
        let written = path.split('/').filter_map(|part| part.strip_prefix('{'));
        let written: BTreeSet<_> = written.map(|part| part.trim_end_matches('}')).collect();
        for operation in item.as_object().unwrap().values() {
            let parameters = operation["parameters"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let in_path = parameters.iter().filter(|one| one["in"] == "path");
            let documented: BTreeSet<_> =
                in_path.map(|one| one["name"].as_str().unwrap()).collect();
            assert_eq!(documented, written, "{path}");
        }
    }
}

#[test]
fn the_parameters_of_queries_are_documented() {
    let document = document();
    for route in ROUTES {
        for (method, endpoint) in route.methods {
            let method = method.as_str().to_lowercase();
            let parameters = &document["paths"][route.pattern][&method]["parameters"];
            let parameters = parameters.as_array().cloned().unwrap_or_default();
            let in_query = parameters.iter().filter(|one| one["in"] == "query");
            let documented: BTreeSet<_> =
                in_query.map(|one| one["name"].as_str().unwrap()).collect();
            let read: BTreeSet<_> = endpoint.parameters().iter().copied().collect();
            assert_eq!(documented, read, "{method} {}", route.pattern);
        }
    }
}

#[test]
fn paths_that_need_no_token_say_so() {
    let document = document();
    for route in ROUTES {
        let operation = &document["paths"][route.pattern]["get"];
        let is_open = operation["security"] == serde_json::json!([]);
        assert_eq!(
            is_open,
            route.access != PathAccess::Token,
            "{}",
            route.pattern
        );
    }
}

#[test]
fn every_reference_leads_to_a_schema() {
    let document = document();
    let schemas = names(&document["components"]["schemas"]);
    let mut used = BTreeSet::new();
    for part in DOCUMENT.split("#/components/schemas/").skip(1) {
        used.insert(part.split('"').next().unwrap().to_owned());
    }
    assert!(used.is_subset(&schemas), "{used:?}");
    // The data of events is not part of a response.
    let events = ["Skipped".to_owned()].into();
    assert_eq!(
        schemas.difference(&used).cloned().collect::<BTreeSet<_>>(),
        events
    );
}

#[track_caller]
fn has_schema(name: &str, object: &impl Serialize) {
    let document = document();
    let schema = &document["components"]["schemas"][name];
    let fields = names(&serde_json::to_value(object).unwrap());
    let documented = names(&schema["properties"]);
    let required = schema["required"].as_array().unwrap().iter();
    let required: BTreeSet<_> = required
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    assert!(fields.is_subset(&documented), "{name}: {fields:?}");
    assert!(required.is_subset(&fields), "{name}: {fields:?}");
}

#[test]
fn the_schemas_have_the_fields_of_the_objects() {
    let time = ApiTime(Timestamp::from_secs(1));
    has_schema(
        "ConfigError",
        &ConfigErrorObject {
            file: String::new(),
            line: 1,
            column: 1,
            length: 1,
            message: String::new(),
            source: String::new(),
        },
    );
    has_schema(
        "LastReload",
        &LastReloadObject {
            at: time,
            ok: true,
            by: "api",
            errors: vec![],
        },
    );
    has_schema(
        "Attention",
        &AttentionObject {
            id: String::new(),
            level: AttentionLevel::Note,
            text: String::new(),
            detail: String::new(),
            since: time,
            link: None,
        },
    );
    has_schema("RuleHistory", &RuleHistoryObject::default());
    has_schema("Skipped", &SkippedObject { ts: time, count: 1 });
    has_schema(
        "Removed",
        &RemovedObject {
            removed: 1,
            scope: "node",
        },
    );
    has_schema(
        "KeyPart",
        &KeyPartObject {
            field: String::new(),
            value: None,
        },
    );
    has_schema(
        "CommonPart",
        &CommonPartObject {
            rule: String::new(),
            field: String::new(),
            value: String::new(),
            share_ratio: 1.0,
        },
    );
    has_schema(
        "Exemption",
        &ExemptionObject {
            ip: String::new(),
            since: time,
            until: time,
            note: None,
            scope: "node",
        },
    );
    has_schema(
        "Distribution",
        &DistributionObject::new(FillLevels::default()),
    );
    has_schema(
        "Candidate",
        &CandidateObject {
            algorithm: "gcra",
            limit: 1,
            period: None,
            burst: None,
            stricter: 0,
            laxer: 0,
            differing_keys: Some(1),
        },
    );
    has_schema("Mitigation", &mitigation(time));
    has_schema(
        "MitigationPage",
        &MitigationPage {
            items: vec![],
            total: 0,
            next: None,
            all: 0,
            likely_false_positives: 0,
            manual: 0,
            common: vec![],
        },
    );
    has_schema(
        "TopKey",
        &TopKeyObject {
            key: String::new(),
            parts: vec![],
            count: 0,
            limit: 0,
            banned_until: None,
            note: String::new(),
            sample: None,
        },
    );
    has_schema(
        "Client",
        &ClientObject {
            ip: None,
            asn: None,
            as_name: None,
            country: None,
            exempt_until: None,
            bans: vec![],
            decisions: vec![],
            mitigated: 0,
            forwarded: None,
            window_start: None,
        },
    );
    has_schema(
        "History",
        &HistoryObject {
            step_ms: 5_000,
            start: time,
            actions_per_s: BTreeMap::new(),
            rules: BTreeMap::new(),
            markers: vec![],
        },
    );
}

fn mitigation(time: ApiTime) -> MitigationObject {
    MitigationObject {
        id: String::new(),
        rule: String::new(),
        key: String::new(),
        action: "block",
        dry_run: false,
        until: time,
        offence: 1,
        since: None,
        by: "rule",
        mitigated: 0,
        last_seen: None,
        addresses: 0,
        cause: None,
        scope: "node",
    }
}

/// The JSON that the hub writes.
#[test]
fn the_schemas_have_the_fields_of_ticks_decisions_and_markers() {
    let rates = RuleRates {
        name: "r".into(),
        matched_per_s: 1.0,
        mitigated_per_s: 1.0,
        would_mitigate_per_s: 0.0,
        candidate: Some(CandidateRates::default()),
        keys: 1,
        bans: 1,
        last_matched: None,
    };
    let tick = Tick {
        ts: Timestamp::from_secs(1),
        actions_per_s: [1.0; ActionClass::COUNT],
        latency: Some(LatencyPercentiles { p50: 1.0, p99: 2.0 }),
        connections: 1,
        rules: vec![rates],
    };
    let tick = parsed(&tick.to_json());
    has_schema("Tick", &tick);
    has_schema("Latency", &tick["latency_ms"]);
    has_schema("RuleTick", &tick["rules"]["r"]);
    has_schema("CandidateRates", &tick["rules"]["r"]["candidate"]);
    has_schema("Decision", &parsed(&decision().to_json()));
    let marker = Marker {
        ts: Timestamp::from_secs(1),
        kind: MarkerKind::Ban,
        bad: false,
        label: String::new(),
        text: String::new(),
    };
    has_schema("Marker", &parsed(&marker.to_json()));
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn decision() -> DecisionRecord {
    DecisionRecord {
        ts: Timestamp::from_secs(1),
        id: "1".into(),
        client_ip: [192, 0, 2, 1].into(),
        asn: None,
        country: None,
        ja4: None,
        method: "GET".into(),
        host: b"h".as_slice().into(),
        path: b"/".as_slice().into(),
        query: None,
        status: 429,
        user_agent: None,
        rule: None,
        action: "block",
        key: None,
        dry_run: false,
        banned: false,
        count: None,
        limit: None,
        repeat: 1,
    }
}
