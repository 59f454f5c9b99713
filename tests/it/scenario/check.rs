//! What must come of a step.

use lockgate::gateway::RejectedConfig;

use super::jar::set_cookies;
use super::{OneOrMany, Step};
use crate::harness::{Answer, Running, Seen};

type Checked = Result<(), String>;

// === impl Step ===

impl Step {
    /// A reload went as the step says.
    pub fn check_reload(&self, reloaded: Result<(), RejectedConfig>) -> Checked {
        match (reloaded, &self.reload_error) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(_)) => Err("the reload was not refused".into()),
            (Err(refused), Some(text)) => within(&refused.text, text, "the refusal"),
            (Err(refused), None) => Err(format!("the reload was refused: {refused}")),
        }
    }

    /// The answers and what the origin saw are as the step says.
    pub fn check(&self, answers: &[Answer], seen: &[Seen]) -> Checked {
        self.check_statuses(answers)?;
        for answer in answers {
            self.check_absent(answer)?;
        }
        if let Some(last) = answers.last() {
            self.check_headers(last)?;
            self.check_cookies(last)?;
            self.check_body(last)?;
        }
        self.check_origin(seen)
    }

    /// The metrics stand where the step says, once all answers are written down.
    pub fn check_metrics(&self, gateway: &Running) -> Checked {
        if self.metrics.is_empty() {
            return Ok(());
        }
        let text = gateway.metrics();
        self.metrics.iter().try_for_each(|(series, value)| {
            let line = format!("lockgate_{series} {value}");
            match text.lines().any(|found| found == line) {
                true => Ok(()),
                false => Err(format!("no {line:?} in\n{text}")),
            }
        })
    }

    fn check_statuses(&self, answers: &[Answer]) -> Checked {
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        let expected = match &self.expect {
            Some(OneOrMany::One(status)) => vec![*status; statuses.len()],
            Some(OneOrMany::Many(listed)) => listed.clone(),
            None if self.request.is_some() => return Err("it has no `expect`".into()),
            None => Vec::new(),
        };
        same(&statuses, &expected, "statuses")
    }

    fn check_absent(&self, answer: &Answer) -> Checked {
        if let Some(by_origin) = self.by_origin {
            same(&answer.is_from_origin(), &by_origin, "by_origin")?;
        }
        for name in &self.headers_absent {
            same(&answer.header(name), &None, name)?;
        }
        let Some(allowed) = &self.headers_at_most else {
            return Ok(());
        };
        let names = answer.headers.iter().map(|(name, _)| name);
        match names.clone().find(|name| !allowed.contains(name)) {
            Some(name) => Err(format!("the answer has a header {name}")),
            None => Ok(()),
        }
    }

    fn check_headers(&self, answer: &Answer) -> Checked {
        for (name, value) in &self.headers_are {
            let values = answer.headers.iter().filter(|(n, _)| n == name);
            let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
            same(&values, &vec![value.as_str()], name)?;
        }
        Ok(())
    }

    fn check_cookies(&self, answer: &Answer) -> Checked {
        let Some(expected) = &self.sets_cookies else {
            return Ok(());
        };
        let names: Vec<&str> = set_cookies(answer).map(|(name, _)| name).collect();
        same(
            &names,
            &expected.iter().map(String::as_str).collect(),
            "cookies",
        )
    }

    fn check_body(&self, answer: &Answer) -> Checked {
        let body = answer.text();
        if let Some(expected) = &self.body_is {
            same(&body, expected, "body")?;
        }
        let pieces = self.body_contains.as_ref().map_or(&[][..], OneOrMany::all);
        pieces
            .iter()
            .try_for_each(|piece| within(&body, piece, "the body"))
    }

    fn check_origin(&self, seen: &[Seen]) -> Checked {
        if let Some(count) = self.origin_saw {
            same(&seen.len(), &count, "requests at the origin")?;
        }
        if let Some(line) = &self.origin_line {
            let last = seen.last().map(|seen| &seen.line);
            same(&last, &Some(line), "the origin's request line")?;
        }
        for (name, value) in &self.origin_got {
            let got = seen.last().and_then(|seen| seen.header(name));
            same(&got, &Some(value.as_str()), name)?;
        }
        for name in &self.origin_got_not {
            let last = seen.last().ok_or("the origin saw nothing")?;
            same(&last.header(name), &None, name)?;
        }
        Ok(())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T, what: &str) -> Checked {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: found {found:?}, expected {expected:?}")),
    }
}

fn within(text: &str, piece: &str, what: &str) -> Checked {
    match text.contains(piece) {
        true => Ok(()),
        false => Err(format!("{what} lacks {piece:?}: {text:?}")),
    }
}
