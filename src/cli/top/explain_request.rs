//! Turns a hot key or a decision into a request of `/api/explain`.

use serde_json::{Map, Value, json};

use super::action_layer::ActionLayer;
use super::api_fields::ApiFields as _;
use super::screen::{ListedRow, RowKind};

// === impl ListedRow ===

impl ListedRow {
    /// The `explain` request of a hot key or a decision. `None` if no request with the key is known.
    pub fn explain_request(&self) -> Option<Value> {
        let mut request = match self.kind {
            RowKind::HotKey => self.object.object("sample").as_object()?.clone(),
            RowKind::Decision => of_decision(&self.object),
            RowKind::Ban | RowKind::Server => return None,
        };
        // A hashed value cannot be sent again, so the key is set directly.
        if self.has_hashed_key() && !self.rule.is_empty() {
            let keys = Map::from_iter([(self.rule.clone(), json!(self.key))]);
            request.insert("keys".to_owned(), Value::Object(keys));
        }
        Some(Value::Object(request))
    }
}

fn of_decision(decision: &Value) -> Map<String, Value> {
    let mut request = Map::new();
    let scheme = if decision.text("ja4").is_empty() {
        "http"
    } else {
        "https"
    };
    let mut url = format!(
        "{scheme}://{}{}",
        decision.text("host"),
        decision.text("path")
    );
    if !decision.text("query").is_empty() {
        url = format!("{url}?{}", decision.text("query"));
    }
    request.insert("method".to_owned(), decision.object("method").clone());
    request.insert("url".to_owned(), json!(url));
    request.insert("ip".to_owned(), decision.object("client_ip").clone());
    for name in ["asn", "country", "ja4"] {
        request.insert(name.to_owned(), decision.object(name).clone());
    }
    // Only a forwarded request has the status of the origin server.
    let action = decision.text("action");
    if ActionLayer::of(action) == ActionLayer::Forwarded {
        request.insert("status".to_owned(), decision.object("status").clone());
    }
    let agent = decision.text("user_agent");
    if !agent.is_empty() {
        request.insert("headers".to_owned(), json!({ "user-agent": agent }));
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_becomes_a_request() {
        let decision = json!({"id": "1", "client_ip": "192.0.2.1", "asn": 64500, "country": "ZZ", "ja4": null,
            "method": "POST", "host": "shop.example", "path": "/login", "query": "a=1", "status": 429,
            "user_agent": "curl/8", "rule": "login", "action": "block", "key": "192.0.2.1 h:01"});
        let row = ListedRow::of(RowKind::Decision, &decision);
        assert_eq!(
            row.explain_request().unwrap(),
            json!({"method": "POST", "url": "http://shop.example/login?a=1", "ip": "192.0.2.1", "asn": 64500,
                "country": "ZZ", "ja4": null, "headers": {"user-agent": "curl/8"}, "keys": {"login": "192.0.2.1 h:01"}})
        );
    }

    #[test]
    fn a_hot_key_has_its_sample() {
        let mut row = ListedRow {
            kind: RowKind::HotKey,
            rule: "login".into(),
            key: "h:01".into(),
            object: json!({"sample": {"method": "GET", "url": "/"}}),
        };
        let request = json!({"method": "GET", "url": "/", "keys": {"login": "h:01"}});
        assert_eq!(row.explain_request(), Some(request));
        row.object = json!({ "sample": null });
        assert_eq!(row.explain_request(), None);
    }
}
