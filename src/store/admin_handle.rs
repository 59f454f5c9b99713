//! The store as the admin API uses it: from another thread than the cores.
//!
//! A [`StoreHandle`] belongs to one core, so changes are commands that a core carries out. A listing copies the bans of
//! this gateway on a thread of its own, shard by shard, so that no request waits for it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use ipnet::IpNet;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::fleet::MirroredBans;
use super::peek::PlanReading;
use super::{
    AdminError, AppliedChange, BanKey, BanRequest, ChangeScope, ExemptionEntry, FillLevels,
    InspectedRule, KeyUsage, ListedBan, Store, StoreHandle,
};
use crate::clock::{Clock, Timestamp};
use crate::rules::BanId;
use crate::rules::plan::{Plan, RuleId};

#[cfg(test)]
mod tests;

/// The maximum number of commands that wait for a core.
const MAX_QUEUED: usize = 64;

/// The maximum number of commands that a core carries out at once.
const MAX_RUNNING: usize = 16;

/// The longest time that a command takes, except one that ends many bans.
const LONGEST_COMMAND: Duration = Duration::from_secs(10);

/// The longest time in which a command ends many bans.
const LONGEST_BULK: Duration = Duration::from_secs(600);

/// A command to a core.
type StoreCommand = Box<dyn FnOnce(Rc<StoreHandle>) -> LocalBoxFuture<'static, ()> + Send>;

/// The commands to the core that carries them out.
#[derive(Debug)]
pub(super) struct CommandQueue {
    sender: mpsc::Sender<StoreCommand>,
    /// `None` once a core has taken it.
    receiver: Mutex<Option<mpsc::Receiver<StoreCommand>>>,
}

/// The store for the admin API. All threads can use it.
#[derive(Clone, Debug)]
pub struct StoreAdmin {
    store: Arc<Store>,
    clock: Clock,
}

// === impl StoreAdmin ===

impl StoreAdmin {
    /// A handle of `store`, whose cores use the same clock.
    pub fn new(store: Arc<Store>, clock: Clock) -> Self {
        Self { store, clock }
    }

    /// See [`StoreHandle::ban`].
    pub async fn ban(&self, request: BanRequest) -> Result<AppliedChange<ListedBan>, AdminError> {
        self.run(LONGEST_COMMAND, move |core| {
            Box::pin(async move { core.ban(request).await })
        })
        .await?
    }

    /// See [`StoreHandle::unban`].
    pub async fn unban(
        &self,
        rule: RuleId,
        key: BanKey,
    ) -> Result<AppliedChange<ListedBan>, AdminError> {
        self.run(LONGEST_COMMAND, move |core| {
            Box::pin(async move { core.unban(rule, &key).await })
        })
        .await?
    }

    /// Ends many bans; returns how many were in force. They cannot be restored.
    pub async fn unban_all(
        &self,
        bans: Vec<(RuleId, BanId)>,
    ) -> Result<AppliedChange<usize>, AdminError> {
        let ids: HashSet<BanId> = bans.iter().map(|(_, id)| *id).collect();
        let mut removed = 0;
        let mut scope = ChangeScope::Fleet;
        if !self.store.is_local() {
            let of_fleet = self
                .run(LONGEST_BULK, move |core| {
                    Box::pin(async move { core.unban_all(bans).await })
                })
                .await?;
            (removed, scope) = (of_fleet.record, of_fleet.scope);
        }
        let store = self.store.clone();
        let remove = move || store.local().remove_bans(|ban| ids.contains(&ban.ban_id));
        let of_node = blocking(remove).await?;
        // The fleet's bans include those of this node, unless they are its own.
        let record = removed.max(of_node);
        Ok(AppliedChange { record, scope })
    }

    /// Returns the bans of `rules` that are in force, in no order: those of this gateway, and those of the fleet.
    pub async fn list_bans(&self, rules: Vec<RuleId>) -> Result<Vec<ListedBan>, AdminError> {
        self.refresh_mirror(&rules).await;
        let (store, now) = (self.store.clone(), self.clock.now());
        blocking(move || store.listed_bans(&rules, now)).await
    }

    /// Returns the number of bans of each of `rules` that has any: those of [`StoreAdmin::list_bans`].
    pub async fn count_bans(
        &self,
        rules: Vec<RuleId>,
    ) -> Result<HashMap<RuleId, usize>, AdminError> {
        self.refresh_mirror(&rules).await;
        let (store, now) = (self.store.clone(), self.clock.now());
        blocking(move || store.counted_bans(&rules, now)).await
    }

    async fn refresh_mirror(&self, rules: &[RuleId]) {
        if self.store.is_local() {
            return;
        }
        let own = rules.to_vec();
        let command = self.run(LONGEST_COMMAND, move |core| {
            Box::pin(async move { core.refresh_mirror(&own).await })
        });
        // If no core reads the index, the bans of this gateway are listed all the same.
        _ = command.await;
    }

    /// See [`StoreHandle::exempt`].
    pub async fn exempt(
        &self,
        exemption: ExemptionEntry,
    ) -> Result<AppliedChange<ExemptionEntry>, AdminError> {
        self.run(LONGEST_COMMAND, move |core| {
            Box::pin(async move { core.exempt(exemption).await })
        })
        .await?
    }

    /// See [`StoreHandle::end_exemption`].
    pub async fn end_exemption(
        &self,
        network: IpNet,
    ) -> Result<AppliedChange<ExemptionEntry>, AdminError> {
        self.run(LONGEST_COMMAND, move |core| {
            Box::pin(async move { core.end_exemption(network).await })
        })
        .await?
    }

    /// Returns the exemptions in force, the one that ends last first.
    pub fn exemptions(&self) -> Vec<ExemptionEntry> {
        self.store.exemptions().list(self.clock.now())
    }

    /// See [`StoreHandle::peek`].
    pub async fn peek(
        &self,
        rule: InspectedRule,
        keys: Vec<Vec<u8>>,
    ) -> Result<Vec<KeyUsage>, AdminError> {
        self.run(LONGEST_COMMAND, move |core| {
            Box::pin(async move { core.peek(&rule, &keys).await })
        })
        .await
    }

    /// See [`StoreHandle::read_plan`].
    pub(super) async fn read_plan(&self, plan: Plan) -> Result<PlanReading, AdminError> {
        self.run(LONGEST_COMMAND, move |core| {
            Box::pin(async move { core.read_plan(&plan).await })
        })
        .await
    }

    /// The store.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// See [`Store::fill_levels`].
    pub async fn fill_levels(&self, rule: InspectedRule) -> Result<FillLevels, AdminError> {
        let (store, now) = (self.store.clone(), self.clock.now());
        blocking(move || store.fill_levels(&rule, now)).await
    }

    /// Has a core carry out a command, and waits for its result.
    async fn run<T: Send + 'static>(
        &self,
        longest: Duration,
        command: impl FnOnce(Rc<StoreHandle>) -> LocalBoxFuture<'static, T> + Send + 'static,
    ) -> Result<T, AdminError> {
        let (sender, result) = oneshot::channel();
        let command: StoreCommand = Box::new(move |core| {
            Box::pin(async move {
                // The client may have left.
                _ = sender.send(command(core).await);
            })
        });
        let queue = &self.store.commands.sender;
        queue
            .try_send(command)
            .map_err(|_| AdminError::Unavailable)?;
        let result = tokio::time::timeout(longest, result).await;
        result
            .ok()
            .and_then(Result::ok)
            .ok_or(AdminError::Unavailable)
    }
}

/// Runs a scan on a thread where it delays no request.
async fn blocking<T: Send + 'static>(
    scan: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AdminError> {
    let scan = tokio::task::spawn_blocking(scan);
    scan.await.map_err(|_| AdminError::Unavailable)
}

// === impl Store ===

impl Store {
    /// Returns the bans of `rules` as this gateway knows them, in no order.
    fn listed_bans(&self, rules: &[RuleId], now: Timestamp) -> Vec<ListedBan> {
        let rules: HashSet<RuleId> = rules.iter().copied().collect();
        let mirrored = self.mirrored_bans();
        let fleet = mirrored.iter().flat_map(|mirrored| mirrored.all());
        let fleet = fleet.filter(|ban| ban.until > now && rules.contains(&ban.rule));
        let mut bans: Vec<ListedBan> = fleet.cloned().collect();
        let known: HashSet<BanId> = bans.iter().map(|ban| ban.ban_id).collect();
        let own = self.local.list_bans(None, now).into_iter();
        let own = own.filter(|ban| rules.contains(&ban.id) && !known.contains(&ban.ban_id));
        bans.extend(own.map(|ban| {
            let is_fleet = self.is_local() || ban.is_shared;
            ListedBan::of_entry(ban, is_fleet)
        }));
        bans
    }

    /// Counts the bans of [`Store::listed_bans`] by rule.
    fn counted_bans(&self, rules: &[RuleId], now: Timestamp) -> HashMap<RuleId, usize> {
        let mut bans: HashMap<RuleId, usize> = HashMap::new();
        let mirrored = self.mirrored_bans();
        let mut known = HashSet::new();
        for ban in mirrored.iter().flat_map(|mirrored| mirrored.all()) {
            if ban.until > now {
                known.insert(ban.ban_id);
                *bans.entry(ban.rule).or_default() += 1;
            }
        }
        self.local.each_ban(now, |rule, id| {
            if !known.contains(&id) {
                *bans.entry(rule).or_default() += 1;
            }
        });
        bans.retain(|rule, _| rules.contains(rule));
        bans
    }

    fn mirrored_bans(&self) -> Option<MirroredBans> {
        let counters = self.counters.as_ref()?;
        Some(counters.mirror().bans())
    }
}

// === impl StoreHandle ===

impl StoreHandle {
    /// Carries out commands of the admin API on one core of the process, until the runtime ends.
    pub(super) async fn serve_commands(self: &Rc<Self>) {
        let Some(mut commands) = self.store().commands.claim() else {
            return;
        };
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(()) = running.next() => {}
                Some(command) = commands.recv(), if running.len() < MAX_RUNNING => {
                    running.push(command(self.clone()));
                }
                else => return,
            }
        }
    }
}

// === impl CommandQueue ===

impl CommandQueue {
    /// Takes the commands. `None` if another core carries them out.
    fn claim(&self) -> Option<mpsc::Receiver<StoreCommand>> {
        self.receiver.lock().take()
    }
}

impl Default for CommandQueue {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }
}
