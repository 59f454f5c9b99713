//! Opens connections to Redis or Valkey: a server, the master of a Sentinel, or a Cluster.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ErrorKind,
    IntoConnectionInfo, RedisConnectionInfo, RedisError, RedisResult, TlsCertificates, TlsMode,
    Value,
};

use super::RedisSettings;
use super::address::{RedisNode, RedisTarget};
use super::slot_owners::SlotOwners;

/// The timeout of connecting, and of the first command on a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(250);

/// The commands that may wait to be written to a connection.
const PIPELINE_BUFFER: usize = 1_024;

/// A peer that does not acknowledge data for this long is gone.
const USER_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval of probes on an idle connection.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// How often the Cluster client follows a redirection or retries within one call. The call's own deadline is the
/// actual bound.
const CLUSTER_RETRIES: u32 = 8;

/// An open connection. Clones share it; calls are pipelined.
#[derive(Clone)]
pub(super) enum RedisConnection {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl RedisConnection {
    /// Connects.
    pub(super) async fn open(settings: &RedisSettings) -> RedisResult<Self> {
        match &settings.address.target {
            RedisTarget::Server { node, database } => {
                let client = settings.client(settings.node_address(node), *database)?;
                connect(&client).await
            }
            RedisTarget::Socket { path, database } => {
                let client = settings.client(ConnectionAddr::Unix(path.clone()), *database)?;
                connect(&client).await
            }
            RedisTarget::Cluster(nodes) => {
                let client = settings.cluster_client(nodes)?;
                match client.get_async_connection().await {
                    Ok(open) => Ok(RedisConnection::Cluster(open)),
                    Err(error) => Err(settings.why_cluster_refuses(nodes).await.unwrap_or(error)),
                }
            }
            RedisTarget::Sentinel {
                sentinels,
                master,
                database,
            } => {
                let client = settings.find_master(sentinels, master, *database).await?;
                connect(&client).await
            }
        }
    }

    /// The longest time of an attempt to connect and to check the connection.
    pub(super) fn longest_attempt(settings: &RedisSettings) -> Duration {
        let steps = match &settings.address.target {
            RedisTarget::Server { .. } | RedisTarget::Socket { .. } => 2,
            // The client connects to some servers first, and then to those that they name.
            RedisTarget::Cluster(_) => 4,
            RedisTarget::Sentinel { sentinels, .. } => 2 + sentinels.len(),
        };
        CONNECT_TIMEOUT.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX))
    }

    /// Whether the server is a replica, which refuses writes. `false` if the server does not say, and in a Cluster,
    /// whose client looks for the master.
    pub(super) async fn is_replica(&mut self) -> bool {
        match self {
            RedisConnection::Server(_) => {
                let reply = self.call(&redis::cmd("HELLO")).await;
                reply.is_ok_and(|reply| has_replica_role(&reply))
            }
            RedisConnection::Cluster(_) => false,
        }
    }

    /// Asks any server of a Cluster which server has which slots.
    pub(super) async fn slot_owners(&mut self) -> RedisResult<SlotOwners> {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        let reply = match self {
            RedisConnection::Server(server) => server.req_packed_command(&command).await?,
            RedisConnection::Cluster(cluster) => {
                let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
                cluster.route_command(command, any).await?
            }
        };
        let owners = SlotOwners::read(&reply.extract_error()?);
        owners.ok_or_else(|| (ErrorKind::Parse, "CLUSTER SLOTS makes no sense").into())
    }

    /// Sends a command and waits for its reply.
    pub(super) async fn call(&mut self, command: &Cmd) -> RedisResult<Value> {
        let reply = match self {
            RedisConnection::Server(server) => server.req_packed_command(command).await?,
            RedisConnection::Cluster(cluster) => cluster.req_packed_command(command).await?,
        };
        reply.extract_error()
    }
}

/// Whether a reply to `HELLO` is that of a replica.
fn has_replica_role(reply: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        _ => String::new(),
    };
    let is_replica = |name: &Value, value: &Value| {
        text(name) == "role" && matches!(text(value).as_str(), "replica" | "slave")
    };
    match reply {
        Value::Map(fields) => fields.iter().any(|(name, value)| is_replica(name, value)),
        Value::Array(fields) => {
            let (fields, _) = fields.as_chunks::<2>();
            fields.iter().any(|[name, value]| is_replica(name, value))
        }
        _ => false,
    }
}

/// What the log says about an error: the text of the server, if the error is the server's.
pub(super) fn error_text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        _ => error.to_string(),
    }
}

async fn connect(client: &Client) -> RedisResult<RedisConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(None)
        .set_pipeline_buffer_size(PIPELINE_BUFFER);
    let open = client.get_multiplexed_async_connection_with_config(&config);
    match open.await {
        Err(error) if error.kind() == ErrorKind::AuthenticationFailed => {
            Err(ask_why_refused(client).await.unwrap_or(error))
        }
        opened => opened.map(RedisConnection::Server),
    }
}

/// Logs in again and returns the server's error, which the library drops. `None` if there is none now.
async fn ask_why_refused(client: &Client) -> Option<RedisError> {
    let info = client.get_connection_info();
    let login = info.redis_settings();
    let mut command = redis::cmd("AUTH");
    command.arg(login.username()).arg(login.password());
    let anonymous = info
        .clone()
        .set_redis_settings(RedisConnectionInfo::default());
    let client = Client::open(anonymous).ok()?;
    let config = AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT_TIMEOUT));
    let open = client.get_multiplexed_async_connection_with_config(&config);
    let reply = open.await.ok()?.req_packed_command(&command).await;
    reply.and_then(Value::extract_error).err()
}

// === impl RedisSettings ===

impl RedisSettings {
    fn client(&self, address: ConnectionAddr, database: u32) -> RedisResult<Client> {
        let info = address
            .into_connection_info()?
            .set_tcp_settings(tcp_settings())
            .set_redis_settings(self.login().set_db(i64::from(database)));
        match self.certificates() {
            Some(certificates) => Client::build_with_tls(info, certificates),
            None => Client::open(info),
        }
    }

    fn cluster_client(&self, nodes: &[RedisNode]) -> RedisResult<ClusterClient> {
        let nodes = nodes.iter().map(|node| self.node_address(node));
        let mut builder = ClusterClientBuilder::new(nodes)
            .retries(CLUSTER_RETRIES)
            .min_retry_wait(1)
            .max_retry_wait(20)
            .connection_timeout(CONNECT_TIMEOUT)
            .response_timeout(Duration::MAX)
            .tcp_settings(tcp_settings());
        if let Some(password) = &self.password {
            builder = builder.password(password);
        }
        if let Some(username) = &self.username {
            builder = builder.username(username);
        }
        if let Some(certificates) = self.certificates() {
            builder = builder.tls(TlsMode::Secure).certs(certificates);
        }
        builder.build()
    }

    /// The error with which the first server of a Cluster refuses a login. The library drops it.
    async fn why_cluster_refuses(&self, nodes: &[RedisNode]) -> Option<RedisError> {
        self.password.as_ref()?;
        let client = self.client(self.node_address(nodes.first()?), 0).ok()?;
        let asked = tokio::time::timeout(CONNECT_TIMEOUT, ask_why_refused(&client)).await;
        asked.ok().flatten()
    }

    /// Asks one Sentinel after the other for the master. One that hangs delays the next by the connect timeout only.
    async fn find_master(
        &self,
        sentinels: &[RedisNode],
        master: &str,
        database: u32,
    ) -> RedisResult<Client> {
        let mut failure = RedisError::from((ErrorKind::EmptySentinelList, "no Sentinel is known"));
        for sentinel in sentinels {
            let mut client = self.sentinel_client(sentinel, master, database)?;
            match tokio::time::timeout(CONNECT_TIMEOUT, client.async_get_client()).await {
                Ok(Ok(master)) => return Ok(master),
                Ok(Err(error)) => failure = error,
                Err(_) => failure = (ErrorKind::Io, "a Sentinel does not reply in time").into(),
            }
        }
        Err(failure)
    }

    fn sentinel_client(
        &self,
        sentinel: &RedisNode,
        master: &str,
        database: u32,
    ) -> RedisResult<SentinelClient> {
        let nodes = [self.node_address(sentinel)];
        let mut builder = SentinelClientBuilder::new(nodes, master, SentinelServerType::Master)?
            .set_client_to_redis_db(i64::from(database))
            .set_client_to_redis_tcp_settings(tcp_settings())
            .set_client_to_sentinel_tcp_settings(tcp_settings());
        if let Some(password) = &self.password {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(username) = &self.username {
            builder = builder.set_client_to_redis_username(username);
        }
        if let Some(certificates) = self.certificates() {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates);
        }
        builder.build()
    }

    fn node_address(&self, node: &RedisNode) -> ConnectionAddr {
        let (host, port) = (node.host.clone(), node.port);
        if self.address.tls {
            ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            }
        } else {
            ConnectionAddr::Tcp(host, port)
        }
    }

    fn login(&self) -> RedisConnectionInfo {
        let mut login =
            RedisConnectionInfo::default().set_lib_name("lockgate", env!("CARGO_PKG_VERSION"));
        if let Some(username) = &self.username {
            login = login.set_username(username);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password);
        }
        login
    }

    /// The certificates for TLS. `None` without TLS.
    fn certificates(&self) -> Option<TlsCertificates> {
        let client_tls = |(client_cert, client_key): &(Vec<u8>, Vec<u8>)| ClientTlsConfig {
            client_cert: client_cert.clone(),
            client_key: client_key.clone(),
        };
        self.address.tls.then(|| TlsCertificates {
            client_tls: self.client_certificate.as_ref().map(client_tls),
            root_cert: self.authorities.clone(),
        })
    }

    /// Checks that the certificates can be used. Fails with the library's reason.
    pub fn check(&self) -> Result<(), String> {
        let address = ConnectionAddr::TcpTls {
            host: "localhost".to_owned(),
            port: 1,
            insecure: false,
            tls_params: None,
        };
        let why = |error: RedisError| error.to_string();
        match self.certificates() {
            Some(certificates) => Client::build_with_tls(address, certificates)
                .map(drop)
                .map_err(why),
            None => Ok(()),
        }
    }
}

fn tcp_settings() -> TcpSettings {
    TcpSettings::default()
        .set_nodelay(true)
        .set_user_timeout(USER_TIMEOUT)
        .set_keepalive(TcpKeepalive::new().with_time(KEEPALIVE))
}
