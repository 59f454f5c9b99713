//! A client of the admin port: one plain HTTP request per connection.

use std::fmt;
use std::io::{self, BufReader, Read, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::{ConfigArg, print_error};
use crate::config::{self, Diagnostics};

/// The timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout between two reads or writes. The admin port serves a request within 30 seconds.
const IO_TIMEOUT: Duration = Duration::from_secs(35);
/// The maximum size of a response head, in bytes.
const MAX_HEAD: u64 = 64 << 10;
/// The maximum size of a response, in bytes.
const MAX_RESPONSE: u64 = 256 << 20;

/// Selects the gateway.
#[derive(Args, Debug)]
pub struct AdminArgs {
    #[command(flatten)]
    config: ConfigArg,
    /// The admin port, such as `http://127.0.0.1:9901` [default: that of the configuration file].
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// A file with the token [default: that of the configuration file].
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// The admin port of a gateway.
#[derive(Clone, Debug)]
pub struct AdminClient {
    /// Host and port.
    authority: String,
    /// The path before `/api`, for a proxy that adds one. Usually empty.
    prefix: String,
    token: Option<String>,
    /// The timeout between two reads or writes.
    io_timeout: Duration,
}

/// Why a command got no result.
#[derive(Debug)]
pub enum AdminClientError {
    /// The gateway cannot be reached, or the response is not one of an admin port.
    Unreachable(String),
    /// The token is missing or wrong.
    WrongToken,
    /// The gateway refused the request, with this message.
    Refused(String),
}

/// The body of a response, as it arrives.
pub type AdminBody = BufReader<TcpStream>;

// === impl AdminArgs ===

impl AdminArgs {
    /// Returns the path of the configuration file.
    pub fn config_path(&self) -> &Path {
        &self.config.config
    }

    /// Returns whether the arguments have the address of a gateway.
    pub fn names_gateway(&self) -> bool {
        self.admin.is_some()
    }

    /// Returns whether the arguments or the configuration have the address of an admin port.
    pub fn has_admin(&self) -> bool {
        self.names_gateway() || self.configured().is_some()
    }

    /// Returns the client for these arguments.
    pub fn client(&self) -> Result<AdminClient, AdminClientError> {
        let token_file = self.token_file.clone();
        let configured = || self.configured()?.1;
        let token_file = token_file.or_else(configured);
        let token = token_file.map(|path| read_token(&path)).transpose()?;
        Ok(AdminClient {
            token,
            ..self.client_without_token()?
        })
    }

    /// Returns the client for requests that need no token.
    pub fn client_without_token(&self) -> Result<AdminClient, AdminClientError> {
        match (&self.admin, self.configured()) {
            (Some(url), _) => AdminClient::new(url),
            (None, Some((address, _))) => {
                AdminClient::new(&format!("http://{}", reachable(address)))
            }
            (None, None) => {
                let what = if self.config_is_missing() {
                    "does not exist: write --config FILE, or"
                } else {
                    "has no readable `[admin]` with an address: write"
                };
                Err(AdminClientError::Unreachable(format!(
                    "{} {what} --admin http://127.0.0.1:9901",
                    self.config.config.display()
                )))
            }
        }
    }

    /// Returns whether there is no configuration file.
    pub fn config_is_missing(&self) -> bool {
        matches!(self.config.config.try_exists(), Ok(false))
    }

    /// Returns the address and the token file in the configuration. `None` without an admin port.
    fn configured(&self) -> Option<(SocketAddr, Option<PathBuf>)> {
        let path = &self.config.config;
        let (_, file) = config::load(path, &mut Diagnostics::new());
        let admin = file?.admin?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let token_file = admin.token_file.map(|file| folder.join(file.value));
        Some((admin.address.value, token_file))
    }
}

/// Returns an address that reaches a port which listens on `address`.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

fn read_token(path: &Path) -> Result<String, AdminClientError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| {
        let shown = path.display();
        AdminClientError::Unreachable(format!("cannot read the token in `{shown}`: {error}"))
    })?;
    Ok(text.trim().to_owned())
}

// === impl AdminClient ===

impl AdminClient {
    fn new(url: &str) -> Result<Self, AdminClientError> {
        let invalid = |why: &str| AdminClientError::Unreachable(format!("`{url}`: {why}"));
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => {
                return Err(invalid(
                    "https is not supported; use plain http through a tunnel",
                ));
            }
            Some(_) => return Err(invalid("write a URL such as http://127.0.0.1:9901")),
            None => url,
        };
        let (authority, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_valid = !authority.is_empty() && !rest.contains(['\r', '\n', ' ', '@', '?', '#']);
        if !is_valid {
            return Err(invalid("write a URL such as http://127.0.0.1:9901"));
        }
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let prefix = prefix.trim_end_matches('/');
        Ok(Self {
            authority: if has_port {
                authority.to_owned()
            } else {
                format!("{authority}:80")
            },
            prefix: if prefix.is_empty() {
                String::new()
            } else {
                format!("/{prefix}")
            },
            token: None,
            io_timeout: IO_TIMEOUT,
        })
    }

    /// Returns a client with another timeout between two reads or writes.
    pub fn with_io_timeout(&self, io_timeout: Duration) -> Self {
        Self {
            io_timeout,
            ..self.clone()
        }
    }

    /// Reads an object.
    pub fn get(&self, path: &str) -> Result<Value, AdminClientError> {
        parsed(&self.get_text(path)?)
    }

    /// Reads an object as text.
    pub fn get_text(&self, path: &str) -> Result<String, AdminClientError> {
        self.request("GET", path, None)
    }

    /// Sends a request with a body and returns the object in the response.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, AdminClientError> {
        parsed(&self.request(method, path, Some(body))?)
    }

    /// Sends a request without a body and returns the object in the response.
    pub fn call(&self, method: &str, path: &str) -> Result<Value, AdminClientError> {
        parsed(&self.request(method, path, None)?)
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<String, AdminClientError> {
        let body = self.open(method, path, body)?;
        let mut text = String::new();
        let read = body.take(MAX_RESPONSE).read_to_string(&mut text);
        read.map_err(|error| self.unreachable(&error))?;
        Ok(text)
    }

    /// Sends a request and returns the body of its response, which may be a stream.
    pub fn open(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<AdminBody, AdminClientError> {
        let io = |error: io::Error| self.unreachable(&error);
        let mut stream = self.connect().map_err(io)?;
        stream
            .write_all(self.head(method, path, body).as_bytes())
            .map_err(io)?;
        let mut response = BufReader::new(stream);
        let status = read_head(&mut response).map_err(io)?;
        if (200..300).contains(&status) {
            return Ok(response);
        }
        let mut text = String::new();
        // The status alone says enough.
        let _ = response.take(MAX_HEAD).read_to_string(&mut text);
        Err(AdminClientError::of(status, &text))
    }

    /// Writes a request. HTTP/1.0, so that the body of the response needs no decoding.
    fn head(&self, method: &str, path: &str, body: Option<&Value>) -> String {
        let Self {
            authority,
            prefix,
            token,
            ..
        } = self;
        let token = token
            .as_ref()
            .map(|token| format!("authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        let body = body.map(Value::to_string).unwrap_or_default();
        let about_body = if body.is_empty() {
            String::new()
        } else {
            format!(
                "content-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            )
        };
        format!(
            "{method} {prefix}{path} HTTP/1.0\r\nhost: {authority}\r\n{token}{about_body}\r\n{body}"
        )
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in self.authority.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(self.io_timeout))?;
                    stream.set_write_timeout(Some(self.io_timeout))?;
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn unreachable(&self, error: &io::Error) -> AdminClientError {
        AdminClientError::Unreachable(format!(
            "cannot reach the gateway at http://{}: {error}",
            self.authority
        ))
    }
}

/// Reads the head of a response and returns its status.
fn read_head(response: &mut BufReader<TcpStream>) -> io::Result<u16> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && (head.len() as u64) < MAX_HEAD {
        if response.read(&mut byte)? == 0 {
            let message = "it closed the connection without a response";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        head.extend_from_slice(&byte);
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Response::new(&mut headers);
    let is_head = parsed.parse(&head).is_ok();
    let status = parsed.code.filter(|_| is_head);
    status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the response is not HTTP"))
}

fn parsed(text: &str) -> Result<Value, AdminClientError> {
    let wrong = |_| AdminClientError::Unreachable("the response is not JSON".to_owned());
    serde_json::from_str(text).map_err(wrong)
}

/// Percent-encodes everything but unreserved characters (RFC 3986, section 2.3).
pub fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Returns a query of these parameters, with its `?`. Empty without parameters.
pub fn query(parameters: &[(&str, &str)]) -> String {
    let pairs = parameters
        .iter()
        .map(|(name, value)| format!("{name}={}", escaped(value)));
    let pairs = pairs.collect::<Vec<_>>().join("&");
    if pairs.is_empty() {
        pairs
    } else {
        format!("?{pairs}")
    }
}

// === impl AdminClientError ===

impl AdminClientError {
    fn of(status: u16, body: &str) -> Self {
        if status == 401 {
            return Self::WrongToken;
        }
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        let sentence = value.get("error").and_then(Value::as_str);
        Self::Refused(match sentence {
            Some(sentence) => sentence.to_owned(),
            None => format!("the gateway responded with status {status}"),
        })
    }

    /// Prints the error. Returns exit code 2 if the gateway cannot be reached, 3 for a wrong token, otherwise 1.
    pub fn report(&self) -> ExitCode {
        print_error(&format!("lockgate: {self}"));
        match self {
            Self::Unreachable(_) => ExitCode::from(2),
            Self::WrongToken => ExitCode::from(3),
            Self::Refused(_) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for AdminClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Refused(why) => f.write_str(why),
            Self::WrongToken => f.write_str(
                "the token is missing or wrong: set `admin.token_file`, or write --token-file FILE",
            ),
        }
    }
}

#[cfg(test)]
mod tests;
