//! How much is learned for a rule with `imitate`, and whether its configured body resembles the real ones.

use super::ImitationStore;
use crate::action::ResponseTemplate;
use crate::action::escape::media_type;

/// How much is learned for a rule, of the class of responses that is known best.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearningProgress {
    /// The number of observed responses.
    pub responses: u32,
    /// The number of different clients that received them; no more than needed are counted.
    pub clients: usize,
    /// Whether enough is learned, so that shadow responses imitate real ones.
    pub is_ready: bool,
    /// How the configured body differs from the real ones, as a sentence. `None` if nothing differs, or while too
    /// little is learned.
    pub difference: Option<String>,
}

/// What is known about the bodies of real responses.
#[derive(Clone, Debug, Default)]
pub(super) struct BodyFeatures {
    /// The media type of the newest response. Empty without one.
    pub media_type: String,
    /// The shortest and the longest length of the bodies without a coding. `None` without a known length.
    pub lengths: Option<(u64, u64)>,
}

// === impl ImitationStore ===

impl ImitationStore {
    /// Returns how much is learned for the rule with this name and configured response. Before responses to requests
    /// that the rule matches are learned, shadow responses imitate any others with their status.
    pub fn progress(&self, rule: &str, template: &ResponseTemplate) -> LearningProgress {
        let kinds = self.kinds.read();
        let mut best = LearningProgress::default();
        for (kind, learned) in kinds
            .iter()
            .filter(|(kind, _)| kind.status == template.status)
        {
            let is_own = kind.rule.as_deref() == Some(rule);
            if kind.rule.is_some() && !is_own {
                continue;
            }
            let (mut progress, bodies) = learned.progress();
            // Responses to other requests may have any body.
            if progress.is_ready && is_own {
                progress.difference = bodies.difference(template);
            }
            let rank =
                |one: &LearningProgress| (one.is_ready, one.difference.is_some(), one.responses);
            if rank(&progress) > rank(&best) {
                best = progress;
            }
        }
        best
    }
}

// === impl BodyFeatures ===

impl BodyFeatures {
    /// Adds a body with this length.
    pub(super) fn add_length(&mut self, length: u64) {
        let (low, high) = self.lengths.unwrap_or((length, length));
        self.lengths = Some((low.min(length), high.max(length)));
    }

    fn difference(&self, template: &ResponseTemplate) -> Option<String> {
        let own = media_type(&template.content_type);
        if !self.media_type.is_empty() && own != self.media_type {
            let real = &self.media_type;
            return Some(format!(
                "real responses are {real}, the configured one is {own}"
            ));
        }
        let (low, high) = self.lengths?;
        let length = template.body.length() as u64;
        let is_like = (low.saturating_sub(low / 10)..=high + high / 10).contains(&length);
        (!is_like).then(|| {
            let real = if low == high {
                format!("{low}")
            } else {
                format!("{low} to {high}")
            };
            format!("real bodies have {real} bytes, the configured one has about {length}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Template;
    use http::{HeaderValue, StatusCode};

    fn template(content_type: &'static str, body: &str) -> ResponseTemplate {
        ResponseTemplate {
            status: StatusCode::OK,
            content_type: HeaderValue::from_static(content_type),
            headers: Vec::new(),
            body: Template::parse(body).unwrap(),
            html: None,
            json: None,
            imitate: true,
        }
    }

    fn json(lengths: &[u64]) -> BodyFeatures {
        let mut bodies = BodyFeatures {
            media_type: "application/json".to_owned(),
            lengths: None,
        };
        lengths.iter().for_each(|length| bodies.add_length(*length));
        bodies
    }

    #[test]
    fn a_body_of_another_type_or_length_differs() {
        let own = template("application/json", r#"{"ok":true,"id":"{{uuid}}"}"#);
        assert_eq!(own.body.length(), 55);
        assert_eq!(json(&[52, 60]).difference(&own), None);
        assert_eq!(json(&[]).difference(&own), None);
        assert_eq!(BodyFeatures::default().difference(&own), None);
        let text = json(&[1000, 900]).difference(&own).unwrap();
        assert_eq!(
            text,
            "real bodies have 900 to 1000 bytes, the configured one has about 55"
        );
        let text = json(&[54]).difference(&template("text/html", "x")).unwrap();
        assert_eq!(
            text,
            "real responses are application/json, the configured one is text/html"
        );
    }
}
