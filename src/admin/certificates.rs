//! The certificates of the listeners.

use super::objects::CertificateObject;
use crate::snapshot::Snapshot;

/// Returns the certificates of all listeners, the first to expire first.
pub(super) fn certificates(snapshot: &Snapshot) -> Vec<CertificateObject> {
    let listeners = snapshot.listeners.iter();
    let all = listeners.flat_map(|listener| {
        let ends = listener.settings.tls.iter().flat_map(|tls| tls.ends());
        ends.map(|(name, end)| CertificateObject {
            listener: listener.label.to_string(),
            name: name.to_string(),
            not_after: (*end).into(),
        })
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|certificate| certificate.not_after);
    all
}
