//! Tests of challenge responses: who gets which, their headers, and what a page repeats.

mod forms;
mod requests;

use super::*;
use crate::action::tests::{Request, header, text};
use crate::credential::{ChallengeToken, ClientBinding, TokenIssue};

const TOKEN: &str = "AQFrSdIAAAECAwQFBgcICQoLDA0OD42q9hUncTbMcZl1ZUDTOXJmrqfGOgcXO-EI";
const ORIGINS: [HeaderValue; 1] = [HeaderValue::from_static("https://app.example")];

fn work(difficulty: u8) -> WorkProof {
    let issue = TokenIssue {
        difficulty,
        now: 1_800_000_000,
        nonce: std::array::from_fn(|n| n as u8),
        binding: ClientBinding::default(),
        rule: "login/site",
    };
    ChallengeToken::new(&issue).work()
}

/// Sends a challenge for `request`, with this body.
fn challenge(request: &Request, body: &[u8]) -> Response<Body> {
    challenge_with(request, body, 1, Some(42))
}

fn challenge_with(
    request: &Request,
    body: &[u8],
    difficulty: u8,
    retry_after: Option<u64>,
) -> Response<Body> {
    let info = request.asked();
    let audience = ChallengeAudience::of(&info, false);
    let audience = if audience.can_repeat(&info, "shop.example") {
        ChallengeAudience::repeating(Some(body))
    } else {
        audience
    };
    let challenge = ChallengeResponse {
        token: TOKEN,
        work: &work(difficulty),
        url: "/.lockgate/challenge",
        retry_after,
        audience,
        origins: &ORIGINS,
    };
    challenge.to_response(&info)
}
