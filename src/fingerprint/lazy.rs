//! A fingerprint that is computed when it is first read.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::ClientHello;

/// Text of a ClientHello that nothing may ever ask for.
#[derive(Clone, Default)]
pub struct Lazy {
    text: OnceLock<Box<str>>,
    source: Option<Source>,
}

/// What the text is made of, and how.
#[derive(Clone)]
struct Source {
    /// What [`ClientHello::sketch`] gave: one copy for all texts of a hello.
    sketch: Arc<[u8]>,
    make: fn(&ClientHello<'_>) -> String,
}

// === impl Lazy ===

impl Lazy {
    /// What `make` says of the hello that `sketch` stands for.
    pub(super) fn new(sketch: Arc<[u8]>, make: fn(&ClientHello<'_>) -> String) -> Self {
        Self {
            text: OnceLock::new(),
            source: Some(Source { sketch, make }),
        }
    }

    /// Whether anything has asked for it.
    pub fn is_computed(&self) -> bool {
        self.text.get().is_some()
    }

    fn compute(&self) -> Box<str> {
        let source = self.source.as_ref();
        let text =
            source.and_then(|from| Some((from.make)(&ClientHello::parse(&from.sketch).ok()?)));
        text.unwrap_or_default().into()
    }
}

impl Deref for Lazy {
    type Target = str;

    fn deref(&self) -> &str {
        self.text.get_or_init(|| self.compute())
    }
}

impl<T: Into<Box<str>>> From<T> for Lazy {
    fn from(text: T) -> Self {
        Self {
            text: OnceLock::from(text.into()),
            source: None,
        }
    }
}

impl PartialEq for Lazy {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Lazy {}

impl fmt::Debug for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}
