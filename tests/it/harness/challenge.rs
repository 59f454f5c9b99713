//! A client that solves challenges natively, from the document alone.

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2;
use serde_json::Value;

use super::{Answer, Client};

/// Where solutions are posted.
const PATH: &str = "/.lockgate/challenge";

/// A challenge as its document describes it.
pub struct Challenge {
    /// The signed token.
    pub token: String,
    salt: String,
    iterations: NonZeroU32,
    bits: u32,
    parts: usize,
}

impl Challenge {
    /// Requests a page that is challenged, and reads the challenge.
    #[track_caller]
    pub fn request(client: &Client, path: &str) -> Self {
        let answer = client.clone().get(path).send();
        assert_eq!(answer.header("x-lockgate-challenge"), Some("required"));
        Self::of(&answer)
    }

    /// The challenge in a response.
    pub fn of(answer: &Answer) -> Self {
        let document: Value = serde_json::from_slice(&answer.body).unwrap();
        let challenge = &document["challenge"];
        let text = |name: &str| challenge[name].as_str().unwrap().to_owned();
        let number = |name: &str| u32::try_from(challenge[name].as_u64().unwrap()).unwrap();
        Self {
            token: text("token"),
            salt: text("salt"),
            iterations: NonZeroU32::new(number("iterations")).unwrap(),
            bits: number("bits"),
            parts: number("parts") as usize,
        }
    }

    /// The document with the solution.
    pub fn solve(&self) -> String {
        format!(
            "{{\"token\":\"{}\",\"solution\":{:?}}}",
            self.token,
            self.parts()
        )
    }

    /// Solves it and returns the clearance, as a client sends it.
    #[track_caller]
    pub fn clear(&self, client: &Client) -> String {
        Self::clearance(&Self::post(client, &self.solve()))
    }

    /// Posts a document with a solution.
    pub fn post(client: &Client, document: &str) -> Answer {
        let client = client.clone().header("content-type", "application/json");
        client.post(PATH).body(document.as_bytes()).send()
    }

    /// The clearance that a right solution yields, as a client sends it.
    #[track_caller]
    pub fn clearance(answer: &Answer) -> String {
        assert_eq!(answer.status, 204, "{}", answer.text());
        let cookie = answer.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// The numbers that solve it.
    pub fn parts(&self) -> Vec<u32> {
        let solve = |part| (0..).find(|number| self.is_solved(part, *number)).unwrap();
        (0..self.parts).map(solve).collect()
    }

    /// A number that does not solve a part.
    pub fn wrong_number(&self, part: usize) -> u32 {
        (0..).find(|number| !self.is_solved(part, *number)).unwrap()
    }

    fn is_solved(&self, part: usize, number: u32) -> bool {
        let password = format!("{}.{part}.{number}", self.salt);
        let mut hash = [0; 32];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            self.iterations,
            self.salt.as_bytes(),
            password.as_bytes(),
            &mut hash,
        );
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]).leading_zeros() >= self.bits
    }
}
