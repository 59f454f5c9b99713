//! Why TLS did not come about, as a sentence for people: the library's own words are the names of
//! its types. Shared by both sides of the gateway. It decides nothing, and what it does not know
//! it leaves in the library's words.

mod alert;
mod certificate;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;

use rustls::{Error, InvalidMessage, PeerIncompatible};

/// Who is on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client.
    Client,
    /// An origin. `ca`: who may vouch for it is configured, and not what the system says.
    Origin {
        /// Whether `ca` is there.
        ca: bool,
    },
    /// Nobody: the certificate is our own.
    Own,
}

/// A sentence about an error.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a>(pub &'a Error, pub Peer);

/// Says why a handshake with `peer` failed.
pub fn handshake(error: &io::Error, peer: Peer) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(inner) => Plain(inner, peer).to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            format!("{peer} closed the connection during the handshake")
        }
        None => error.to_string(),
    }
}

/// Says what the alert means that ended a connection with `peer`, where one did: of TLS 1.3 some
/// come only after the handshake.
pub fn alert(error: &io::Error, peer: Peer) -> Option<String> {
    let inner = error.get_ref()?.downcast_ref::<Error>()?;
    matches!(inner, Error::AlertReceived(_)).then(|| Plain(inner, peer).to_string())
}

// === impl Peer ===

impl Peer {
    /// Whose certificate it is.
    fn certificate(self) -> &'static str {
        match self {
            Peer::Client => "the client's certificate",
            Peer::Origin { .. } => "the origin's certificate",
            Peer::Own => "the certificate",
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Peer::Client => "the client",
            Peer::Origin { .. } => "the origin",
            Peer::Own => "the gateway",
        })
    }
}

// === impl Plain ===

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plain(error, peer) = *self;
        match error {
            Error::InvalidCertificate(error) => certificate::write(f, error, peer),
            Error::AlertReceived(alert) => alert::write(f, *alert, peer),
            Error::NoCertificatesPresented => write!(f, "{peer} has no certificate"),
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) => write!(f, "{peer} does not speak TLS on this port"),
            Error::InvalidMessage(what) => {
                write!(
                    f,
                    "{peer} sent a TLS message that cannot be read ({what:?})"
                )
            }
            Error::PeerIncompatible(what) => match lacks(what) {
                Some(what) => write!(f, "{peer} {what}"),
                None => write!(f, "{peer} speaks another TLS than we do ({what:?})"),
            },
            Error::PeerMisbehaved(what) => write!(f, "{peer} broke the rules of TLS ({what:?})"),
            Error::NoApplicationProtocol => {
                write!(
                    f,
                    "{peer} speaks none of the protocols that are offered (ALPN)"
                )
            }
            Error::DecryptError => write!(f, "what {peer} sent cannot be decrypted"),
            error => error.fmt(f),
        }
    }
}

/// What the two sides do not have in common.
fn lacks(what: &PeerIncompatible) -> Option<&'static str> {
    use PeerIncompatible::{
        NoCipherSuitesInCommon, NoKxGroupsInCommon, NoSignatureSchemesInCommon,
        ServerDoesNotSupportTls12Or13, ServerTlsVersionIsDisabledByOurConfig,
        SupportedVersionsExtensionRequired, Tls12NotOffered, Tls12NotOfferedOrEnabled,
    };
    Some(match what {
        NoCipherSuitesInCommon => "has no cipher suite in common with us",
        NoKxGroupsInCommon => "has no key exchange group in common with us",
        NoSignatureSchemesInCommon => "cannot check signatures of the kind that the key makes",
        SupportedVersionsExtensionRequired => {
            "does not speak TLS 1.3, and `min_version` asks for it"
        }
        Tls12NotOffered
        | Tls12NotOfferedOrEnabled
        | ServerDoesNotSupportTls12Or13
        | ServerTlsVersionIsDisabledByOurConfig => "speaks neither TLS 1.2 nor TLS 1.3",
        _ => return None,
    })
}
