//! Which rules the index finds, which it leaves out and which fields it does not read.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::net::IpAddr;
use std::ops::ControlFlow;

use proptest::prelude::*;

use super::ranges::RangeGuards;
use super::{IndexCost, Marks, PrefilterIndex};
use crate::expr::{
    EvalContext, ExprEnv, FieldFacts, FieldId, FieldScheme, NamedLists, Prefilter, predicate,
};
use crate::facts::FieldTable;

/// One path, one network, no header; records the fields that were read.
#[derive(Default)]
struct Asked {
    path: &'static str,
    asn: i64,
    reads: RefCell<Vec<FieldId>>,
}

impl FieldFacts for Asked {
    fn bytes(&self, field: FieldId) -> Option<Cow<'_, [u8]>> {
        self.reads.borrow_mut().push(field);
        (field == id("http.request.uri.path")).then_some(Cow::Borrowed(self.path.as_bytes()))
    }

    fn int(&self, field: FieldId) -> Option<i64> {
        self.reads.borrow_mut().push(field);
        Some(self.asn)
    }

    fn ip(&self, _: FieldId) -> Option<IpAddr> {
        None
    }

    fn bool(&self, _: FieldId) -> Option<bool> {
        None
    }

    fn element(&self, field: FieldId, _: Option<&[u8]>, _: i32) -> Option<Cow<'_, [u8]>> {
        self.reads.borrow_mut().push(field);
        None
    }

    fn each(
        &self,
        field: FieldId,
        _: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        self.reads.borrow_mut().push(field);
        let _ = visit(b"x-7");
    }
}

#[test]
fn only_rules_whose_guard_holds_are_evaluated() {
    let mut rules: Vec<String> = (0..500).map(|n| path(&format!("/p{n}"))).collect();
    rules.push("starts_with(http.request.uri.path, \"/P7\")".into());
    rules.push("http.request.uri.path wildcard \"/p7*\"".into());
    rules.push("not ssl".into());
    rules.push(format!("{} and {}", path("/p7"), path("/p8")));
    let index = index(&rules, &[]);
    assert_eq!(found(&index, "/p7"), [7, 500, 501, 502, 503]);
    assert_eq!(found(&index, "/p77"), [77, 500, 501, 502]);
    assert_eq!(found(&index, "/q"), [502]);
    assert_eq!(found(&index, ""), [502]);
}

#[test]
fn a_condition_shared_by_all_rules_is_not_a_guard() {
    let rules = (0..100).map(|n| format!("{} and ip.src.asnum eq {n}", path("/login")));
    let index = index(&rules.collect::<Vec<_>>(), &[]);
    let asked = Asked {
        path: "/login",
        asn: 7,
        ..Asked::default()
    };
    assert_eq!(candidates(&index, &asked), [7]);
}

#[test]
fn a_value_used_by_few_rules_is_not_indexed() {
    let rules: Vec<String> = (0..3).map(|n| path(&format!("/p{n}"))).collect();
    assert!(index(&rules, &[]).is_idle());
    let rules: Vec<String> = (0..4).map(|n| path(&format!("/p{n}"))).collect();
    assert!(!index(&rules, &[]).is_idle());
}

#[test]
fn an_expensive_value_is_indexed_for_many_rules_or_if_read_anyway() {
    let asns = |count| {
        (0..count)
            .map(|n| format!("ssl and ip.src.asnum eq {n}"))
            .collect::<Vec<_>>()
    };
    assert!(index(&asns(18), &[]).is_idle());
    assert!(!index(&asns(19), &[]).is_idle());
    assert!(!index(&asns(4), &["ip.src.asnum"]).is_idle());
}

#[test]
fn a_value_is_read_once_and_only_when_its_first_rule_is_reached() {
    let mut rules: Vec<String> = (0..70).map(|n| path(&format!("/p{n}"))).collect();
    rules.extend((0..50).map(|n| format!("ip.src.asnum eq {n}")));
    let index = index(&rules, &[]);
    let asked = Asked {
        path: "/p69",
        asn: 49,
        ..Asked::default()
    };
    let mut seen = Vec::new();
    index.for_each_match(&EvalContext::of(&asked), |rule| {
        seen.push((rule.0, asked.reads.borrow().len()));
        ControlFlow::Continue(())
    });
    assert_eq!(seen, [(69, 1), (119, 2)]);
    let path = id("http.request.uri.path");
    assert_eq!(asked.reads.borrow().first(), Some(&path));
}

#[test]
fn rules_on_many_headers_are_found_by_the_header_names_present() {
    let rule = |n| format!("http.request.headers[\"X-{n}\"][0] matches \"[0-9]\"");
    let rules: Vec<String> = (0..100).map(rule).collect();
    let index = index(&rules, &[]);
    assert_eq!(found(&index, "/"), [7]);
}

#[test]
fn long_strings_are_indexed_by_their_prefix() {
    let long = "/0123456789abcdef".repeat(5);
    let mut rules: Vec<String> = (0..20).map(|n| path(&format!("/{n}"))).collect();
    rules.push(path(&long));
    rules.push(path(&long[..64]));
    rules.push(format!("starts_with(http.request.uri.path, \"{long}\")"));
    let index = index(&rules, &[]);
    let long: &'static str = long.leak();
    assert_eq!(found(&index, long), [20, 22]);
    assert_eq!(found(&index, &long[..64]), [20, 21, 22]);
    assert_eq!(found(&index, &long[..63]), [0; 0]);
}

#[test]
fn a_few_strings_are_indexed_by_their_prefix() {
    let mut rules: Vec<String> = (0..4).map(|n| path(&format!("/{n}"))).collect();
    rules.push(path("/account/login"));
    rules.push("starts_with(http.request.uri.path, \"/account/\")".to_owned());
    rules.push("lower(http.request.uri.path) eq \"/account/login\"".to_owned());
    let index = index(&rules, &[]);
    assert_eq!(found(&index, "/account/login"), [4, 5, 6]);
    assert_eq!(found(&index, "/ACCOUNT/LOGIN"), [4, 5, 6]);
    assert_eq!(found(&index, "/account/other"), [5]);
    assert_eq!(found(&index, "/account/"), [5]);
    assert_eq!(found(&index, "/3"), [3]);
    assert_eq!(found(&index, "/33"), [0; 0]);
    assert_eq!(found(&index, ""), [0; 0]);
}

#[test]
fn more_rules_than_the_inline_bitmap_holds_are_found() {
    let rules: Vec<String> = (0..5000).map(|n| path(&format!("/p{n}"))).collect();
    assert_eq!(found(&index(&rules, &[]), "/p4999"), [4999]);
}

proptest! {
    #[test]
    fn ranges_that_overlap_are_all_found(
        ranges in prop::collection::vec((0i64..100, 0i64..40), 0..60),
        value in -5i64..150,
    ) {
        let holds = |(low, width): &(i64, i64)| (*low..=low + width).contains(&value);
        let expected: Vec<usize> = (0..ranges.len()).filter(|at| holds(&ranges[*at])).collect();
        let spans = RangeGuards::new((0..).zip(&ranges).map(|(at, (low, width))| (*low, low + width, at)));
        let mut words = [0; 2];
        let mut marks = Marks(&mut words);
        spans.mark_matches(value, &mut marks);
        let marked = (0..ranges.len()).filter(|at| marks.0[at / 64] >> (at % 64) & 1 == 1);
        prop_assert_eq!(marked.collect::<Vec<_>>(), expected);
    }
}

fn path(text: &str) -> String {
    format!("http.request.uri.path eq \"{text}\"")
}

fn found(index: &PrefilterIndex, path: &'static str) -> Vec<u16> {
    let asked = Asked {
        path,
        ..Asked::default()
    };
    candidates(index, &asked)
}

fn candidates(index: &PrefilterIndex, asked: &Asked) -> Vec<u16> {
    let mut found = Vec::new();
    index.for_each_match(&EvalContext::of(asked), |rule| {
        found.push(rule.0);
        ControlFlow::Continue(())
    });
    found
}

fn index(rules: &[String], read_anyway: &[&str]) -> PrefilterIndex {
    let lists = NamedLists::new();
    let env = ExprEnv {
        scheme: &FieldTable,
        lists: &lists,
        allow_response: true,
    };
    let need = |text: &String| {
        let need = predicate(text, &env).unwrap().need().clone();
        super::needs::adapt(&need, crate::expr::Phase::Response)
    };
    let needs: Vec<Prefilter> = rules.iter().map(need).collect();
    let read_anyway: HashSet<FieldId> = read_anyway.iter().map(|name| id(name)).collect();
    PrefilterIndex::new(
        &needs,
        IndexCost {
            least: 4,
            read_anyway: &read_anyway,
        },
    )
}

fn id(name: &str) -> FieldId {
    FieldTable.field(name).unwrap().id
}
