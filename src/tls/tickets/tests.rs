//! Tests of tickets: which keys decrypt them, and for how long.

use super::*;
use crate::clock::ManualClock;

fn scope(listener: &str, clients: Option<[u8; 32]>) -> TicketScope {
    let listener = listener.into();
    TicketScope { listener, clients }
}

fn ticketer(ring: &Arc<Ring>) -> Ticketer {
    Ticketer::new(ring.clone(), &scope("127.0.0.1:443", None))
}

fn ring() -> (Arc<Ring>, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_secs(1_000_000));
    (TicketKeys::on(Clock::Manual(clock.clone())).ring, clock)
}

#[test]
fn a_ticket_is_opaque_and_decrypts_only_unchanged() {
    let (ring, _) = ring();
    let tickets = ticketer(&ring);
    for plain in [&b""[..], b"x", &[7; 1000]] {
        let sealed = tickets.encrypt(plain).unwrap();
        assert_ne!(sealed, tickets.encrypt(plain).unwrap());
        assert_eq!(tickets.decrypt(&sealed).unwrap(), plain);
        for at in 0..sealed.len() {
            let mut spoilt = sealed.clone();
            spoilt[at] ^= 1;
            assert_eq!(tickets.decrypt(&spoilt), None, "{at}");
            assert_eq!(tickets.decrypt(&sealed[..at]), None, "{at}");
        }
    }
}

#[test]
fn a_ticket_decrypts_only_in_its_scope() {
    let (ring, _) = ring();
    let scopes = [
        scope("127.0.0.1:443", None),
        scope("127.0.0.1:4430", None),
        scope("127.0.0.1:443", Some([0; 32])),
        scope("127.0.0.1:443", Some([1; 32])),
    ];
    for (n, own) in scopes.iter().enumerate() {
        let sealed = Ticketer::new(ring.clone(), own).encrypt(b"plain").unwrap();
        for (m, other) in scopes.iter().enumerate() {
            let opened = Ticketer::new(ring.clone(), other).decrypt(&sealed);
            assert_eq!(opened.is_some(), n == m, "{own:?} and {other:?}");
        }
    }
}

#[test]
fn keys_are_rotated_and_expire() {
    let (ring, clock) = ring();
    let tickets = ticketer(&ring);
    let first = tickets.encrypt(b"plain").unwrap();
    clock.advance(LIFE - Duration::from_secs(1));
    let same = tickets.encrypt(b"plain").unwrap();
    assert_eq!(same[..NAME], first[..NAME]);
    clock.advance(Duration::from_secs(1));
    let second = tickets.encrypt(b"plain").unwrap();
    assert_ne!(second[..NAME], first[..NAME]);
    clock.advance(LIFE - Duration::from_secs(1));
    assert!(tickets.decrypt(&first).is_some());
    clock.advance(Duration::from_secs(1));
    assert!(tickets.decrypt(&first).is_none());
    assert!(tickets.decrypt(&second).is_some());
    // No client connected for days.
    clock.advance(10 * LIFE);
    assert!(tickets.decrypt(&second).is_none());
    let third = tickets.encrypt(b"plain").unwrap();
    assert!(tickets.decrypt(&second).is_none());
    assert!(tickets.decrypt(&third).is_some());
}

#[test]
fn another_key_ring_decrypts_tickets_after_importing_the_keys() {
    let (ring, clock) = ring();
    let tickets = ticketer(&ring);
    let first = tickets.encrypt(b"plain").unwrap();
    clock.advance(LIFE);
    let second = tickets.encrypt(b"plain").unwrap();
    let other = TicketKeys::on(Clock::Manual(clock)).ring;
    let heir = ticketer(&other);
    assert!(heir.decrypt(&second).is_none());
    other.load(&ring.save());
    for sealed in [&first, &second] {
        assert_eq!(heir.decrypt(sealed).unwrap(), b"plain");
    }
    let third = heir.encrypt(b"plain").unwrap();
    assert_eq!(third[..NAME], second[..NAME]);
    // Where there was none, one is drawn.
    other.load(&Ring::default().save());
    assert!(heir.decrypt(&third).is_none());
    assert!(heir.encrypt(b"plain").is_some());
}

#[test]
fn debug_output_contains_no_secret() {
    let (ring, _) = ring();
    let _ = ticketer(&ring).encrypt(b"plain");
    let key = ring.current().unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b}, ")).collect::<String>();
    let said = format!("{ring:?} {:?} {key:?}", ring.save());
    assert!(!said.contains(&hex(&key.secret[..4])), "{said}");
}
