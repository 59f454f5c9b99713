//! An element of a page.

use serde_json::{Value, json};

use super::Browser;

/// An element of the current page.
pub struct Element<'a> {
    browser: &'a Browser,
    id: String,
}

impl<'a> Element<'a> {
    pub(super) fn new(browser: &'a Browser, id: String) -> Self {
        Self { browser, id }
    }

    /// Clicks it.
    pub fn click(&self) {
        self.post("click", &json!({}));
    }

    /// Types text into it.
    pub fn enter(&self, text: &str) {
        self.post("value", &json!({"text": text}));
    }

    /// Its visible text.
    pub fn text(&self) -> String {
        self.get("text")
    }

    /// The role that assistive technology sees.
    pub fn role(&self) -> String {
        self.get("computedrole")
    }

    /// The name that assistive technology sees.
    pub fn label(&self) -> String {
        self.get("computedlabel")
    }

    fn get(&self, what: &str) -> String {
        let path = format!("/element/{}/{what}", self.id);
        self.browser.get(&path).as_str().unwrap().to_owned()
    }

    fn post(&self, what: &str, body: &Value) {
        self.browser
            .post(&format!("/element/{}/{what}", self.id), body);
    }
}
