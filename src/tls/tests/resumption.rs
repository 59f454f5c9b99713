//! Sessions are resumed, also by the Terminator that a reload makes.

use rustls::client::{Resumption, Tls12Resumption};

use super::*;

async fn resumes(first: &TlsTerminator, second: &TlsTerminator, config: ClientConfig) {
    let config = Arc::new(config);
    let (seen, _) = meet(first, &config, "localhost").await;
    assert_eq!(seen.unwrap().kind, Some(HandshakeKind::Full));
    let (seen, facts) = meet(second, &config, "localhost").await;
    assert_eq!(seen.unwrap().kind, Some(HandshakeKind::Resumed));
    assert_eq!(facts.unwrap().hello.ja4.len(), 36);
}

/// A 1.2 client that knows tickets or only session identifiers.
fn older(own: &[Certificate], how: Tls12Resumption) -> ClientConfig {
    let mut config = client(&TLS12, own);
    config.resumption = Resumption::in_memory_sessions(32).tls12_resumption(how);
    config
}

#[tokio::test]
async fn sessions_are_resumed() {
    let own = [certificate(&["localhost"])];
    let server = terminator(&own);
    resumes(&server, &server, client(&TLS13, &own)).await;
    let tickets = older(&own, Tls12Resumption::SessionIdOrTickets);
    resumes(&server, &server, tickets).await;
    let identifiers = older(&own, Tls12Resumption::SessionIdOnly);
    resumes(&server, &server, identifiers).await;
}

#[tokio::test]
async fn sessions_from_before_a_reload_are_resumed() {
    let own = [certificate(&["localhost"])];
    let tickets = TicketKeys::default();
    let before = TlsTerminator::new(settings(&own))
        .unwrap()
        .with_tickets(&tickets);
    let after = TlsTerminator::new(settings(&own))
        .unwrap()
        .with_tickets(&tickets);
    resumes(&before, &after, client(&TLS13, &own)).await;
    let older = older(&own, Tls12Resumption::SessionIdOnly);
    resumes(&before, &after, older).await;
}

#[tokio::test]
async fn tickets_of_another_server_mean_a_full_handshake() {
    let own = [certificate(&["localhost"])];
    let config = Arc::new(client(&TLS13, &own));
    for server in [terminator(&own), terminator(&own)] {
        let (seen, facts) = meet(&server, &config, "localhost").await;
        assert_eq!(seen.unwrap().kind, Some(HandshakeKind::Full));
        facts.unwrap();
    }
}

#[tokio::test]
async fn a_session_belongs_to_its_listener() {
    let own = [certificate(&["localhost"])];
    let tickets = TicketKeys::default();
    let config = Arc::new(client(&TLS13, &own));
    let at = |listener: &str| {
        let settings = TerminatorSettings {
            listener: listener.into(),
            ..settings(&own)
        };
        TlsTerminator::new(settings).unwrap().with_tickets(&tickets)
    };
    for server in [at("127.0.0.1:443"), at("127.0.0.1:8443")] {
        let (seen, _) = meet(&server, &config, "localhost").await;
        assert_eq!(seen.unwrap().kind, Some(HandshakeKind::Full));
    }
}
