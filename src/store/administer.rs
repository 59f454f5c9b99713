//! Changes that people make: bans by hand, the end of bans, and exemptions; and the list of the fleet's bans.
//!
//! With a shared store, a change is written there first and announced to all gateways. While the store is out of reach,
//! a change applies to this gateway alone, and its result says so.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use ipnet::IpNet;

use super::redis::{BanEvent, FleetKey, NameHash, PackedEvents, RedisLink, UnbanEvent};
use super::{
    AdminError, AppliedChange, BanKey, BanRequest, ChangeScope, ExemptionEntry, ListedBan,
    ListedKey, StoreError, StoreHandle, memory,
};
use crate::clock::Timestamp;
use crate::rules::BanId;
use crate::rules::plan::RuleId;

/// The number of bans that one step of a long list ends.
const MAX_BULK: usize = 32;

/// How often a change looks whether the store has its event, and at most how many times.
const ANNOUNCE_POLL: Duration = Duration::from_millis(5);
const MAX_POLLS: usize = 400;

/// The maximum number of bans that a listing reads from the index.
const MAX_LISTED: usize = 300_000;

// === impl StoreHandle ===

impl StoreHandle {
    /// Starts a ban by hand, or restores a ban that was removed. A ban of the key is replaced.
    pub async fn ban(&self, request: BanRequest) -> Result<AppliedChange<ListedBan>, AdminError> {
        let now = self.fleet_time();
        let mut terms = request.terms.clone();
        // Every store keeps microseconds.
        terms.until = Timestamp::from_micros(terms.until.as_micros());
        if terms.until <= now {
            return Err(AdminError::AlreadyEnded);
        }
        let ban_id = request.key.ban_id(request.rule);
        let mut ban = ListedBan {
            rule: request.rule,
            ban_id,
            key: ListedKey::Text(request.text.clone()),
            until: terms.until,
            offence: terms.offence.unwrap_or(1),
            since: terms.since,
            by: terms.by.clone(),
            cause: (!request.cause.is_empty()).then(|| request.cause.clone()),
            scope: self.scope(false),
        };
        if let Some(link) = self.connected_link()
            && let Ok(offences) = self.ban_in_fleet(link, &ban, terms.offence).await
        {
            ban.scope = ChangeScope::Fleet;
            terms.offence = terms.offence.or(Some(offences).filter(|count| *count > 0));
            ban.offence = terms.offence.unwrap_or(1);
            self.index(ban.clone(), &request.text).await;
        }
        let is_shared = !self.store().is_local() && ban.scope == ChangeScope::Fleet;
        let local = self.store().local();
        match local.add_ban(request.rule, &request.key, terms, is_shared, now) {
            Ok(entry) => ban.offence = entry.offence,
            // The shared store has the ban, and requests learn it from there.
            Err(_) if is_shared => {}
            Err(error) => return Err(error),
        }
        if is_shared && let Some(link) = self.connected_link() {
            let key = FleetKey::of_ban(ban.rule.identity, ban_id);
            self.announce_newer(link, key, Some(ban.until)).await;
        }
        Ok(AppliedChange {
            scope: ban.scope,
            record: ban,
        })
    }

    /// Writes the record of a ban and announces it. Returns the offences of the key.
    pub(super) async fn ban_in_fleet(
        &self,
        link: &RedisLink,
        ban: &ListedBan,
        offence: Option<u32>,
    ) -> Result<u32, StoreError> {
        let key = FleetKey::of_ban(ban.rule.identity, ban.ban_id);
        let offences = match offence {
            Some(offence) => offence,
            None => link.read_ban(key).await?.offences,
        };
        link.write_ban(key, ban.until, offences).await?;
        self.announce(|now, events| {
            // Gateways that know another ban of the key forget it.
            unban_event(key, None).pack(now, &mut events.bans);
            let (until, offence) = (ban.until, offences.max(1));
            let event = BanEvent {
                key,
                until,
                offence,
            };
            event.pack(now, &mut events.bans);
        })
        .await;
        Ok(offences)
    }

    /// Ends a ban on all gateways, and forgets the counter and the offences of its key. Returns the ban, which can be
    /// restored.
    pub async fn unban(
        &self,
        rule: RuleId,
        key: &BanKey,
    ) -> Result<AppliedChange<ListedBan>, AdminError> {
        let now = self.fleet_time();
        let ban_id = key.ban_id(rule);
        let of_fleet = match self.connected_link() {
            Some(link) => self.unban_in_fleet(link, rule, key, now).await.ok(),
            None => None,
        };
        let local = self.store().local().remove_ban(rule, key, now).ok();
        if let Some(counters) = self.counters() {
            counters.remove(FleetKey::of_ban(rule.identity, ban_id));
            counters.mirror().remove(ban_id);
        }
        if of_fleet.is_some()
            && let Some(link) = self.connected_link()
        {
            let key = FleetKey::of_ban(rule.identity, ban_id);
            self.announce_newer(link, key, None).await;
        }
        let is_local = self.store().is_local();
        let scope = self.scope(of_fleet.is_some());
        let local = local.map(|ban| {
            let is_fleet = is_local || ban.is_shared;
            ListedBan::of_entry(ban, is_fleet)
        });
        let record = match (of_fleet.flatten(), local) {
            (Some(ban), Some(local)) if ban.cause.is_none() && is_unnamed(&ban) => ListedBan {
                until: ban.until,
                ..local
            },
            (Some(ban), _) | (None, Some(ban)) => ban,
            (None, None) => return Err(AdminError::NotFound),
        };
        Ok(AppliedChange { record, scope })
    }

    /// Ends many bans in the shared store; returns how many records there were. The bans that this gateway knows stay.
    pub(super) async fn unban_all(&self, bans: Vec<(RuleId, BanId)>) -> AppliedChange<usize> {
        let mut failed = 0;
        for bans in bans.chunks(MAX_BULK) {
            let ended: FuturesUnordered<_> = bans
                .iter()
                .map(|(rule, id)| self.end_in_fleet(*rule, *id))
                .collect();
            let results: Vec<_> = ended.collect().await;
            failed += results.iter().filter(|result| result.is_err()).count();
        }
        AppliedChange {
            record: bans.len() - failed,
            scope: self.scope(failed == 0),
        }
    }

    async fn end_in_fleet(&self, rule: RuleId, id: BanId) -> Result<(), StoreError> {
        let key = FleetKey::of_ban(rule.identity, id);
        let link = self.connected_link().ok_or(StoreError::Unavailable)?;
        self.delete_ban(link, key).await?;
        self.unindex(key).await;
        self.announce(|now, events| unban_event(key, None).pack(now, &mut events.bans))
            .await;
        Ok(())
    }

    async fn delete_ban(&self, link: &RedisLink, key: FleetKey) -> Result<(), StoreError> {
        let deleted = link.delete_record(key).await;
        if deleted.is_err() {
            self.check_later(key);
        }
        deleted
    }

    /// Deletes the record of a ban and announces its end. `None` if the key is not banned.
    async fn unban_in_fleet(
        &self,
        link: &RedisLink,
        rule: RuleId,
        key: &BanKey,
        now: Timestamp,
    ) -> Result<Option<ListedBan>, StoreError> {
        let fleet_key = FleetKey::of_ban(rule.identity, key.ban_id(rule));
        let record = link.read_ban(fleet_key).await?;
        let known = link.indexed_ban(rule, fleet_key).await?;
        if record.until.is_some() {
            self.delete_ban(link, fleet_key).await?;
        }
        if known.is_some() {
            self.unindex(fleet_key).await;
        }
        // Other gateways may know a ban whose record is gone.
        let listed = known.as_ref().map(|ban| ban.until);
        let Some(until) = record.until.or(listed.filter(|until| *until > now)) else {
            return Ok(None);
        };
        let event = unban_event(fleet_key, Some(key));
        self.announce(|now, events| event.pack(now, &mut events.bans))
            .await;
        let unnamed = || ListedBan {
            rule,
            ban_id: fleet_key.ban_id(),
            key: shown_key(key),
            until,
            offence: record.offences.max(1),
            since: now,
            by: super::BanAuthor::Rule,
            cause: None,
            scope: ChangeScope::Fleet,
        };
        Ok(Some(ListedBan {
            until,
            ..known.unwrap_or_else(unnamed)
        }))
    }

    /// Lets an address or a network pass all rules.
    pub async fn exempt(
        &self,
        exemption: ExemptionEntry,
    ) -> Result<AppliedChange<ExemptionEntry>, AdminError> {
        let now = self.fleet_time();
        let exemptions = self.store().exemptions();
        let link = self.connected_link();
        let is_known = match link {
            Some(link) => {
                let read = self.read_exemptions(link).await;
                // A key of another type is replaced.
                matches!(read, Ok(()) | Err(StoreError::Rejected))
            }
            None => false,
        };
        let scope = self.scope(is_known);
        let mut added = exemptions.add(ExemptionEntry { scope, ..exemption }, now)?;
        if let Some(link) = link.filter(|_| is_known) {
            match link.write_exemption(&added).await {
                Ok(()) => self.announce_exemptions().await,
                Err(_) => {
                    added.scope = ChangeScope::Node;
                    added = exemptions.add(added, now)?;
                }
            }
        }
        Ok(AppliedChange {
            scope: added.scope,
            record: added,
        })
    }

    /// Ends an exemption.
    pub async fn end_exemption(
        &self,
        network: IpNet,
    ) -> Result<AppliedChange<ExemptionEntry>, AdminError> {
        let now = self.fleet_time();
        let exemptions = self.store().exemptions();
        let link = self.connected_link();
        if let Some(link) = link {
            // Without a reply, the exemptions that this gateway knows are good enough.
            _ = self.read_exemptions(link).await;
        }
        let record = exemptions.remove(network, now)?;
        let is_deleted = match link {
            Some(link) => link.delete_exemptions(&[record.network]).await.is_ok(),
            None => false,
        };
        if is_deleted {
            self.announce_exemptions().await;
        }
        let scope = self.scope(is_deleted);
        Ok(AppliedChange { record, scope })
    }

    /// Reads the exemptions of the fleet, and deletes those that have ended.
    async fn read_exemptions(&self, link: &RedisLink) -> Result<(), StoreError> {
        let now = self.fleet_time();
        let (ended, live): (Vec<_>, Vec<_>) = {
            let read = link.read_exemptions().await?.into_iter();
            read.partition(|exemption| exemption.until <= now)
        };
        self.store().exemptions().replace_fleet(live, now);
        let ended: Vec<_> = ended.iter().map(|exemption| exemption.network).collect();
        link.delete_exemptions(&ended).await
    }

    /// Reads the index of the bans of `rules` into the mirror, if that is due. Does nothing without a shared store.
    pub(super) async fn refresh_mirror(&self, rules: &[RuleId]) {
        let (Some(counters), Some(link)) = (self.counters(), self.connected_link()) else {
            return;
        };
        let mirror = counters.mirror();
        if mirror.start(self.clock().instant()) {
            let bans = self.read_index(link, rules).await.ok();
            mirror.finish(bans, self.clock().instant());
        }
    }

    async fn read_index(
        &self,
        link: &RedisLink,
        rules: &[RuleId],
    ) -> Result<HashMap<BanId, ListedBan>, StoreError> {
        let mut bans = HashMap::new();
        for rule in rules {
            let mut next = Some(0);
            while let Some(cursor) = next.filter(|_| bans.len() < MAX_LISTED) {
                let part = link.scan_index(*rule, cursor).await?;
                bans.extend(part.bans.into_iter().map(|ban| (ban.ban_id, ban)));
                next = part.next;
            }
        }
        Ok(bans)
    }

    pub(super) fn connected_link(&self) -> Option<&RedisLink> {
        self.link.as_ref().filter(|link| link.is_connected())
    }

    /// The scope of a change that was, or was not, written to the shared store.
    fn scope(&self, is_written: bool) -> ChangeScope {
        if is_written || self.store().is_local() {
            ChangeScope::Fleet
        } else {
            ChangeScope::Node
        }
    }

    pub(super) fn fleet_time(&self) -> Timestamp {
        self.store_time(self.clock().now())
    }

    async fn announce_exemptions(&self) {
        self.announce(|now, events| super::redis::pack_exemptions_event(now, &mut events.bans))
            .await;
    }

    /// Announces a change to all gateways, and waits until the store has the event: the event of a later change on
    /// another gateway must follow it. Without a connection, the event is announced once there is one.
    pub(super) async fn announce(&self, pack: impl FnOnce(Timestamp, &mut PackedEvents)) {
        let mut events = PackedEvents::default();
        pack(self.fleet_time(), &mut events);
        let Some(counters) = self.counters() else {
            return;
        };
        counters.announce(events);
        for _ in 0..MAX_POLLS {
            if counters.has_announced() || self.connected_link().is_none() {
                return;
            }
            tokio::time::sleep(ANNOUNCE_POLL).await;
        }
    }
}

/// Whether the text of the key of a ban is unknown.
fn is_unnamed(ban: &ListedBan) -> bool {
    !matches!(&ban.key, ListedKey::Text(text) if !text.is_empty())
}

/// The key of a ban that the index does not have.
fn shown_key(key: &BanKey) -> ListedKey {
    match key {
        BanKey::Bytes(key) => ListedKey::Bytes(key.get(..memory::SHOWN).unwrap_or(key).into()),
        BanKey::Id(_) => ListedKey::Text(Box::default()),
    }
}

/// Older gateways find the ban by the part of the key that they show.
pub(super) fn unban_event(key: FleetKey, bytes: Option<&BanKey>) -> UnbanEvent {
    let shown = match bytes {
        Some(BanKey::Bytes(bytes)) => NameHash::of(bytes.get(..memory::SHOWN).unwrap_or(bytes)),
        _ => key.hash,
    };
    UnbanEvent { key, shown }
}
