//! Whether an origin is who it should be. Never decides what is done about one who is not.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Whom to believe.
#[derive(Debug)]
pub(super) enum Verifier {
    /// Who shows one of these certificates, or one for which the library finds a root.
    Known(Vec<CertificateDer<'static>>, Arc<WebPkiServerVerifier>),
    /// Everybody, but nobody with a certificate that he cannot use.
    Anybody(Arc<CryptoProvider>),
}

// === impl Verifier ===

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self {
            Self::Anybody(_) => Ok(ServerCertVerified::assertion()),
            // A certificate that signed itself is its own root, which the library does not allow
            // for; it was given by name, so only its time and whose it is remain to be asked.
            Self::Known(given, roots) if given.contains(shown) => {
                is_in_time(roots.verify_server_cert(shown, chain, name, ocsp, now))?;
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            Self::Known(_, roots) => roots.verify_server_cert(shown, chain, name, ocsp, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::Known(_, roots) => roots.verify_tls12_signature(message, certificate, signed),
            Self::Anybody(provider) => {
                let known = &provider.signature_verification_algorithms;
                verify_tls12_signature(message, certificate, signed, known)
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::Known(_, roots) => roots.verify_tls13_signature(message, certificate, signed),
            Self::Anybody(provider) => {
                let known = &provider.signature_verification_algorithms;
                verify_tls13_signature(message, certificate, signed, known)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Self::Known(_, roots) => roots.supported_verify_schemes(),
            Self::Anybody(provider) => provider
                .signature_verification_algorithms
                .supported_schemes(),
        }
    }
}

/// Only what the library says of a certificate's time, at which it looks first.
fn is_in_time(said: Result<ServerCertVerified, Error>) -> Result<(), Error> {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    match said {
        Err(Error::InvalidCertificate(
            why @ (Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. }),
        )) => Err(why.into()),
        _ => Ok(()),
    }
}
