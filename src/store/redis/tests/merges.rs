//! Random reports to sync.lua and to the record that the simulation of async mode uses: the results are equal.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::differential::Draws;
use super::server::TestServer;
use super::{on_a_core, settings};
use crate::clock::{Clock, ManualClock, Timestamp};
use crate::limit::{Algorithm, ChargeUnits, Limiter};
use crate::rules::plan::{BanLength, RuleId};
use crate::store::async_mode::{FleetInfo, FleetRecord, KeyReport, used_units};
use crate::store::fixture::at;
use crate::store::redis::key_names::KeyNames;
use crate::store::redis::{
    FleetEvent, FleetKey, PackedEvents, RedisLink, RedisStore, ReportResult, StreamPositions,
    SyncReply, SyncReport, SyncSender,
};

const MERGES: usize = 20_000;

/// A connection whose scripts take the time from a clock that a test sets.
async fn linked(server: &TestServer) -> (Rc<RedisLink>, ManualClock) {
    let shared = Arc::new(RedisStore::with_manual_time(settings(&server.url())));
    let clock = ManualClock::at(at(0));
    let link = Rc::new(RedisLink::new(shared, Clock::Manual(clock.clone())));
    let supervised = link.clone();
    tokio::task::spawn_local(async move { supervised.supervise().await });
    link.first_attempt().await;
    (link, clock)
}

fn fleet(nodes: u32) -> FleetInfo {
    FleetInfo {
        nodes,
        sync_interval: Duration::from_millis(100),
    }
}

fn sender(node: u64, exchanges: bool) -> SyncSender {
    SyncSender {
        node,
        fleet: fleet(10),
        exchanges,
        leaves: false,
    }
}

fn limiter(draws: &mut Draws) -> Limiter {
    let algorithm = draws.one_of(&[
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::TokenBucket,
        Algorithm::Gcra,
    ]);
    let limit = draws.one_of(&[1, 10, 100, 1_000_000]);
    let period = Duration::from_millis(draws.one_of(&[100, 1_000, 60_000, 3_600_000]));
    let slices = match algorithm {
        Algorithm::SlidingWindow => draws.one_of(&[1, 1, 12]),
        _ => 1,
    };
    let limiter = Limiter {
        burst: draws.one_of(&[limit, 5]),
        slices,
        ..Limiter::new(algorithm, limit, period)
    };
    Limiter {
        ratio: draws.ratio(&limiter),
        ..limiter
    }
}

/// Units of `count`, and `others` that match only `total`.
fn total_of(units: u64, others: u64) -> ChargeUnits {
    ChargeUnits::from(units).plus(ChargeUnits::of_total(others))
}

async fn merge_one(link: &RedisLink, sender: &SyncSender, report: SyncReport) -> SyncReply {
    let (events, positions) = <(PackedEvents, StreamPositions)>::default();
    let reply = link.sync(sender, &[report], &events, &positions).await;
    reply.unwrap()
}

#[test]
fn the_script_merges_as_the_simulation() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let (link, clock) = linked(&server).await;
        let mut draws = Draws(1);
        let mut announced = 0;
        for sequence in 0..MERGES as u64 / 100 {
            let limiter = limiter(&mut draws);
            let id = RuleId::unregistered(sequence);
            let key = FleetKey::new(id, b"key");
            let mut record = FleetRecord::new(&limiter);
            let mut now = at(0).as_micros() + draws.below(60_000_000);
            for number in 0..100 {
                let period = limiter.period.as_micros() as u64;
                now += draws.below(period / 4);
                if draws.chance(20) {
                    now += draws.below(3 * period);
                }
                let moment = Timestamp::from_micros(now);
                clock.set(moment);
                let units = draws.one_of(&[0, 1, 1, 2, limiter.limit / 5, limiter.limit]);
                let units = units.max(u64::from(number == 0));
                let report = KeyReport {
                    // Without a unit, the first report leaves no record.
                    units: if limiter.ratio.is_some() {
                        total_of(units, draws.one_of(&[0, 1, 5]))
                    } else {
                        units.into()
                    },
                    refused_cost: draws.one_of(&[0, 0, 1, 3]),
                    age: Duration::from_micros(draws.below(period)),
                };
                let node = draws.below(40) * 7;
                let expected = record.merge(&limiter, moment, report, node, &fleet(10));
                let report = SyncReport {
                    key,
                    limiter,
                    ban: BanLength::Never,
                    report,
                };
                let reply = merge_one(&link, &sender(node, false), report.clone()).await;
                let [ReportResult::Merged(view)] = &reply.results[..] else {
                    panic!("{reply:?}");
                };
                let (mut found, mut wanted) = (view.counter.clone(), expected.view.counter);
                for later in [0, 1, 10] {
                    let then = moment.plus(limiter.period / 10 * later);
                    assert_eq!(
                        found.peek(&limiter, then, 1),
                        wanted.peek(&limiter, then, 1),
                        "{report:?}"
                    );
                }
                if used_units(&limiter, &mut wanted, moment) > 0 {
                    assert_eq!(view.active_bits, expected.view.active_bits);
                    let is_announced = matches!(reply.events[..], [FleetEvent::Exhausted(..)]);
                    assert_eq!(is_announced, expected.is_announced, "{report:?}");
                    announced += usize::from(is_announced);
                }
            }
        }
        assert!(announced > 100, "{announced}");
    });
}

#[test]
fn a_report_above_the_limit_bans_the_key() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let (link, clock) = linked(&server).await;
        let limiter = Limiter::new(Algorithm::SlidingWindow, 10, Duration::from_secs(60));
        let seconds = |seconds: &[u64]| seconds.iter().map(|s| Duration::from_secs(*s)).collect();
        let report = |units: u64, refused_cost| SyncReport {
            key: FleetKey::new(RuleId::unregistered(1), b"key"),
            limiter,
            ban: BanLength::Escalating(seconds(&[10, 100])),
            report: KeyReport {
                units: units.into(),
                refused_cost,
                age: Duration::ZERO,
            },
        };
        let ban = |reply: SyncReply| match reply.results[..] {
            [
                ReportResult::Banned {
                    until,
                    offence,
                    started,
                },
            ] => (until.as_secs() - at(0).as_secs(), offence, started),
            _ => panic!("{reply:?}"),
        };
        let reply = merge_one(&link, &sender(1, true), report(10, 0)).await;
        assert!(matches!(reply.results[..], [ReportResult::Merged(_)]));
        // A cost that was refused has the effect of one that was admitted.
        let reply = merge_one(&link, &sender(1, true), report(0, 1)).await;
        let [FleetEvent::Ban { until, offence, .. }] = reply.events[..] else {
            panic!("{reply:?}");
        };
        assert_eq!((until, offence), (at(10), 1));
        assert_eq!(ban(reply), (10, 1, true));
        let reply = merge_one(&link, &sender(2, true), report(3, 0)).await;
        assert_eq!(ban(reply), (10, 1, false));
        // The counter is empty after the ban, and the next offence takes longer.
        clock.set(at(10));
        let reply = merge_one(&link, &sender(1, true), report(10, 0)).await;
        assert!(matches!(reply.results[..], [ReportResult::Merged(_)]));
        assert_eq!(
            ban(merge_one(&link, &sender(1, true), report(1, 0)).await),
            (110, 2, true)
        );
    });
}

#[test]
fn nodes_are_counted_while_they_are_heard_of() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let (link, clock) = linked(&server).await;
        let heartbeat = async |node: u64, leaves: bool| {
            let sender = SyncSender {
                leaves,
                ..sender(node, true)
            };
            let (events, positions) = <(PackedEvents, StreamPositions)>::default();
            link.sync(&sender, &[], &events, &positions)
                .await
                .unwrap()
                .nodes
        };
        assert_eq!(heartbeat(1, false).await, 1);
        assert_eq!(heartbeat(2, false).await, 2);
        assert_eq!(heartbeat(3, false).await, 3);
        assert_eq!(heartbeat(3, true).await, 2);
        clock.set(at(4));
        assert_eq!(heartbeat(1, false).await, 2);
        clock.set(at(6));
        assert_eq!(heartbeat(1, false).await, 1);
        // A clock that was set back leaves no node behind.
        clock.set(Timestamp::from_secs(at(0).as_secs() - 3_600));
        assert_eq!(heartbeat(2, false).await, 1);
    });
}

#[test]
fn a_value_of_another_type_under_a_name_of_the_fleet_is_replaced() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let (link, _clock) = linked(&server).await;
        let client = redis::Client::open(server.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        for name in KeyNames::new("test:").fleet() {
            let set = redis::cmd("SET").arg(&name).arg("text").to_owned();
            let _: () = set.query_async(&mut connection).await.unwrap();
        }
        let limiter = Limiter::new(Algorithm::SlidingWindow, 10, Duration::from_secs(60));
        let report = SyncReport {
            key: FleetKey::new(RuleId::unregistered(1), b"key"),
            limiter,
            ban: BanLength::Never,
            report: KeyReport {
                units: 11.into(),
                ..KeyReport::default()
            },
        };
        let reply = merge_one(&link, &sender(1, true), report).await;
        assert_eq!(reply.nodes, 1);
        assert!(matches!(reply.events[..], [FleetEvent::Exhausted(..)]));
    });
}
