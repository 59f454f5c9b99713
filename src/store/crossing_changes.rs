//! Two changes of one ban at the same time, on two gateways: their order in the stream of events can differ from that in the
//! store.
//!
//! Each gateway writes the store, announces its change, and then reads the store again. If it finds something else, it
//! announces that. Of all events about the key, the last one thus says what the store has: either the last writer has
//! announced its change later, or the other one has read it.

use super::StoreHandle;
use super::administer::unban_event;
use super::redis::{BanEvent, FleetKey, RedisLink};
use crate::clock::Timestamp;

// === impl StoreHandle ===

impl StoreHandle {
    /// Announces what the store has for a key, if that is not the ban that this gateway has announced. `announced` is
    /// `None` if it has announced the end of the ban.
    pub(super) async fn announce_newer(
        &self,
        link: &RedisLink,
        key: FleetKey,
        announced: Option<Timestamp>,
    ) {
        let Ok(record) = link.read_ban(key).await else {
            return;
        };
        if record.until == announced {
            return;
        }
        if record.until.is_none() {
            self.unindex(key).await;
        }
        self.announce(|now, events| {
            unban_event(key, None).pack(now, &mut events.bans);
            if let Some(until) = record.until {
                let event = BanEvent {
                    key,
                    until,
                    offence: record.offences.max(1),
                };
                event.pack(now, &mut events.bans);
            }
        })
        .await;
    }
}
