//! The layers into which the actions of a tick are summed, as in the dashboard.

/// A layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionLayer {
    Forwarded,
    Shadowed,
    Blocked,
    Delayed,
    Challenged,
    /// Errors that the gateway itself generated.
    Other,
}

// === impl ActionLayer ===

impl ActionLayer {
    /// All layers in the shown order.
    pub const ALL: [Self; 6] = [
        Self::Forwarded,
        Self::Shadowed,
        Self::Blocked,
        Self::Delayed,
        Self::Challenged,
        Self::Other,
    ];

    /// The layer of an action of the API.
    pub fn of(action: &str) -> Self {
        match action {
            "shadow" | "divert" => Self::Shadowed,
            "block" | "close" => Self::Blocked,
            "delay" | "tarpit" => Self::Delayed,
            "challenge" => Self::Challenged,
            "own" | "refuse" => Self::Other,
            _ => Self::Forwarded,
        }
    }

    /// The layer in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forwarded => "forwarded",
            Self::Shadowed => "shadowed",
            Self::Blocked => "blocked",
            Self::Delayed => "delayed",
            Self::Challenged => "challenged",
            Self::Other => "other",
        }
    }

    /// Whether a rule mitigated these requests.
    pub const fn is_mitigated(self) -> bool {
        !matches!(self, Self::Forwarded | Self::Other)
    }
}
