//! TLS sessions go on with the process that takes over.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{CONFIG, ended, hand_over};
use crate::harness::Process;

/// What `openssl s_client` says of a session, and the answer that it got. The session is kept in
/// `file`, and begins with what is there if `resumes`.
fn session(address: SocketAddr, version: &str, file: &Path, resumes: bool) -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["s_client", "-ign_eof", version, "-connect"]);
    openssl.arg(address.to_string()).arg("-sess_out").arg(file);
    if resumes {
        openssl.arg("-sess_in").arg(file);
    }
    openssl.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut openssl = openssl.stderr(Stdio::null()).spawn().unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    openssl.stdin.take().unwrap().write_all(request).unwrap();
    let said = openssl.wait_with_output().unwrap().stdout;
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn sessions_are_resumed_after_a_handover() {
    let mut process = Process::run(CONFIG);
    let tls = process.address(1);
    let versions = [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")];
    let file = |version: &str| process.folder.path().join(format!("session{version}"));
    for (flag, version) in versions {
        let said = session(tls, flag, &file(flag), false);
        assert!(said.contains(&format!("New, {version}")), "{said}");
        assert!(said.contains("HTTP/1.1 200 "), "{said}");
    }
    for generation in 1..=2 {
        hand_over(&process);
        ended(&process, generation);
        for (flag, version) in versions {
            let said = session(tls, flag, &file(flag), true);
            assert!(said.contains(&format!("Reused, {version}")), "{said}");
            assert!(said.contains("HTTP/1.1 200 "), "{said}");
        }
    }
    assert_eq!(process.exit_code(), Some(0));
}

/// A process that begins anew knows nothing of them.
#[test]
fn sessions_are_not_resumed_by_an_unrelated_process() {
    let before = Process::run(CONFIG);
    let after = Process::run(CONFIG);
    for flag in ["-tls1_2", "-tls1_3"] {
        let file = before.folder.path().join("session");
        session(before.address(1), flag, &file, false);
        let said = session(after.address(1), flag, &file, true);
        assert!(said.contains("New, TLSv1"), "{said}");
        assert!(said.contains("HTTP/1.1 200 "), "{said}");
    }
}
