//! Who is believed about where a client is.

use super::Warnings;
use crate::config::file::File;

/// Networks wider than this hold strangers.
const WIDEST: u8 = 8;

/// Warns of trusted proxies that are everybody.
pub(super) fn warn(file: &File, warnings: &mut Warnings<'_>) {
    let trusted = file.client_ip.trusted_proxies.iter();
    for network in trusted.filter(|network| network.value.prefix_len() < WIDEST) {
        let message = format!(
            "everybody in {} is believed about who the client is",
            network.value
        );
        warnings
            .at(network.span.clone(), message)
            .help("name the addresses of your proxies only");
    }
}
