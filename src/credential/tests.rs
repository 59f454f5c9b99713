//! The test vector of the design, round trips, and texts that must be rejected.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const NOW: u32 = 1_800_000_000;
const DAY: u32 = 86_400;
const LIFETIME: u32 = 180 * DAY;
const HOST: &str = "shop.example";
const ALICE: &[u8] = b"alice@example.com";
const KNOWN: &str = "AQECAwQFBgcIa0nSAGtJ0gAB6P6k0je3A4dhExc34oPvZlYVos4fEQ";
const TOKEN: &str = "AQFrSdIAAAECAwQFBgcICQoLDA0OD42q9hUncTbMcZl1ZUDTOXJmrqfGOgcXO-EI";
const CLEARANCE: &str = "ASr57bE0TZoxa0nSAI2q9hUncSywO15Jl61-lT5TnbFfcqc";
const SOLUTION: [u32; 8] = [878, 154, 164, 361, 405, 231, 29, 757];

fn ring() -> SecretRing {
    SecretRing::from_secret(std::array::from_fn(|n| n as u8))
}

fn ring_of(secrets: &[u8]) -> SecretRing {
    let line = |byte: &u8| format!("{byte:02x}").repeat(32);
    let lines: Vec<String> = secrets.iter().map(line).collect();
    SecretRing::parse(lines.join("\n").as_bytes()).unwrap()
}

fn binding() -> ClientBinding {
    ClientBinding::from_ja4("t13d1516h2_8daaf6152771_02713d6af862")
}

fn token() -> ChallengeToken {
    ChallengeToken::new(&TokenIssue {
        difficulty: 1,
        now: NOW,
        nonce: std::array::from_fn(|n| n as u8),
        binding: binding(),
        rule: "login/site",
    })
}

fn check_known(cookie: &str, ring: &SecretRing, now: u32) -> KnownCheck {
    KnownCookie::check(cookie.as_bytes(), ring, HOST, now, LIFETIME)
}

fn known(cookie: &str, ring: &SecretRing, now: u32) -> KnownCookie {
    match check_known(cookie, ring, now) {
        KnownCheck::Known(known) => known,
        other => panic!("{other:?}"),
    }
}

fn check_clearance(ring: &SecretRing) -> ClearanceCheck<'_> {
    ClearanceCheck {
        ring,
        scope: HOST,
        now: NOW,
        lifetime: 3600,
        binding: binding(),
    }
}

// === The test vector ===

#[test]
fn the_cookie_of_the_test_vector_is_issued_and_accepted() {
    let mut cookie = KnownCookie::new([1, 2, 3, 4, 5, 6, 7, 8], NOW);
    cookie.add_user(&ring(), ALICE);
    assert_eq!(cookie.encode(&ring(), HOST), KNOWN);
    assert_eq!(cookie.client_id().as_str(), "96b79a21129ed9bf");
    assert_eq!(known(KNOWN, &ring(), NOW), cookie);
    assert!(cookie.has_user(&ring(), ALICE));
    assert!(!cookie.has_user(&ring(), b"bob@example.com"));
}

#[test]
fn the_token_of_the_test_vector_is_issued_and_accepted() {
    assert_eq!(token().encode(&ring(), HOST), TOKEN);
    let verified = ChallengeToken::verify(TOKEN.as_bytes(), &ring(), HOST, NOW, binding());
    assert_eq!(verified, Ok(token()));
    assert_eq!(token().rule(), ChallengeToken::rule_tag("login/site"));
}

#[test]
fn the_solution_of_the_test_vector_is_correct() {
    let work = token().work();
    assert_eq!((work.bits(), work.iterations()), (8, 250));
    assert_eq!(work.salt(), "AAECAwQFBgcICQoLDA0ODw");
    assert!(work.is_solved_by(&SOLUTION));
    for part in 0..WorkProof::PARTS {
        let mut wrong = SOLUTION;
        wrong[part] += 1;
        assert!(!work.is_solved_by(&wrong), "part {part}");
    }
}

#[test]
fn the_clearance_of_the_test_vector_is_issued_and_accepted() {
    let clearance = ClearanceCookie::for_token(&token(), &ring());
    assert_eq!(clearance.encode(&ring(), HOST), CLEARANCE);
    assert_eq!(clearance.id().as_str(), "2af9edb1344d9a31");
    let verified = ClearanceCookie::verify(CLEARANCE.as_bytes(), &check_clearance(&ring()));
    assert_eq!(verified, Some(clearance));
}

// === Times, hosts and bindings ===

#[test]
fn a_cookie_expires_and_is_not_accepted_from_the_future() {
    assert!(matches!(
        check_known(KNOWN, &ring(), NOW + LIFETIME - 1),
        KnownCheck::Known(_)
    ));
    assert_eq!(
        check_known(KNOWN, &ring(), NOW + LIFETIME),
        KnownCheck::Expired
    );
    assert!(matches!(
        check_known(KNOWN, &ring(), NOW - 300),
        KnownCheck::Known(_)
    ));
    assert_eq!(check_known(KNOWN, &ring(), NOW - 301), KnownCheck::Invalid);
}

#[test]
fn a_credential_of_another_host_is_invalid() {
    let ring = ring();
    let cookie = KnownCookie::check(KNOWN.as_bytes(), &ring, "other.example", NOW, LIFETIME);
    assert_eq!(cookie, KnownCheck::Invalid);
    let token = ChallengeToken::verify(TOKEN.as_bytes(), &ring, "other.example", NOW, binding());
    assert_eq!(token, Err(TokenError::Wrong));
    let mut check = check_clearance(&ring);
    check.scope = "other.example";
    assert_eq!(ClearanceCookie::verify(CLEARANCE.as_bytes(), &check), None);
}

#[test]
fn a_token_is_valid_for_ten_minutes_on_its_connection() {
    let verify = |now, binding| {
        let token = ChallengeToken::verify(TOKEN.as_bytes(), &ring(), HOST, now, binding);
        token.map(|_| ())
    };
    let rule = ChallengeToken::rule_tag("login/site");
    let expired = Err(TokenError::Expired { rule });
    assert_eq!(verify(NOW + 600, binding()), Ok(()));
    assert_eq!(verify(NOW + 601, binding()), expired);
    assert_eq!(verify(NOW - 300, binding()), Ok(()));
    assert_eq!(verify(NOW - 301, binding()), expired);
    assert_eq!(
        verify(NOW, ClientBinding::default()),
        Err(TokenError::Wrong)
    );
}

#[test]
fn a_clearance_is_valid_for_its_lifetime_on_its_connection() {
    let ring = ring();
    let verify = |change: fn(&mut ClearanceCheck<'_>)| {
        let mut check = check_clearance(&ring);
        change(&mut check);
        ClearanceCookie::verify(CLEARANCE.as_bytes(), &check).is_some()
    };
    assert!(verify(|check| check.now += 3599));
    assert!(!verify(|check| check.now += 3600));
    assert!(verify(|check| check.now -= 300));
    assert!(!verify(|check| check.now -= 301));
    assert!(!verify(|check| check.binding = ClientBinding::default()));
}

#[test]
fn a_binding_is_the_cipher_part_of_a_ja4() {
    assert_eq!(binding().0, [0x8d, 0xaa, 0xf6, 0x15, 0x27, 0x71]);
    for text in [
        "",
        "t13d1516h2",
        "a_8daaf615277_b",
        "a_8daaf615277g_b",
        "a_8daaf61527711_b",
    ] {
        assert_eq!(
            ClientBinding::from_ja4(text),
            ClientBinding::default(),
            "{text}"
        );
    }
}

// === Users and renewal ===

#[test]
fn a_fifth_user_replaces_the_oldest() {
    let ring = ring();
    let mut cookie = KnownCookie::new([9; 8], NOW);
    for user in [b"a", b"b", b"c", b"d", b"e"] {
        cookie.add_user(&ring, user);
    }
    let read = known(&cookie.encode(&ring, HOST), &ring, NOW);
    assert!(!read.has_user(&ring, b"a"));
    assert!(
        [b"b", b"c", b"d", b"e"]
            .iter()
            .all(|user| read.has_user(&ring, *user))
    );
    assert_eq!(cookie.encode(&ring, HOST).len(), 78);
}

#[test]
fn a_success_renews_after_a_tenth_of_the_lifetime() {
    let ring = ring();
    let cookie = known(KNOWN, &ring, NOW);
    let after = |user, later: u32| cookie.after_success(&ring, user, NOW + later, LIFETIME);
    assert_eq!(after(Some(ALICE), LIFETIME / 10), None);
    let (renewed, why) = after(Some(ALICE), LIFETIME / 10 + 1).unwrap();
    assert_eq!(why, CookieIssue::Renewed);
    assert_eq!(renewed.client_id(), cookie.client_id());
    assert_eq!(renewed.age(NOW + 2 * LIFETIME), 2 * LIFETIME);
    let (added, why) = after(Some(b"bob"), 0).unwrap();
    assert_eq!(why, CookieIssue::UserAdded);
    assert!(added.has_user(&ring, ALICE) && added.has_user(&ring, b"bob"));
    assert_eq!(after(None, 0), None);
    assert!(after(None, LIFETIME / 5).unwrap().0.has_user(&ring, ALICE));
}

#[test]
fn a_clock_that_is_behind_does_not_invalidate_a_cookie() {
    let ring = ring();
    let cookie = known(KNOWN, &ring, NOW);
    let (next, _) = cookie
        .after_success(&ring, Some(b"bob"), NOW - 200, LIFETIME)
        .unwrap();
    known(&next.encode(&ring, HOST), &ring, NOW - 200);
}

// === Rotation ===

#[test]
fn all_secrets_verify_and_the_first_signs() {
    let (old, both, new) = (ring_of(&[1]), ring_of(&[2, 1]), ring_of(&[2]));
    let mut cookie = KnownCookie::new([9; 8], NOW);
    cookie.add_user(&old, ALICE);
    cookie.add_user(&old, b"bob");
    let text = cookie.encode(&old, HOST);
    assert_eq!(check_known(&text, &new, NOW), KnownCheck::Invalid);
    let read = known(&text, &both, NOW);
    assert!(read.has_user(&both, ALICE));
    assert_eq!(read.after_success(&both, None, NOW, LIFETIME), None);
    let (next, why) = read
        .after_success(&both, Some(ALICE), NOW, LIFETIME)
        .unwrap();
    assert_eq!(why, CookieIssue::Renewed);
    let signed = known(&next.encode(&both, HOST), &new, NOW);
    assert_eq!(signed.client_id(), cookie.client_id());
    assert!(signed.has_user(&new, ALICE) && !signed.has_user(&new, b"bob"));
}

#[test]
fn a_replayed_solution_yields_one_clearance_after_a_rotation() {
    let (old, both) = (ring_of(&[1]), ring_of(&[2, 1]));
    let text = token().encode(&old, HOST);
    let read = ChallengeToken::verify(text.as_bytes(), &both, HOST, NOW, binding()).unwrap();
    let before = ClearanceCookie::for_token(&token(), &old);
    assert_eq!(ClearanceCookie::for_token(&read, &both), before);
}

#[test]
fn a_secret_file_is_raw_or_lines_of_hexadecimal_digits() {
    let first = |content: &[u8]| SecretRing::parse(content).map(|ring| (*ring.first(), ring.len()));
    let raw: [u8; 32] = std::array::from_fn(|n| n as u8 * 7);
    let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(first(&raw), Ok((raw, 1)));
    for end in ["", "\n", "\r\n", "\n\n"] {
        assert_eq!(first(format!("{hex}{end}").as_bytes()), Ok((raw, 1)));
    }
    assert_eq!(first(hex.to_uppercase().as_bytes()), Ok((raw, 1)));
    assert_eq!(first(format!("\n{hex}\n\n{hex}").as_bytes()), Ok((raw, 2)));
    let too_many = format!("{hex}\n").repeat(5);
    assert_eq!(first(too_many.as_bytes()), Err(SecretError::TooMany(5)));
    let second = format!("{hex}\nsecret\n");
    let line = |line, characters| Err(SecretError::Line { line, characters });
    assert_eq!(first(second.as_bytes()), line(2, 6));
    assert_eq!(first("zwölf".as_bytes()), line(1, 5));
    assert_eq!(first(&[b'g'; 64]), line(1, 64));
    for wrong in [&b""[..], &[0; 31], &[0; 33], &[255; 64], &[b'\n'; 65]] {
        let length = Err(SecretError::Length(wrong.len()));
        assert_eq!(first(wrong), length, "{wrong:?}");
    }
}

#[test]
fn a_wrong_secret_file_names_the_line() {
    let message = |content: &[u8]| SecretRing::parse(content).unwrap_err().to_string();
    assert_eq!(
        message(&[b'0'; 63]),
        "line 1 has 63 characters; expected 64 hexadecimal digits, or a file of exactly 32 bytes"
    );
    assert_eq!(
        message(&[b'g'; 64]),
        "line 1 has a character that is not a hexadecimal digit"
    );
    assert_eq!(
        message(&[0; 33]),
        "expected 32 bytes or lines of 64 hexadecimal digits, found 33 bytes"
    );
}

// === The budget ===

#[test]
fn verification_takes_a_tenth_of_the_time() {
    let mut now = Timestamp::from_secs(1);
    let mut budget = VerifyBudget::new(now);
    let mut used = Duration::ZERO;
    let cost = Duration::from_micros(480);
    for _ in 0..100_000 {
        now = now.plus(Duration::from_micros(100));
        if budget.admits(now) {
            budget.charge(cost);
            used += cost;
        }
    }
    // Ten seconds: one full bucket, and a second's worth of accrual.
    let most = Duration::from_millis(1100) + cost;
    assert!(
        used > Duration::from_millis(1050) && used <= most,
        "{used:?}"
    );
}

// === Properties ===

proptest! {
    #[test]
    fn cookies_round_trip(id: [u8; 8], first in 0..NOW, users in prop::collection::vec(".{0,40}", 0..7)) {
        let ring = ring();
        let mut cookie = KnownCookie::new(id, first);
        users.iter().for_each(|user| cookie.add_user(&ring, user.as_bytes()));
        let text = cookie.encode(&ring, HOST);
        let read = KnownCookie::check(text.as_bytes(), &ring, HOST, first, LIFETIME);
        prop_assert_eq!(read, KnownCheck::Known(cookie.clone()));
        let newest = users.iter().rev().take(4);
        prop_assert!(newest.into_iter().all(|user| cookie.has_user(&ring, user.as_bytes())));
    }

    #[test]
    fn a_changed_character_is_rejected(at: prop::sample::Index, to in prop::char::range('!', '~')) {
        let mangle = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.index(bytes.len());
            let is_changed = bytes[at] != to as u8;
            bytes[at] = to as u8;
            is_changed.then_some(bytes)
        };
        let ring = ring();
        if let Some(text) = mangle(KNOWN) {
            let checked = KnownCookie::check(&text, &ring, HOST, NOW, LIFETIME);
            prop_assert_eq!(checked, KnownCheck::Invalid);
        }
        if let Some(text) = mangle(TOKEN) {
            let verified = ChallengeToken::verify(&text, &ring, HOST, NOW, binding());
            prop_assert_eq!(verified, Err(TokenError::Wrong));
        }
        if let Some(text) = mangle(CLEARANCE) {
            prop_assert_eq!(ClearanceCookie::verify(&text, &check_clearance(&ring)), None);
        }
    }

    #[test]
    fn a_changed_length_is_rejected(cut in 0..64_usize, more in "[A-Za-z0-9_=-]{0,40}") {
        let ring = ring();
        for (text, is_accepted) in [
            (KNOWN, (|text, ring| matches!(check_known(text, ring, NOW), KnownCheck::Known(_))) as fn(&str, &SecretRing) -> bool),
            (TOKEN, |text, ring| ChallengeToken::verify(text.as_bytes(), ring, HOST, NOW, binding()).is_ok()),
            (CLEARANCE, |text, ring| ClearanceCookie::verify(text.as_bytes(), &check_clearance(ring)).is_some()),
        ] {
            let changed = format!("{}{more}", &text[..cut.min(text.len())]);
            prop_assert_eq!(is_accepted(&changed, &ring), changed == text);
        }
    }

    #[test]
    fn arbitrary_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let ring = ring();
        let checked = KnownCookie::check(&bytes, &ring, HOST, NOW, LIFETIME);
        prop_assert_eq!(checked, KnownCheck::Invalid);
        prop_assert!(ChallengeToken::verify(&bytes, &ring, HOST, NOW, binding()).is_err());
        prop_assert_eq!(ClearanceCookie::verify(&bytes, &check_clearance(&ring)), None);
    }
}
