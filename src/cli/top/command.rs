//! What `lockgate top` asks of the user and of the gateway.

use serde_json::Value;

/// A key, independent of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopKey {
    Char(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Enter,
    Esc,
    Backspace,
    CtrlC,
}

/// What a key leads to outside the model.
#[derive(Clone, Debug, PartialEq)]
pub enum TopCommand {
    /// End the program.
    Quit,
    /// Read what the screen shows.
    Refresh,
    /// Change something in the gateway.
    Change(GatewayChange),
}

/// A change of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum GatewayChange {
    /// Unban keys, and exempt an address if there is one.
    Release {
        /// What is released, for the result.
        name: String,
        /// The bans.
        bans: Vec<BanTarget>,
        /// The address to exempt for an hour.
        exempt: Option<String>,
    },
    /// Ban a key by hand.
    Ban {
        /// What is banned.
        target: BanTarget,
        /// As in gateway.toml.
        duration: String,
    },
    /// Take a change back.
    Undo(UndoneChange),
    /// Reload the configuration.
    Reload,
}

/// A key of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanTarget {
    /// The rule.
    pub rule: String,
    /// The key as listed.
    pub key: String,
    /// Identifies a key whose text is hashed or cut. `None` if it is unknown.
    pub id: Option<String>,
}

/// What takes a change back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UndoneChange {
    /// Removed bans, as the gateway returned them.
    pub restored: Vec<Value>,
    /// An address whose exemption ends.
    pub unexempted: Option<String>,
    /// A ban that is removed.
    pub unbanned: Option<BanTarget>,
}

/// The result of a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeResult {
    /// What has changed, and what has failed.
    pub text: String,
    /// `None` if there is nothing to take back.
    pub undo: Option<UndoneChange>,
}

/// What is asked in the line above the key help.
#[derive(Clone, Debug, PartialEq)]
pub enum TopPrompt {
    /// A question that takes `y` or `n`.
    Confirm {
        /// The question.
        question: String,
        /// What `y` does.
        change: GatewayChange,
    },
    /// The duration of a ban by hand.
    Duration {
        /// What is banned.
        target: BanTarget,
        /// What was typed.
        text: String,
    },
    /// An address, a key, a request id or a rule to find.
    Find(String),
}
