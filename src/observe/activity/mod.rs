//! What the gateway remembers about recent requests, for people: rates, the history of 15 minutes, decisions, the
//! hottest keys, and the figures of bans.
//!
//! Each core records into a [`CoreActivity`] without locks and without shared atomics. Once per second, or five times
//! while an event stream is open, it hands a batch to the [`ActivityHub`]. A thread that serves no requests merges the
//! batches and makes a [`Tick`] each second. Nothing here makes decisions.
//!
//! Memory is bounded, whatever clients send:
//!
//! | What | Bound |
//! | --- | --- |
//! | batch of a core | 512 decisions, 16,384 keys in 1 MiB, 16,384 bans, 16 samples |
//! | inbox of the hub | 64 batches; cores keep their batch while it is full |
//! | decisions | 65,536, about 40 MiB |
//! | hottest keys | 256 keys of at most 1 KiB for each rule, about 8,192 samples of at most 10 KiB |
//! | bans | as many as the store can hold, about 240 bytes each; 10,000 causes of at most 240 bytes; 1,024 removed bans |
//! | history | 180 × (12 + 2 × rules) × 4 bytes |
//! | markers | 60 |
//! | stream | 40 decisions, 60 markers and one tick |

mod action_class;
mod activity_hub;
mod ban_cause;
mod ban_figures;
mod core_activity;
mod core_batch;
mod decision_record;
mod decision_ring;
mod history;
mod hot_keys;
mod key_hits;
mod latency;
mod markers;
mod request_sample;
mod streams;
mod tick;

pub use self::action_class::ActionClass;
pub use self::activity_hub::{ActivityHub, ActivityStream};
pub use self::ban_cause::BanCause;
pub use self::ban_figures::BanFigures;
pub use self::core_activity::{CoreActivity, DecidedKey, RuleKeyHash};
pub use self::core_batch::BanStart;
pub use self::decision_record::{DecisionRecord, MAX_TEXT, cut_text, shortened};
pub use self::decision_ring::{ClientDecisions, ClientQuery};
pub use self::history::{HistoryView, RuleHistory, STEP};
pub use self::hot_keys::HotKey;
pub use self::latency::LatencyPercentiles;
pub use self::markers::{Marker, MarkerKind};
pub use self::request_sample::RequestSample;
pub use self::streams::{DecisionFilter, StreamEvents};
pub use self::tick::{CandidateRates, CandidateTotals, RuleFigures, RuleRates, Tick, TickInput};
