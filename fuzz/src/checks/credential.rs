//! Any cookie, token or secret file: nothing foreign is accepted, and what is issued is accepted again.

use lockgate::credential::{
    ChallengeToken, ClearanceCheck, ClearanceCookie, ClientBinding, KnownCheck, KnownCookie,
    SecretRing, TokenIssue,
};

const HOST: &str = "shop.example";
const NOW: u32 = 1_800_000_000;
const LIFETIME: u32 = 86_400;

/// Takes the input for a credential of each kind, for a secret file, and for the parts of new credentials.
pub fn credential(data: &[u8]) {
    let ring = SecretRing::from_secret([7; 32]);
    // The fuzzer learns texts that are compared in this process, so nothing is issued with this secret.
    reject_foreign(data, &SecretRing::from_secret([8; 32]));
    if let Ok(parsed) = SecretRing::parse(data) {
        assert!((1..=4).contains(&parsed.len()));
        reject_foreign(data, &parsed);
    }
    let (id, rest) = data.split_first_chunk::<8>().unwrap_or((&[0; 8], data));
    accept_cookie(*id, rest, &ring);
    let (nonce, rest) = data.split_first_chunk::<16>().unwrap_or((&[0; 16], data));
    accept_token(*nonce, rest, &ring);
}

fn check<'a>(ring: &'a SecretRing, binding: ClientBinding) -> ClearanceCheck<'a> {
    ClearanceCheck {
        ring,
        scope: HOST,
        now: NOW,
        lifetime: LIFETIME,
        binding,
    }
}

fn reject_foreign(data: &[u8], ring: &SecretRing) {
    let binding = ClientBinding::default();
    assert_eq!(
        KnownCookie::check(data, ring, HOST, NOW, LIFETIME),
        KnownCheck::Invalid
    );
    assert!(ChallengeToken::verify(data, ring, HOST, NOW, binding).is_err());
    assert_eq!(ClearanceCookie::verify(data, &check(ring, binding)), None);
}

/// The lines of `rest` are users; its bytes also mangle the cookie.
fn accept_cookie(id: [u8; 8], rest: &[u8], ring: &SecretRing) {
    let mut cookie = KnownCookie::new(id, NOW);
    let users: Vec<&[u8]> = rest.split(|byte| *byte == b'\n').take(6).collect();
    users.iter().for_each(|user| cookie.add_user(ring, user));
    let text = cookie.encode(ring, HOST).into_bytes();
    let read = KnownCookie::check(&text, ring, HOST, NOW, LIFETIME);
    assert_eq!(read, KnownCheck::Known(cookie.clone()));
    assert!(
        users
            .iter()
            .rev()
            .take(4)
            .all(|user| cookie.has_user(ring, user))
    );
    let mangled = mangle(&text, rest);
    if mangled != text {
        assert_eq!(
            KnownCookie::check(&mangled, ring, HOST, NOW, LIFETIME),
            KnownCheck::Invalid
        );
    }
}

fn accept_token(nonce: [u8; 16], rest: &[u8], ring: &SecretRing) {
    let ja4 = String::from_utf8_lossy(rest);
    let binding = ClientBinding::from_ja4(&ja4);
    let token = ChallengeToken::new(&TokenIssue {
        difficulty: 1 + nonce[0] % 6,
        now: NOW,
        nonce,
        binding,
        rule: &ja4,
    });
    let text = token.encode(ring, HOST).into_bytes();
    let verify = |text: &[u8]| ChallengeToken::verify(text, ring, HOST, NOW, binding);
    assert_eq!(verify(&text), Ok(token.clone()));
    let mangled = mangle(&text, rest);
    assert!(mangled == text || verify(&mangled).is_err());
    let clearance = ClearanceCookie::for_token(&token, ring);
    let text = clearance.encode(ring, HOST).into_bytes();
    assert_eq!(
        ClearanceCookie::verify(&text, &check(ring, binding)),
        Some(clearance)
    );
    let mangled = mangle(&text, rest);
    let verified = ClearanceCookie::verify(&mangled, &check(ring, binding));
    assert!(mangled == text || verified.is_none());
}

/// Overwrites one character of `text` and cuts or lengthens it, as the first bytes of `changes` say.
fn mangle(text: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut mangled = text.to_vec();
    if let [at, to, length, ..] = changes {
        let at = usize::from(*at) % mangled.len();
        mangled[at] = *to;
        mangled.resize(usize::from(*length) % (2 * text.len()), *to);
    }
    mangled
}
