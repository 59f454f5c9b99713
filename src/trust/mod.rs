//! Describes a failed TLS handshake in plain words, because the library's messages are names of its types. Used
//! for clients and origin servers. It decides nothing, and keeps the library's message for unknown errors.

mod certificate;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;

use rustls::{AlertDescription as Alert, Error, InvalidMessage, PeerIncompatible};

/// The other side of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPeer {
    /// A client.
    Client,
    /// An origin server.
    Origin {
        /// Whether the upstream configures `ca` instead of using the system's authorities.
        ca: bool,
    },
    /// None: the certificate is the gateway's own.
    Own,
}

/// Displays an error in plain words.
#[derive(Clone, Copy, Debug)]
pub struct PlainError<'a>(pub &'a Error, pub TlsPeer);

/// Describes why a handshake with `peer` failed.
pub fn handshake(error: &io::Error, peer: TlsPeer) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(inner) => PlainError(inner, peer).to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            format!("{peer} closed the connection during the handshake")
        }
        None => error.to_string(),
    }
}

/// Describes the alert that ended a connection with `peer`. `None` if it was no alert. With TLS 1.3, some alerts
/// arrive only after the handshake.
pub fn alert(error: &io::Error, peer: TlsPeer) -> Option<String> {
    let inner = error.get_ref()?.downcast_ref::<Error>()?;
    matches!(inner, Error::AlertReceived(_)).then(|| PlainError(inner, peer).to_string())
}

// === impl TlsPeer ===

impl TlsPeer {
    /// Returns the subject of a message about the certificate.
    fn certificate(self) -> &'static str {
        match self {
            TlsPeer::Client => "the client's certificate",
            TlsPeer::Origin { .. } => "the origin server's certificate",
            TlsPeer::Own => "the certificate",
        }
    }
}

impl fmt::Display for TlsPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsPeer::Client => "the client",
            TlsPeer::Origin { .. } => "the origin server",
            TlsPeer::Own => "the gateway",
        })
    }
}

// === impl PlainError ===

impl fmt::Display for PlainError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlainError(error, peer) = *self;
        match error {
            Error::InvalidCertificate(error) => certificate::write(f, error, peer),
            Error::AlertReceived(alert) => match meaning(*alert, peer) {
                Some(why) => {
                    let number = u8::from(*alert);
                    write!(f, "{peer} ended the handshake: {why} (alert {number})")
                }
                None => write!(f, "{peer} ended the handshake with the alert {alert:?}"),
            },
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
                None => write!(
                    f,
                    "{peer} has no TLS settings in common with the gateway ({what:?})"
                ),
            },
            Error::PeerMisbehaved(what) => write!(f, "{peer} violated the TLS protocol ({what:?})"),
            Error::NoApplicationProtocol => {
                write!(f, "{peer} supports none of the offered protocols (ALPN)")
            }
            Error::DecryptError => write!(f, "the data from {peer} cannot be decrypted"),
            error => error.fmt(f),
        }
    }
}

/// Describes what the two sides do not have in common.
fn lacks(what: &PeerIncompatible) -> Option<&'static str> {
    use PeerIncompatible::{
        NoCipherSuitesInCommon, NoKxGroupsInCommon, NoSignatureSchemesInCommon,
        ServerDoesNotSupportTls12Or13, ServerTlsVersionIsDisabledByOurConfig,
        SupportedVersionsExtensionRequired, Tls12NotOffered, Tls12NotOfferedOrEnabled,
    };
    Some(match what {
        NoCipherSuitesInCommon => "has no cipher suite in common with the gateway",
        NoKxGroupsInCommon => "has no key exchange group in common with the gateway",
        NoSignatureSchemesInCommon => {
            "does not support the signature algorithms of the private key"
        }
        SupportedVersionsExtensionRequired => {
            "does not support TLS 1.3, which `min_version` requires"
        }
        Tls12NotOffered
        | Tls12NotOfferedOrEnabled
        | ServerDoesNotSupportTls12Or13
        | ServerTlsVersionIsDisabledByOurConfig => "supports neither TLS 1.2 nor TLS 1.3",
        _ => return None,
    })
}

/// Describes an alert of the other side (RFC 8446, section 6.2).
fn meaning(alert: Alert, peer: TlsPeer) -> Option<&'static str> {
    let client = peer == TlsPeer::Client;
    Some(match alert {
        // The gateway presents no certificate to an origin server.
        Alert::CertificateRequired
        | Alert::UnknownCA
        | Alert::BadCertificate
        | Alert::CertificateUnknown
            if !client =>
        {
            "it requires a client certificate, which the gateway does not send"
        }
        Alert::HandshakeFailure if !client => {
            "it has no cipher or version in common with the gateway, or requires a client \
             certificate"
        }
        Alert::UnknownCA => "it does not trust the CA of the gateway's certificate",
        Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate => {
            "it does not accept the gateway's certificate"
        }
        Alert::CertificateExpired => "the gateway's certificate has expired",
        Alert::HandshakeFailure => "it has no cipher or version in common with the gateway",
        Alert::ProtocolVersion => "it has no TLS version in common with the gateway",
        Alert::UnrecognisedName if client => "it did not request the name that it received",
        Alert::UnrecognisedName => "it has no site with that name: set `server_name`",
        Alert::NoApplicationProtocol if client => {
            "it supports none of the protocols of the gateway"
        }
        Alert::NoApplicationProtocol => "it supports none of the protocols in `protocol`",
        Alert::UserCanceled => "it cancelled the handshake",
        Alert::InternalError => "it has an internal error",
        Alert::AccessDenied => "it denies access",
        _ => return None,
    })
}
