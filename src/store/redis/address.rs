//! Parses the URL of a Redis or Valkey server, Sentinel or Cluster.

use std::fmt;
use std::path::PathBuf;

/// The default port of Redis.
const REDIS_PORT: u16 = 6379;

/// The default port of Sentinel.
const SENTINEL_PORT: u16 = 26379;

/// The URLs that are accepted, for error messages.
pub const URL_FORMS: &str = "\"redis://HOST:6379\", \"rediss://HOST:6380\", \"unix:///run/redis.sock\", \
     \"redis-cluster://HOST,HOST\" or \"redis-sentinel://HOST,HOST/MASTER\"";

/// Where the shared store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisAddress {
    /// The kind of deployment and its servers.
    pub target: RedisTarget,
    /// Whether connections use TLS.
    pub tls: bool,
}

/// A deployment of Redis or Valkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisTarget {
    /// One server.
    Server {
        /// The server.
        node: RedisNode,
        /// The number of the database. Default 0.
        database: u32,
    },
    /// One server, by the path of its Unix socket.
    Socket {
        /// The path.
        path: PathBuf,
        /// The number of the database. Default 0.
        database: u32,
    },
    /// A Cluster, by some of its nodes.
    Cluster(Vec<RedisNode>),
    /// The master with this name, by the Sentinels that watch it.
    Sentinel {
        /// The Sentinels.
        sentinels: Vec<RedisNode>,
        /// The name of the master.
        master: String,
        /// The number of the database. Default 0.
        database: u32,
    },
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisNode {
    /// A name or an address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// What is wrong with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// The scheme is missing or unknown.
    Scheme,
    /// The URL contains a user name or a password.
    Credentials,
    /// A host is missing or malformed.
    Host,
    /// A port is not a number between 1 and 65535.
    Port,
    /// The part after the hosts is not a database number.
    Database,
    /// A Sentinel URL does not name its master.
    Master,
    /// A Cluster has only the database 0.
    ClusterDatabase,
    /// The path of a Unix socket is not absolute.
    SocketPath,
    /// The URL of a Unix socket has an unknown option.
    SocketOption,
}

// === impl RedisAddress ===

impl RedisAddress {
    /// Parses a URL.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = url.split_once("://").ok_or(AddressError::Scheme)?;
        if rest.is_empty() || rest.chars().any(char::is_control) {
            return Err(AddressError::Host);
        }
        if scheme == "unix" {
            return socket(rest);
        }
        let (kind, tls) = match scheme.split_once('-') {
            Some(("redis", kind)) => (kind, false),
            Some(("rediss", kind)) => (kind, true),
            None if scheme == "redis" => ("", false),
            None if scheme == "rediss" => ("", true),
            _ => return Err(AddressError::Scheme),
        };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        if hosts.contains('@') {
            return Err(AddressError::Credentials);
        }
        let target = match kind {
            "" => RedisTarget::Server {
                node: RedisNode::parse(hosts, REDIS_PORT)?,
                database: database(path)?,
            },
            "cluster" if path.is_empty() => RedisTarget::Cluster(nodes(hosts, REDIS_PORT)?),
            "cluster" => return Err(AddressError::ClusterDatabase),
            "sentinel" => {
                let (master, path) = path.split_once('/').unwrap_or((path, ""));
                if master.is_empty() {
                    return Err(AddressError::Master);
                }
                RedisTarget::Sentinel {
                    sentinels: nodes(hosts, SENTINEL_PORT)?,
                    master: master.to_owned(),
                    database: database(path)?,
                }
            }
            _ => return Err(AddressError::Scheme),
        };
        Ok(Self { target, tls })
    }

    /// Whether the store is a Cluster, in which one call reaches only the keys of one slot.
    pub fn is_cluster(&self) -> bool {
        matches!(self.target, RedisTarget::Cluster(_))
    }
}

/// The address without credentials, for logs.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |nodes: &[RedisNode]| {
            let nodes: Vec<_> = nodes.iter().map(RedisNode::to_string).collect();
            nodes.join(",")
        };
        match &self.target {
            RedisTarget::Server { node, .. } => write!(f, "{node}"),
            RedisTarget::Socket { path, .. } => write!(f, "{}", path.display()),
            RedisTarget::Cluster(nodes) => write!(f, "cluster {}", list(nodes)),
            RedisTarget::Sentinel {
                sentinels, master, ..
            } => write!(f, "{master} of sentinel {}", list(sentinels)),
        }
    }
}

// === impl RedisNode ===

impl RedisNode {
    fn parse(written: &str, default_port: u16) -> Result<Self, AddressError> {
        let (host, port) = match written.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(AddressError::Host)?;
                match port.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if port.is_empty() => (host, None),
                    None => return Err(AddressError::Host),
                }
            }
            None => match written.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (written, None),
            },
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || !host.chars().all(allowed) {
            return Err(AddressError::Host);
        }
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0),
            None => Some(default_port),
        };
        Ok(Self {
            host: host.to_owned(),
            port: port.ok_or(AddressError::Port)?,
        })
    }
}

impl fmt::Display for RedisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

// === impl AddressError ===

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressError::Scheme => "this is not the URL of a store",
            AddressError::Credentials => "the URL must not contain a user name or a password",
            AddressError::Host => "a host of this URL is missing or malformed",
            AddressError::Port => "a port is a number from 1 to 65535",
            AddressError::Database => "the part after the host is the number of a database",
            AddressError::Master => "the name of the master is missing",
            AddressError::ClusterDatabase => "a Cluster has only the database 0",
            AddressError::SocketPath => "the path of the socket must be absolute",
            AddressError::SocketOption => "the only option of a socket is its database",
        })
    }
}

impl AddressError {
    /// What would be right.
    pub fn help(self) -> String {
        match self {
            AddressError::Credentials => {
                "use `username` and `password_file`, or the environment variable \
                 LOCKGATE_REDIS_PASSWORD"
                    .to_owned()
            }
            AddressError::Master => "write redis-sentinel://HOST,HOST/MASTER".to_owned(),
            AddressError::ClusterDatabase => "remove the part after the hosts".to_owned(),
            AddressError::SocketPath => {
                "write unix:///run/redis.sock, with three slashes".to_owned()
            }
            AddressError::SocketOption => "write unix:///run/redis.sock?db=2".to_owned(),
            _ => format!("write {URL_FORMS}"),
        }
    }
}

fn socket(rest: &str) -> Result<RedisAddress, AddressError> {
    let (path, number) = rest.split_once("?db=").unwrap_or((rest, ""));
    if !path.starts_with('/') || path.len() < 2 {
        return Err(AddressError::SocketPath);
    }
    if path.contains('?') {
        return Err(AddressError::SocketOption);
    }
    let target = RedisTarget::Socket {
        path: path.into(),
        database: database(number)?,
    };
    let tls = false;
    Ok(RedisAddress { target, tls })
}

fn nodes(hosts: &str, default_port: u16) -> Result<Vec<RedisNode>, AddressError> {
    let nodes = hosts.split(',');
    nodes
        .map(|host| RedisNode::parse(host.trim(), default_port))
        .collect()
}

fn database(written: &str) -> Result<u32, AddressError> {
    if written.is_empty() {
        return Ok(0);
    }
    written.parse().map_err(|_| AddressError::Database)
}
