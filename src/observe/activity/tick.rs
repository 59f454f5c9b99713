//! The rates of the last second, for the event stream and the status.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::action_class::ActionClass;
use super::history::RuleStep;
use super::latency::LatencyPercentiles;
use crate::clock::{Rfc3339, Timestamp};
use crate::observe::access::json_writer::{JsonWriter, show};
use crate::observe::escape;
use crate::rules::RuleId;

/// The current totals of a rule: those of its metrics, and the size of its state in the store.
#[derive(Clone, Debug)]
pub struct RuleFigures {
    /// The name of the rule.
    pub name: Arc<str>,
    /// The identity of the rule's counters.
    pub id: RuleId,
    /// Whether the rule is a dry run.
    pub dry_run: bool,
    /// The requests that `mitigate` matched.
    pub matched: u64,
    /// The requests that the rule mitigated.
    pub mitigated: u64,
    /// The requests that the rule would have mitigated if it were not a dry run.
    pub would_mitigate: u64,
    /// The requests that the candidate decides differently. `None` without a candidate.
    pub candidate: Option<CandidateTotals>,
    /// The number of keys.
    pub keys: u64,
    /// The number of bans.
    pub bans: u64,
}

/// The requests that a candidate decides differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CandidateTotals {
    /// The rule admits the request and the candidate refuses it.
    pub stricter: u64,
    /// The rule refuses the request and the candidate admits it.
    pub laxer: u64,
}

/// What the gateway looks like at the time of a tick.
#[derive(Clone, Debug)]
pub struct TickInput {
    /// The time.
    pub now: Timestamp,
    /// The time since the previous tick, on the monotonic clock.
    pub elapsed: Duration,
    /// The number of open client connections.
    pub connections: u64,
    /// The rules, in file order.
    pub rules: Vec<RuleFigures>,
}

/// The rates of the last second.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The time of the tick.
    pub ts: Timestamp,
    /// The requests per second of each class, in the order of [`ActionClass::ALL`].
    pub actions_per_s: [f64; ActionClass::COUNT],
    /// The latencies of forwarded requests over the last ten ticks. `None` without requests.
    pub latency: Option<LatencyPercentiles>,
    /// The number of open client connections.
    pub connections: u64,
    /// The rules, in file order.
    pub rules: Vec<RuleRates>,
}

/// The rates of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRates {
    /// The name of the rule.
    pub name: Arc<str>,
    /// The requests per second that it matched.
    pub matched_per_s: f64,
    /// The requests per second that it mitigated.
    pub mitigated_per_s: f64,
    /// The requests per second that it would have mitigated if it were not a dry run.
    pub would_mitigate_per_s: f64,
    /// The requests per second that the candidate decides differently. `None` without a candidate.
    pub candidate: Option<CandidateRates>,
    /// The number of keys.
    pub keys: u64,
    /// The number of bans.
    pub bans: u64,
    /// The time of the tick in whose second the rule matched last. `None` if it never has.
    pub last_matched: Option<Timestamp>,
}

/// The requests per second that a candidate decides differently.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CandidateRates {
    /// The rule admits the request and the candidate refuses it.
    pub stricter_per_s: f64,
    /// The rule refuses the request and the candidate admits it.
    pub laxer_per_s: f64,
}

/// The totals of the previous tick, by rule.
#[derive(Debug, Default)]
pub(super) struct PreviousTotals(HashMap<Arc<str>, KnownTotals>);

/// The totals of a rule, and when the number of matched requests grew last.
#[derive(Debug)]
struct KnownTotals {
    figures: RuleFigures,
    last_matched: Option<Timestamp>,
}

// === impl PreviousTotals ===

impl PreviousTotals {
    /// Returns the rates and the counts since the previous call. A new rule starts with zero.
    pub(super) fn advance(&mut self, input: &TickInput) -> (Vec<RuleRates>, Vec<RuleStep>) {
        let seconds = input.elapsed.as_secs_f64().max(0.001);
        let compare = |now: &RuleFigures| {
            let known = self.0.get(&now.name);
            let before = known.map_or(now, |known| &known.figures);
            let of = |total: fn(&RuleFigures) -> u64| total(now).saturating_sub(total(before));
            let (matched, mitigated, would) = (
                of(|rule| rule.matched),
                of(|rule| rule.mitigated),
                of(|rule| rule.would_mitigate),
            );
            let stricter = of(|rule| rule.candidate.map_or(0, |both| both.stricter));
            let laxer = of(|rule| rule.candidate.map_or(0, |both| both.laxer));
            let rate = |count: u64| count as f64 / seconds;
            let rates = RuleRates {
                name: now.name.clone(),
                matched_per_s: rate(matched),
                mitigated_per_s: rate(mitigated),
                would_mitigate_per_s: rate(would),
                candidate: now.candidate.map(|_| CandidateRates {
                    stricter_per_s: rate(stricter),
                    laxer_per_s: rate(laxer),
                }),
                keys: now.keys,
                bans: now.bans,
                last_matched: KnownTotals::last_matched(known, now.matched, input.now),
            };
            let step = RuleStep {
                name: now.name.clone(),
                matched,
                mitigated: if now.dry_run { would } else { mitigated },
            };
            (rates, step)
        };
        let compared: (Vec<RuleRates>, Vec<RuleStep>) = input.rules.iter().map(compare).unzip();
        let totals = input.rules.iter().zip(&compared.0);
        let known = totals.map(|(figures, rates)| KnownTotals {
            figures: figures.clone(),
            last_matched: rates.last_matched,
        });
        self.0 = known
            .map(|known| (known.figures.name.clone(), known))
            .collect();
        compared
    }
}

// === impl KnownTotals ===

impl KnownTotals {
    /// Returns when a rule matched last, if it has matched this many requests at `now`. `known` are its totals before.
    fn last_matched(known: Option<&Self>, matched: u64, now: Timestamp) -> Option<Timestamp> {
        let before = known.map_or(0, |known| known.figures.matched);
        if matched > before {
            Some(now)
        } else {
            known.and_then(|known| known.last_matched)
        }
    }
}

// === impl Tick ===

impl Tick {
    /// Returns the requests per second of all classes together.
    pub fn requests_per_s(&self) -> f64 {
        self.actions_per_s.iter().sum()
    }

    /// Returns the tick as a JSON object on one line. Classes without requests are absent.
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(256 + 192 * self.rules.len());
        out.extend_from_slice(b"{\"ts\":\"");
        out.extend_from_slice(&Rfc3339(self.ts).to_bytes());
        out.extend_from_slice(b"\",\"requests_per_s\":");
        rate(&mut out, self.requests_per_s());
        out.extend_from_slice(b",\"actions_per_s\":{");
        let rates = ActionClass::ALL.iter().zip(self.actions_per_s);
        let rates = rates.filter(|(_, per_s)| *per_s > 0.0);
        for (index, (class, per_s)) in rates.enumerate() {
            comma(&mut out, index);
            show(&mut out, format_args!("\"{}\":", class.name()));
            rate(&mut out, per_s);
        }
        out.extend_from_slice(b"},\"latency_ms\":");
        match self.latency {
            Some(LatencyPercentiles { p50, p99 }) => show(
                &mut out,
                format_args!("{{\"p50\":{p50:.1},\"p99\":{p99:.1}}}"),
            ),
            None => out.extend_from_slice(b"null"),
        }
        let mut o = JsonWriter(&mut out);
        o.number(",\"connections\":", Some(self.connections));
        o.key(",\"rules\":{");
        for (index, rule) in self.rules.iter().enumerate() {
            comma(&mut out, index);
            rule.json(&mut out);
        }
        out.extend_from_slice(b"}}");
        // The writer escapes everything that is not UTF-8.
        String::from_utf8_lossy(&out).into_owned()
    }
}

// === impl RuleRates ===

impl RuleRates {
    fn json(&self, out: &mut Vec<u8>) {
        escape::json(out, self.name.as_bytes());
        out.extend_from_slice(b":{\"matched_per_s\":");
        rate(out, self.matched_per_s);
        out.extend_from_slice(b",\"mitigated_per_s\":");
        rate(out, self.mitigated_per_s);
        out.extend_from_slice(b",\"would_mitigate_per_s\":");
        rate(out, self.would_mitigate_per_s);
        match self.candidate {
            Some(rates) => {
                out.extend_from_slice(b",\"candidate\":{\"stricter_per_s\":");
                rate(out, rates.stricter_per_s);
                out.extend_from_slice(b",\"laxer_per_s\":");
                rate(out, rates.laxer_per_s);
                out.push(b'}');
            }
            None => out.extend_from_slice(b",\"candidate\":null"),
        }
        let mut o = JsonWriter(out);
        o.number(",\"keys\":", Some(self.keys));
        o.number(",\"bans\":", Some(self.bans));
        out.push(b'}');
    }
}

/// Writes a rate with one decimal.
fn rate(out: &mut Vec<u8>, per_s: f64) {
    show(out, format_args!("{per_s:.1}"));
}

/// Writes a comma before every element but the first.
fn comma(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A rule that has matched and mitigated this many requests.
    pub(in crate::observe::activity) fn figures(
        name: &str,
        matched: u64,
        mitigated: u64,
    ) -> RuleFigures {
        RuleFigures {
            name: name.into(),
            id: RuleId::unregistered(1),
            dry_run: false,
            matched,
            mitigated,
            would_mitigate: 0,
            candidate: None,
            keys: 3,
            bans: 2,
        }
    }

    fn input(rules: Vec<RuleFigures>) -> TickInput {
        TickInput {
            now: Timestamp::from_secs(1_700_000_000),
            elapsed: Duration::from_secs(2),
            connections: 4,
            rules,
        }
    }

    #[test]
    fn rates_are_differences_of_totals() {
        let mut totals = PreviousTotals::default();
        let dry_run = |would_mitigate| RuleFigures {
            dry_run: true,
            would_mitigate,
            candidate: Some(CandidateTotals {
                stricter: would_mitigate,
                laxer: 0,
            }),
            ..figures("b", 0, 0)
        };
        let (first, _) = totals.advance(&input(vec![figures("a", 50, 5), dry_run(7)]));
        assert_eq!(
            first[0].matched_per_s, 0.0,
            "the time of the total is unknown"
        );
        let (rates, steps) = totals.advance(&input(vec![figures("a", 60, 6), dry_run(9)]));
        assert_eq!(
            (rates[0].matched_per_s, rates[0].mitigated_per_s),
            (5.0, 0.5)
        );
        assert_eq!(rates[1].would_mitigate_per_s, 1.0);
        let candidate = rates[1].candidate.unwrap();
        assert_eq!(
            (candidate.stricter_per_s, candidate.laxer_per_s),
            (1.0, 0.0)
        );
        assert_eq!((steps[0].mitigated, steps[1].mitigated), (1, 2));
        // The series of a rule that was removed and added again starts at zero.
        let (rates, _) = totals.advance(&input(vec![figures("a", 1, 1)]));
        assert_eq!(rates[0].matched_per_s, 0.0);
    }

    #[test]
    fn the_last_match_is_the_tick_in_which_the_total_grew() {
        let mut totals = PreviousTotals::default();
        let mut at = |seconds: u64, matched: u64| {
            let now = Timestamp::from_secs(seconds);
            let rules = vec![figures("a", matched, 0)];
            let (rates, _) = totals.advance(&TickInput {
                now,
                ..input(rules)
            });
            rates[0].last_matched.map(Timestamp::as_secs)
        };
        assert_eq!(at(1, 0), None);
        assert_eq!(at(2, 3), Some(2));
        assert_eq!(at(3, 3), Some(2));
        assert_eq!(at(4, 4), Some(4));
    }

    #[test]
    fn a_tick_is_one_line_of_json() {
        let mut totals = PreviousTotals::default();
        let (rules, _) = totals.advance(&input(vec![figures("lo\"gin", 50, 5)]));
        let mut actions_per_s = [0.0; ActionClass::COUNT];
        actions_per_s[ActionClass::Forward.index()] = 1140.25;
        actions_per_s[ActionClass::Own.index()] = 2.0;
        let tick = Tick {
            ts: Timestamp::from_secs(1_700_000_000),
            actions_per_s,
            latency: Some(LatencyPercentiles {
                p50: 12.14,
                p99: 228.0,
            }),
            connections: 8014,
            rules,
        };
        assert_eq!(
            tick.to_json(),
            r#"{"ts":"2023-11-14T22:13:20.000Z","requests_per_s":1142.2,"actions_per_s":{"forward":1140.2,"own":2.0},"latency_ms":{"p50":12.1,"p99":228.0},"connections":8014,"rules":{"lo\"gin":{"matched_per_s":0.0,"mitigated_per_s":0.0,"would_mitigate_per_s":0.0,"candidate":null,"keys":3,"bans":2}}}"#
        );
        let idle = Tick {
            latency: None,
            rules: Vec::new(),
            ..tick
        };
        assert!(
            idle.to_json()
                .contains(r#""latency_ms":null,"connections":8014,"rules":{}}"#)
        );
    }
}
