//! The cookies of a scenario's clients, as browsers keep them, without regard to hosts.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::harness::{Answer, Client};

/// The cookies of each client, by the name of its jar.
#[derive(Default)]
pub struct CookieJars(RefCell<BTreeMap<String, BTreeMap<String, String>>>);

// === impl CookieJars ===

impl CookieJars {
    /// Adds the cookies of a jar to the requests of a client.
    pub fn fill(&self, jar: Option<&str>, client: Client) -> Client {
        let jars = self.0.borrow();
        let cookies = jar.and_then(|jar| jars.get(jar)).into_iter().flatten();
        let pairs: Vec<String> = cookies
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if pairs.is_empty() {
            client
        } else {
            client.header("cookie", &pairs.join("; "))
        }
    }

    /// Keeps the cookies that an answer sets.
    pub fn keep(&self, jar: Option<&str>, answer: &Answer) {
        let Some(jar) = jar else { return };
        let mut jars = self.0.borrow_mut();
        let cookies = jars.entry(jar.to_owned()).or_default();
        for (name, value) in set_cookies(answer) {
            cookies.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// The names and values of the cookies that an answer sets.
pub fn set_cookies(answer: &Answer) -> impl Iterator<Item = (&str, &str)> {
    let lines = answer
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie");
    lines.filter_map(|(_, line)| line.split(';').next()?.split_once('='))
}
