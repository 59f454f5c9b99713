//! The shop: two origin servers, of which one can fail, and a certificate.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};

use crate::harness::{Folder, Origin};

/// How long the certificate is valid.
const VALIDITY: Duration = Duration::from_secs(64 * 86_400);

/// Two origin servers.
pub struct ShopServers {
    pub healthy: SocketAddr,
    pub failing: SocketAddr,
    fails: Arc<AtomicBool>,
}

impl ShopServers {
    pub fn start() -> Self {
        let fails = Arc::new(AtomicBool::new(false));
        let watched = fails.clone();
        let healthy = Origin::scripted(|stream| serve(stream, &AtomicBool::new(false)));
        let failing = Origin::scripted(move |stream| serve(stream, &watched));
        Self {
            healthy: healthy.address,
            failing: failing.address,
            fails,
        }
    }

    /// Makes one server respond to each request with 503.
    pub fn fail(&self) {
        self.fails.store(true, Ordering::Relaxed);
    }
}

/// Responds to the requests of one connection, some milliseconds later each. Requests have no body.
fn serve(mut stream: TcpStream, fails: &AtomicBool) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        let headers: Vec<String> = lines
            .by_ref()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        let is_wrong = headers.iter().any(|header| header == "x-password: wrong");
        let status = if fails.load(Ordering::Relaxed) {
            503
        } else if is_wrong {
            401
        } else {
            200
        };
        // Some pages take longer than others.
        let varied = line.bytes().map(u64::from).sum::<u64>() % 16;
        sleep(Duration::from_millis(
            4 + varied + 40 * u64::from(varied == 7),
        ));
        let response = format!("HTTP/1.1 {status} Text\r\ncontent-length: 5\r\n\r\nshop\n");
        if stream.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Writes a certificate for shop.example and its key.
pub fn write_certificate(folder: &Folder) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["shop.example".to_owned()]).unwrap();
    params.not_after = (SystemTime::now() + VALIDITY).into();
    folder.write("shop.pem", params.self_signed(&key).unwrap().pem());
    folder.write("shop.key", key.serialize_pem());
}
