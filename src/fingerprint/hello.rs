//! Finds the ClientHello in TLS records and parses its parts (RFC 8446, section 4.1.2).
//!
//! The lengths of the outer structure must add up. A malformed extension body counts as empty: the
//! TLS library decides whether to accept such a hello.

use std::borrow::Cow;
use std::sync::Arc;

use super::ClientHelloError;

/// The handshake type of a ClientHello.
const CLIENT_HELLO: u8 = 1;

/// A view of a ClientHello message without GREASE values (RFC 8701).
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientHello<'a> {
    version: u16,
    ciphers: &'a [u8],
    extensions: &'a [u8],
    has_server_name: bool,
    server_name: Option<&'a str>,
    groups: &'a [u8],
    point_formats: &'a [u8],
    signature_algorithms: &'a [u8],
    first_protocol: &'a [u8],
    supported_versions: Option<&'a [u8]>,
}

/// The bytes of TLS structures (RFC 8446, section 3) that are not read yet. A read past the end
/// returns `None`; nothing is indexed.
#[derive(Clone, Copy, Debug)]
struct Cursor<'a>(&'a [u8]);

/// Extension numbers that the fingerprints use (IANA, TLS ExtensionType Values).
pub(super) mod extension {
    pub(in super::super) const SERVER_NAME: u16 = 0;
    pub(in super::super) const GROUPS: u16 = 10;
    pub(in super::super) const POINT_FORMATS: u16 = 11;
    pub(in super::super) const SIGNATURE_ALGORITHMS: u16 = 13;
    pub(in super::super) const ALPN: u16 = 16;
    pub(in super::super) const SUPPORTED_VERSIONS: u16 = 43;

    /// The extensions with a body that the fingerprints need. For the server name, only its presence matters.
    pub(in super::super) const READ: [u16; 5] = [
        GROUPS,
        POINT_FORMATS,
        SIGNATURE_ALGORITHMS,
        ALPN,
        SUPPORTED_VERSIONS,
    ];
}

/// The handshake message (type, 24-bit length, body) at the start of these TLS records, reassembled
/// if it spans several. Bytes after the message are ignored.
pub fn client_hello(records: &[u8]) -> Result<Cow<'_, [u8]>, ClientHelloError> {
    let mut input = Cursor::new(records);
    let first = fragment(&mut input)?;
    if let Some(length) = complete(first)? {
        return first
            .get(..length)
            .map(Cow::Borrowed)
            .ok_or(ClientHelloError::Incomplete);
    }
    let mut joined = first.to_vec();
    loop {
        joined.extend_from_slice(fragment(&mut input)?);
        if let Some(length) = complete(&joined)? {
            joined.truncate(length);
            return Ok(Cow::Owned(joined));
        }
    }
}

// === impl ClientHello ===

impl<'a> ClientHello<'a> {
    /// Reads a handshake message as [`client_hello`] returns it.
    pub fn parse(message: &'a [u8]) -> Result<Self, ClientHelloError> {
        let length = complete(message)?.ok_or(ClientHelloError::Incomplete)?;
        let body = message.get(4..length).ok_or(ClientHelloError::Incomplete)?;
        Self::body(body).ok_or(ClientHelloError::Malformed)
    }

    fn body(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Cursor::new(bytes);
        let mut hello = Self {
            version: input.u16()?,
            ..Self::default()
        };
        let _random = input.take(32)?;
        let _session = input.vec8()?;
        hello.ciphers = input.vec16()?;
        let _compression = input.vec8()?;
        // Before TLS 1.2 a hello may end here (RFC 5246, section 7.4.1.2).
        if !input.is_empty() {
            hello.extensions = input.vec16()?;
        }
        hello.read_extensions()?;
        input.is_empty().then_some(hello)
    }

    fn read_extensions(&mut self) -> Option<()> {
        let mut input = Cursor::new(self.extensions);
        while !input.is_empty() {
            let number = input.u16()?;
            let mut body = Cursor::new(input.vec16()?);
            match number {
                extension::SERVER_NAME => {
                    self.has_server_name = true;
                    self.server_name = host_name(body);
                }
                extension::GROUPS => self.groups = body.vec16().unwrap_or_default(),
                extension::POINT_FORMATS => self.point_formats = body.vec8().unwrap_or_default(),
                extension::SIGNATURE_ALGORITHMS => {
                    self.signature_algorithms = body.vec16().unwrap_or_default();
                }
                extension::ALPN => self.first_protocol = first_protocol(body).unwrap_or_default(),
                extension::SUPPORTED_VERSIONS => {
                    self.supported_versions = Some(body.vec8().unwrap_or_default());
                }
                _ => {}
            }
        }
        Some(())
    }

    /// A shorter message with equal fingerprints, which a connection keeps for later reads. Never
    /// longer than the message; without the key shares and the name it has a few hundred bytes.
    pub(super) fn sketch(&self) -> Arc<[u8]> {
        let mut extensions = Vec::with_capacity(256);
        let mut input = Cursor::new(self.extensions);
        while let (Some(number), Some(body)) = (input.u16(), input.vec16()) {
            let body = if extension::READ.contains(&number) {
                body
            } else {
                &[]
            };
            extensions.extend_from_slice(&number.to_be_bytes());
            push_vec16(&mut extensions, body);
        }
        let mut message = Vec::with_capacity(self.ciphers.len() + extensions.len() + 64);
        message.extend_from_slice(&[CLIENT_HELLO, 0, 0, 0]);
        message.extend_from_slice(&self.version.to_be_bytes());
        message.extend_from_slice(&[0; 32 + 1]);
        push_vec16(&mut message, self.ciphers);
        message.push(0);
        if !extensions.is_empty() {
            push_vec16(&mut message, &extensions);
        }
        let length = message.len().saturating_sub(4) as u32;
        if let Some(header) = message.first_chunk_mut() {
            *header = (length | u32::from(CLIENT_HELLO) << 24).to_be_bytes();
        }
        message.into()
    }

    /// The version field of the message itself; TLS 1.3 clients send 1.2 here.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The highest version in the `supported_versions` extension, 0 if it lists none; the message's
    /// own version if the extension is absent.
    pub fn highest_version(&self) -> u16 {
        self.supported_versions
            .map_or(self.version, |list| numbers(list).max().unwrap_or_default())
    }

    /// Cipher suites, in the client's order.
    pub fn ciphers(&self) -> impl Iterator<Item = u16> + Clone + 'a {
        numbers(self.ciphers)
    }

    /// Extension numbers, in the client's order.
    pub fn extensions(&self) -> impl Iterator<Item = u16> + Clone + 'a {
        let mut input = Cursor::new(self.extensions);
        std::iter::from_fn(move || {
            let number = input.u16()?;
            input.vec16()?;
            Some(number)
        })
        .filter(|&number| !is_grease(number))
    }

    /// Supported groups (elliptic curves), in the client's order.
    pub fn groups(&self) -> impl Iterator<Item = u16> + Clone + 'a {
        numbers(self.groups)
    }

    /// Elliptic curve point formats, in the client's order.
    pub fn point_formats(&self) -> impl Iterator<Item = u8> + 'a {
        self.point_formats.iter().copied()
    }

    /// Signature algorithms, in the client's order.
    pub fn signature_algorithms(&self) -> impl Iterator<Item = u16> + Clone + 'a {
        numbers(self.signature_algorithms)
    }

    /// The first protocol that ALPN offers; empty if there is none.
    pub fn first_protocol(&self) -> &'a [u8] {
        self.first_protocol
    }

    /// Whether there is a server name extension, whatever it contains.
    pub fn has_server_name(&self) -> bool {
        self.has_server_name
    }

    /// The host name that the client requested, as sent. `None` if there is none.
    pub fn server_name(&self) -> Option<&'a str> {
        self.server_name
    }
}

/// The payload of the next TLS record (RFC 8446, section 5.1).
fn fragment<'a>(input: &mut Cursor<'a>) -> Result<&'a [u8], ClientHelloError> {
    const HANDSHAKE: u8 = 22;
    if input.u8().ok_or(ClientHelloError::Incomplete)? != HANDSHAKE {
        return Err(ClientHelloError::NotHandshake);
    }
    let _version = input.u16().ok_or(ClientHelloError::Incomplete)?;
    input.vec16().ok_or(ClientHelloError::Incomplete)
}

/// The length of the ClientHello at the start of `bytes`. `None` if it is not complete yet.
fn complete(bytes: &[u8]) -> Result<Option<usize>, ClientHelloError> {
    let mut input = Cursor::new(bytes);
    match input.u8() {
        None => return Ok(None),
        Some(CLIENT_HELLO) => {}
        Some(_) => return Err(ClientHelloError::NotClientHello),
    }
    let length = input.u24().map(|body| body.saturating_add(4));
    Ok(length.filter(|&length| length <= bytes.len()))
}

/// The first host name of a server name list (RFC 6066, section 3).
fn host_name(mut body: Cursor<'_>) -> Option<&str> {
    const HOST_NAME: u8 = 0;
    let mut list = Cursor::new(body.vec16()?);
    loop {
        let kind = list.u8()?;
        let name = list.vec16()?;
        if kind == HOST_NAME {
            return std::str::from_utf8(name).ok();
        }
    }
}

/// The first entry of a protocol list (RFC 7301, section 3.1).
fn first_protocol<'a>(mut body: Cursor<'a>) -> Option<&'a [u8]> {
    Cursor::new(body.vec16()?).vec8()
}

/// Appends a vector with a two-byte length. The bytes come from such a vector, so the length fits.
fn push_vec16(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn numbers(list: &[u8]) -> impl Iterator<Item = u16> + Clone {
    let (pairs, _) = list.as_chunks();
    pairs
        .iter()
        .map(|&pair| u16::from_be_bytes(pair))
        .filter(|&number| !is_grease(number))
}

/// The sixteen reserved values 0x0A0A, 0x1A1A … 0xFAFA (RFC 8701, section 2).
fn is_grease(number: u16) -> bool {
    number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn u16(&mut self) -> Option<u16> {
        let (&bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(bytes))
    }

    fn u24(&mut self) -> Option<usize> {
        let (&[a, b, c], rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))
    }

    /// A vector with a length of one byte.
    fn vec8(&mut self) -> Option<&'a [u8]> {
        let count = self.u8()?;
        self.take(count.into())
    }

    /// A vector with a length of two bytes.
    fn vec16(&mut self) -> Option<&'a [u8]> {
        let count = self.u16()?;
        self.take(count.into())
    }
}
