//! A folder with the files that a configuration names: certificates with newly generated keys.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::clock::Timestamp;

/// The time at which configurations are checked: the middle of 2025.
pub(super) const NOW: Timestamp = Timestamp::from_secs(1_750_000_000);

/// Creates a new folder. The caller removes it.
pub(super) fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("lockgate-check-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (name, from, until) in [
        ("site", 2020, (2120, 1, 1)),
        ("other", 2020, (2120, 1, 1)),
        ("old", 2020, (2021, 1, 1)),
        ("new", 2090, (2120, 1, 1)),
        ("soon", 2020, (2025, 6, 29)),
        ("today", 2020, (2025, 6, 16)),
        ("later", 2020, (2025, 6, 30)),
    ] {
        certificate(&folder, name, from, until);
    }
    fs::write(folder.join("empty.pem"), "").unwrap();
    let office = "# ours\n192.0.2.0/24\n198.51.100.7/24\n203.0.113.1/24\n";
    fs::write(folder.join("office.txt"), office).unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    fs::write(folder.join("broken.pem"), broken).unwrap();
    let line = "0".repeat(64);
    fs::write(folder.join("secret-short"), "too short").unwrap();
    fs::write(
        folder.join("secret-second"),
        format!("{line}\n\nnot hexadecimal\n"),
    )
    .unwrap();
    fs::write(folder.join("secret-many"), format!("{line}\n").repeat(5)).unwrap();
    folder
}

fn certificate(folder: &Path, name: &str, from: i32, (year, month, day): (i32, u8, u8)) {
    let mut params = CertificateParams::new(vec![format!("{name}.test")]).unwrap();
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(year, month, day);
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    fs::write(folder.join(format!("{name}.pem")), made.pem()).unwrap();
    let key = key.serialize_pem();
    fs::write(folder.join(format!("{name}.key")), key).unwrap();
}
