//! What an alert of the other side means (RFC 8446, section 6.2).

use std::fmt;

use rustls::AlertDescription as Alert;

use super::Peer;

/// Writes that `peer` ended the handshake with `alert`, and why it does that.
pub(super) fn write(f: &mut fmt::Formatter<'_>, alert: Alert, peer: Peer) -> fmt::Result {
    write!(f, "{peer} ended the handshake")?;
    match meaning(alert, peer) {
        Some(why) => write!(f, ": {why} (alert {})", u8::from(alert)),
        None => write!(f, " with the alert {alert:?}"),
    }
}

fn meaning(alert: Alert, peer: Peer) -> Option<&'static str> {
    let client = peer == Peer::Client;
    Some(match alert {
        // To an origin we show no certificate.
        Alert::CertificateRequired
        | Alert::UnknownCA
        | Alert::BadCertificate
        | Alert::CertificateUnknown
            if !client =>
        {
            "it asks for a client certificate, and the gateway has none for it"
        }
        Alert::HandshakeFailure if !client => {
            "it has no cipher or version in common with us, or asks for a client certificate"
        }
        Alert::UnknownCA => "it does not trust the authority of our certificate",
        Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate => {
            "it does not accept our certificate"
        }
        Alert::CertificateExpired => "our certificate has expired",
        Alert::HandshakeFailure => "it has no cipher or version in common with us",
        Alert::ProtocolVersion => "it speaks no version of TLS that we speak",
        Alert::UnrecognisedName if client => "it did not ask for the name that it got",
        Alert::UnrecognisedName => "it knows no site of that name: see `server_name`",
        Alert::NoApplicationProtocol if client => "it speaks none of the protocols we chose",
        Alert::NoApplicationProtocol => "it speaks none of the protocols of `protocol`",
        Alert::UserCanceled => "it was cancelled there",
        Alert::InternalError => "it has an internal error",
        Alert::AccessDenied => "it does not let us in",
        _ => return None,
    })
}
