//! The page that solves a challenge: constant text with the challenge as data in attributes.
//!
//! Script and style never change, so the policy allows exactly these two texts.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};

use super::echoed_form::push_escaped;
use super::{ChallengeAudience, ChallengeResponse};
use crate::credential::WorkProof;

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("solver.js"), include_str!("page.js"));
/// The zero bits from which a solution takes several seconds.
const SLOW_BITS: u32 = 10;

static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; form-action https:; \
         base-uri 'none'; frame-ancestors 'self'",
        source(SCRIPT),
        source(STYLE),
    );
    HeaderValue::from_str(&policy).expect("the policy is printable")
});

/// A page with one challenge.
pub(super) struct ChallengePage<'a> {
    challenge: &'a ChallengeResponse<'a>,
}

/// Adds the headers that restrict what the page may do.
pub(super) fn add_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
}

/// Returns the source expression that allows exactly `text`.
fn source(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

// === impl ChallengePage ===

impl<'a> ChallengePage<'a> {
    /// Creates the page of a challenge.
    pub(super) fn of(challenge: &'a ChallengeResponse<'a>) -> Self {
        Self { challenge }
    }

    /// Returns the page. Foreign text replaces the last placeholder, so that nothing in it is one.
    pub(super) fn to_html(&self) -> String {
        let form = self.form();
        let constant = HTML
            .replace("{style}", STYLE)
            .replace("{retry}", &self.retry())
            .replace("{challenge}", &self.attributes());
        let (before, after) = constant.split_once("{form}").unwrap_or_default();
        let after = after.replace("{script}", SCRIPT);
        [before, &form, &after].concat()
    }

    fn form(&self) -> String {
        match &self.challenge.audience {
            ChallengeAudience::EchoedForm(inputs) => {
                format!("<form method=\"post\" accept-charset=\"utf-8\" hidden>\n{inputs}</form>\n")
            }
            _ => String::new(),
        }
    }

    /// The challenge, and what follows, as attributes.
    fn attributes(&self) -> String {
        let ChallengeResponse { token, work, .. } = self.challenge;
        let (salt, iterations, bits) = (work.salt(), work.iterations(), work.bits());
        let hint = if bits < SLOW_BITS {
            "This takes about a second."
        } else {
            "This takes a few seconds."
        };
        let then = match self.challenge.audience {
            ChallengeAudience::OtherBody => "back",
            _ => "continue",
        };
        let mut url = String::new();
        let _ = push_escaped(&mut url, self.challenge.url.as_bytes());
        let parts = WorkProof::PARTS;
        format!(
            "data-token=\"{token}\" data-salt=\"{salt}\" data-iterations=\"{iterations}\" data-bits=\"{bits}\" \
             data-parts=\"{parts}\" data-url=\"{url}\" data-then=\"{then}\" \
             data-hint=\"Checking your browser. {hint}\""
        )
    }

    /// When a client without JavaScript can try again, as the rest of a sentence. Empty if waiting does not help.
    fn retry(&self) -> String {
        let wait = match self.challenge.retry_after {
            None => return String::new(),
            Some(1) => "a second".to_owned(),
            Some(seconds @ ..=90) => format!("{seconds} seconds"),
            Some(seconds @ ..=5_400) => format!("{} minutes", seconds.div_ceil(60)),
            Some(seconds) => format!("{} hours", seconds.div_ceil(3_600)),
        };
        format!(", or try again in {wait}")
    }
}
