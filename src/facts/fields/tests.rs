//! The field table is whole and its names are right.

use std::collections::HashSet;

use super::{FieldTable, HeadFields, all};
use crate::expr::{FieldScheme, Phase, ValueType};

#[test]
fn names_are_unique() {
    let names = FieldTable.names();
    let distinct: HashSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}

#[test]
fn every_name_is_found_and_no_supported_name_is_refused() {
    for (at, field) in all().iter().enumerate() {
        for name in field.aliases.iter().chain([&field.name]) {
            let spec = FieldTable.field(name).unwrap();
            assert_eq!(usize::from(spec.id.0), at, "{name}");
            assert_eq!((spec.ty, spec.phase), (field.ty(), field.phase), "{name}");
        }
        assert!(
            !field.doc.is_empty() && !field.doc.ends_with('.'),
            "{}",
            field.name
        );
    }
}

/// The contract of the rule language: every field with its type and phase.
#[test]
fn the_table_lists_every_field_of_the_language() {
    let groups = [
        (
            ValueType::Bytes,
            Phase::Request,
            "http.request.method http.request.version http.request.full_uri http.request.uri http.request.uri.path http.request.uri.path.extension http.request.uri.query http.host http.referer http.user_agent http.cookie http.x_forwarded_for raw.http.request.full_uri raw.http.request.uri raw.http.request.uri.path raw.http.request.uri.path.extension raw.http.request.uri.query http.request.route http.request.id ip.src.country ip.src.continent ip.geoip.country ip.geoip.continent tls.version tls.cipher tls.sni tls.alpn tls.ja3 tls.ja3_raw tls.ja4 cf.tls_version cf.tls_cipher cf.bot_management.ja3_hash cf.bot_management.ja4",
        ),
        (
            ValueType::Int,
            Phase::Request,
            "http.request.timestamp.sec http.request.timestamp.msec http.request.body.size ip.src.asnum ip.geoip.asnum tls.client_hello_length",
        ),
        (ValueType::Ip, Phase::Request, "ip.src ip.peer"),
        (ValueType::Bool, Phase::Request, "ssl"),
        (
            ValueType::Map,
            Phase::Request,
            "http.request.uri.args http.request.headers http.request.cookies",
        ),
        (
            ValueType::Array,
            Phase::Request,
            "http.request.uri.args.names http.request.uri.args.values http.request.headers.names http.request.headers.values",
        ),
        (
            ValueType::Int,
            Phase::Response,
            "http.response.code http.response.duration_ms http.response.body.size",
        ),
        (
            ValueType::Bytes,
            Phase::Response,
            "http.response.content_type.media_type upstream.name upstream.error",
        ),
        (ValueType::Map, Phase::Response, "http.response.headers"),
        (ValueType::Map, Phase::Body, "http.request.body.form"),
        (
            ValueType::Array,
            Phase::Body,
            "http.request.body.form.names http.request.body.form.values",
        ),
        (
            ValueType::Bytes,
            Phase::Body,
            "http.request.body.raw http.request.body.mime",
        ),
        (ValueType::Bool, Phase::Body, "http.request.body.truncated"),
    ];
    for (ty, phase, names) in groups {
        for name in names.split(' ') {
            let spec = FieldTable
                .field(name)
                .unwrap_or_else(|| panic!("no {name}"));
            assert_eq!((spec.ty, spec.phase), (ty, phase), "{name}");
        }
    }
}

#[test]
fn only_header_names_ignore_case() {
    let ignoring = |name| FieldTable.field(name).unwrap().names_ignore_case;
    assert!(ignoring("http.request.headers") && ignoring("http.response.headers"));
    assert!(!ignoring("http.request.cookies") && !ignoring("http.request.uri.args"));
}

#[test]
fn the_body_and_the_response_are_not_known_from_the_head() {
    for field in all() {
        let by_head = field.phase == Phase::Request || field.name == "http.request.body.mime";
        assert_eq!(field.is_known_from_head, by_head, "{}", field.name);
    }
}

#[test]
fn expressions_outside_rules_cannot_read_the_body() {
    for field in all() {
        let outside = HeadFields.field(field.name).is_some();
        assert_eq!(outside, field.phase != Phase::Body, "{}", field.name);
        assert_eq!(HeadFields.names().contains(&field.name), outside);
    }
    let refusal = HeadFields.refusal("http.request.body.form").unwrap();
    assert!(
        refusal.contains("only `count`, `mitigate`, `cost` and `key`"),
        "{refusal}"
    );
    assert_eq!(
        HeadFields.refusal("cf.ray_id"),
        FieldTable.refusal("cf.ray_id")
    );
}

#[test]
fn cloudflare_only_fields_are_refused_with_the_nearest_field() {
    for name in [
        "cf.bot_management.score",
        "cf.threat_score",
        "cf.waf.score",
        "cf.waf.score.sqli",
        "cf.edge.server_port",
        "cf.colo.id",
        "cf.client.bot",
        "cf.something.new",
    ] {
        assert!(FieldTable.field(name).is_none(), "{name}");
        let why = FieldTable.refusal(name).unwrap_or_else(|| panic!("{name}"));
        assert!(
            why.starts_with(&format!("only Cloudflare provides `{name}`; nearest: ")),
            "{why}"
        );
    }
    assert!(
        FieldTable
            .refusal("ip.src.city")
            .unwrap()
            .contains("`ip.src.country`")
    );
    assert!(
        FieldTable
            .refusal("http.request.body.multipart.names")
            .unwrap()
            .ends_with("nearest: `http.request.body.form` for an urlencoded form")
    );
    for name in ["http.request.jwt.claims", "http.request.jwt.claims.iat.sec"] {
        assert!(
            FieldTable.refusal(name).unwrap().contains("jwt_claim("),
            "{name}"
        );
    }
}

#[test]
fn a_misspelled_name_is_not_refused_as_cloudflare_only() {
    for name in [
        "http.request.uri.pth",
        "ip.sr",
        "tls.ja5",
        "ip.src.contry",
        "http.request.body.sze",
        "cf",
        "",
        "http.request.body",
    ] {
        assert_eq!(FieldTable.refusal(name), None, "{name}");
    }
}

/// What `refusal` names as nearest must exist.
#[test]
fn suggested_nearest_fields_exist() {
    for name in FieldTable.names() {
        assert!(FieldTable.field(name).is_some());
    }
    for nearest in super::foreign::nearest() {
        for quoted in nearest.split('`').skip(1).step_by(2) {
            let field = quoted.split([' ', '[', '(']).next().unwrap();
            let known = FieldTable.field(field).is_some();
            assert!(
                known || ["matches", "lockgate", "jwt_claim"].contains(&field),
                "{quoted}"
            );
        }
    }
}

#[test]
fn every_name_compiles() {
    let lists = crate::expr::NamedLists::new();
    let env = crate::expr::ExprEnv {
        scheme: &FieldTable,
        lists: &lists,
        allow_response: true,
    };
    for field in all() {
        for name in [field.name].iter().chain(field.aliases) {
            let source = match field.ty() {
                ValueType::Map => format!("len({name}[\"a\"]) ge 0"),
                ValueType::Array => format!("len({name}) ge 0"),
                ValueType::Bytes => format!("{name} eq \"a\""),
                ValueType::Int => format!("{name} eq 1"),
                ValueType::Ip => format!("{name} eq 192.0.2.1"),
                ValueType::Bool => name.to_string(),
            };
            let compiled = crate::expr::predicate(&source, &env);
            assert!(compiled.is_ok(), "{source}: {:?}", compiled.err());
        }
    }
}
