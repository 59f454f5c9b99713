//! Opens the connection of a core, and opens it again when it is lost.

use std::time::Duration;

use futures_util::future::join_all;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use tracing::{error, info, warn};

use super::failures::is_invalid_reply;
use super::{INVALID_REPLY, RedisLink, TOO_SLOW};
use crate::clock::Timestamp;
use crate::rules::plan::PlanResult;
use crate::store::redis::connector::{CONNECT_TIMEOUT, RedisConnection, error_text};
use crate::store::redis::decode::{BadReply, decode};
use crate::store::redis::encode::NO_STEPS;
use crate::store::redis::server_clock::ServerClock;
use crate::store::redis::slot_owners::SlotOwners;

/// The wait between two attempts to connect. It doubles from the first to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// A connection that is lost sooner than this is likely to be lost again.
const SHORT_LIVED: Duration = Duration::from_secs(1);

/// The calls that check a new connection. The first one may take longer, because the server compiles the script.
const PROBES: u32 = 3;

/// The wait after the server has refused the credentials or the certificate.
const REFUSED_BACKOFF: Duration = Duration::from_secs(5);

/// A part of the error of a server that has no password, when a gateway has one.
const NO_PASSWORD: &str = "without any password configured";

/// A connection that requests can use.
struct OpenedConnection {
    connection: RedisConnection,
    /// The servers of a Cluster.
    owners: SlotOwners,
    /// When the call was sent to which the server replied with its time.
    sent: Timestamp,
    server_time: Timestamp,
}

/// Why a connection could not be opened.
enum ConnectFailure {
    /// The server cannot be reached or does not reply.
    Unreachable(String),
    /// The server refuses the credentials or the certificate, or has another one than expected.
    Refused(String),
}

// === impl RedisLink ===

impl RedisLink {
    /// Connects, and connects again when the connection is lost, until the runtime ends.
    pub(in crate::store) async fn supervise(&self) {
        let (shortest, longest) = BACKOFF;
        let mut wait = shortest;
        loop {
            self.connect_with_retries().await;
            let connected = self.clock.instant();
            tokio::select! {
                () = self.lost.notified() => {}
                () = self.follow_cluster() => {}
            }
            let lasted = self.clock.instant().saturating_duration_since(connected);
            if lasted < SHORT_LIVED {
                tokio::time::sleep(jittered(wait)).await;
                wait = (wait * 2).min(longest);
            } else {
                wait = shortest;
            }
        }
    }

    /// Tries the servers of a Cluster that have failed, until the runtime ends. Looks up the servers before, because a
    /// replica may have taken the slots over. Meanwhile the other servers stay in use.
    async fn follow_cluster(&self) {
        let (mut wait, longest) = BACKOFF;
        loop {
            while self.nodes.has_failed() {
                tokio::time::sleep(jittered(wait)).await;
                wait = (wait * 2).min(longest);
                self.look_up_nodes().await;
                self.try_nodes().await;
            }
            let recovered = self.clock.instant();
            self.suspected.notified().await;
            if self.clock.instant().saturating_duration_since(recovered) >= SHORT_LIVED {
                wait = BACKOFF.0;
            }
        }
    }

    /// Opens a new connection if the slots have moved.
    async fn look_up_nodes(&self) {
        let Some(mut connection) = self.connection.borrow().clone() else {
            return;
        };
        let generation = self.generation.get();
        let owners = tokio::time::timeout(CONNECT_TIMEOUT, connection.slot_owners()).await;
        let is_same = owners.map_or(true, |owners| {
            owners.is_ok_and(|owners| self.nodes.has_owners(&owners))
        });
        if is_same {
            return;
        }
        if let Ok(opened) = self.open().await
            && generation == self.generation.get()
        {
            self.generation.set(generation + 1);
            self.adopt(opened);
        }
    }

    /// Sends a call to each server that has failed. Those that reply in time are used again.
    async fn try_nodes(&self) {
        let Some(connection) = self.connection.borrow().clone() else {
            return;
        };
        let generation = self.generation.get();
        let trials = self.nodes.failed_keys().into_iter().map(|(owner, key)| {
            let connection = connection.clone();
            async move { (owner, self.replies_in_time(connection, &key).await) }
        });
        for (owner, replies) in join_all(trials).await {
            if replies && generation == self.generation.get() {
                self.recover_node(owner);
            }
        }
    }

    /// Whether the server of a key replies in time. The first call may take longer, because it may connect.
    async fn replies_in_time(&self, mut connection: RedisConnection, key: &[u8]) -> bool {
        let mut command = redis::cmd("MGET");
        command.arg(key);
        for _ in 0..PROBES {
            let began = self.clock.instant();
            let reply = tokio::time::timeout(CONNECT_TIMEOUT, connection.call(&command)).await;
            if !matches!(reply, Ok(Ok(_))) {
                return false;
            }
            let took = self.clock.instant().saturating_duration_since(began);
            if took <= self.shared.settings.timeout {
                return true;
            }
        }
        false
    }

    /// Waits until the first attempt to connect has ended, for at most twice the connect timeout.
    pub(in crate::store) async fn first_attempt(&self) {
        let ended = async {
            while !self.attempted.get() {
                self.first_attempt.notified().await;
            }
        };
        _ = tokio::time::timeout(2 * CONNECT_TIMEOUT, ended).await;
    }

    async fn connect_with_retries(&self) {
        let (mut wait, longest) = BACKOFF;
        loop {
            let attempt = self.connect().await;
            self.attempted.set(true);
            self.first_attempt.notify_waiters();
            let failure = match attempt {
                Ok(()) => return,
                Err(failure) => failure,
            };
            let pause = match failure {
                ConnectFailure::Unreachable(reason) => {
                    self.report_outage(&reason);
                    wait
                }
                ConnectFailure::Refused(reason) => {
                    if self.shared.health.is_new_refusal() {
                        let store = &self.shared.settings.address;
                        let password = self.shared.settings.password_source;
                        error!(%store, %reason, %password, "store refuses the connection");
                    }
                    REFUSED_BACKOFF
                }
            };
            tokio::time::sleep(jittered(pause)).await;
            wait = (wait * 2).min(longest);
        }
    }

    /// Logs the outage, unless another core has.
    pub(super) fn report_outage(&self, reason: &str) {
        if self.shared.health.is_new_outage() {
            let store = &self.shared.settings.address;
            warn!(%store, %reason, "store unavailable, rules use their on_failure fallback");
        }
    }

    /// Connects, and closes the circuit breaker.
    async fn connect(&self) -> Result<(), ConnectFailure> {
        let opened = self.open().await?;
        self.adopt(opened);
        if self.shared.health.close_breaker() {
            let store = &self.shared.settings.address;
            info!(%store, "store connected");
        }
        Ok(())
    }

    /// Opens a connection and checks that requests can use it.
    async fn open(&self) -> Result<OpenedConnection, ConnectFailure> {
        let opening = async {
            let mut connection = RedisConnection::open(&self.shared.settings).await?;
            if connection.is_replica().await {
                let reason = "the server is a read-only replica".to_owned();
                return Err(ConnectFailure::Unreachable(reason));
            }
            let (sent, server_time) = self.probe(&mut connection).await?;
            let owners = if self.is_cluster() {
                connection.slot_owners().await?
            } else {
                SlotOwners::default()
            };
            Ok(OpenedConnection {
                connection,
                owners,
                sent,
                server_time,
            })
        };
        let longest = RedisConnection::longest_attempt(&self.shared.settings);
        let opened = tokio::time::timeout(longest, opening).await;
        opened.unwrap_or_else(|_| Err(ConnectFailure::slow()))
    }

    /// Uses a connection for all further calls.
    fn adopt(&self, opened: OpenedConnection) {
        self.server_clock.set(ServerClock::new(self.is_cluster()));
        self.observe_time(opened.sent, opened.server_time);
        self.timeouts.set(0);
        for server in self.nodes.replace(opened.owners) {
            self.report_recovered_node(&server);
        }
        self.last_reply.set(self.clock.instant());
        self.connection.replace(Some(opened.connection));
    }

    /// Runs the script of plans without a step, until one call takes no longer than the timeout of a request.
    /// Returns when the call was sent, and the server's time.
    async fn probe(
        &self,
        connection: &mut RedisConnection,
    ) -> Result<(Timestamp, Timestamp), ConnectFailure> {
        for _ in 0..PROBES {
            let (sent, began) = (self.clock.now(), self.clock.instant());
            let complete = |mut command: Cmd| {
                command.arg(0).arg(NO_STEPS);
                self.add_manual_time(&mut command, sent);
                command
            };
            let script = &self.shared.plan;
            let mut reply = connection.call(&complete(script.call())).await;
            let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
            if reply.as_ref().is_err_and(|error| error.kind() == unknown) {
                reply = connection.call(&complete(script.call_with_source())).await;
            }
            let mut result = PlanResult::default();
            let decoded = match reply? {
                Value::BulkString(bytes) => decode(&bytes, 0, 0, &mut result),
                _ => Err(BadReply),
            };
            if decoded.is_err() {
                let reason = INVALID_REPLY.to_owned();
                return Err(ConnectFailure::Unreachable(reason));
            }
            let took = self.clock.instant().saturating_duration_since(began);
            if took <= self.shared.settings.timeout {
                return Ok((sent, result.at));
            }
        }
        Err(ConnectFailure::slow())
    }
}

// === impl ConnectFailure ===

impl ConnectFailure {
    fn slow() -> Self {
        Self::Unreachable(TOO_SLOW.to_owned())
    }
}

impl From<RedisError> for ConnectFailure {
    fn from(error: RedisError) -> Self {
        let refused = matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"))
            || error.kind() == ErrorKind::AuthenticationFailed
            || error.kind() == ErrorKind::InvalidClientConfig
            || error
                .detail()
                .is_some_and(|text| text.contains(NO_PASSWORD))
            || is_tls_failure(&error.to_string());
        if refused {
            ConnectFailure::Refused(error_text(&error))
        } else if is_invalid_reply(error.kind()) {
            ConnectFailure::Unreachable(INVALID_REPLY.to_owned())
        } else {
            ConnectFailure::Unreachable(error_text(&error))
        }
    }
}

/// Whether the TLS handshake has failed, by the words of rustls.
fn is_tls_failure(reason: &str) -> bool {
    let words = ["certificate", "fatal alert", "corrupt message"];
    let reason = reason.to_ascii_lowercase();
    words.iter().any(|word| reason.contains(word))
}

/// The wait, shortened or lengthened by up to a fifth, so that cores and gateways do not connect in step.
fn jittered(wait: Duration) -> Duration {
    let draw = getrandom::u32().unwrap_or_default();
    let fifth = wait / 5;
    wait - fifth + fifth.mul_f64(2.0 * f64::from(draw) / f64::from(u32::MAX))
}
