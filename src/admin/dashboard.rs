//! The files of the dashboard, which are part of the binary.
//!
//! The page makes no external request and needs no build step. The script is one module in several files, in the order
//! of [`SCRIPT`], because only three paths are served without a token.

#[cfg(test)]
mod tests;

/// A file of the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DashboardFile {
    /// The value of `content-type`.
    pub content_type: &'static str,
    /// The body.
    pub body: &'static str,
}

/// The page.
pub const PAGE: DashboardFile = DashboardFile {
    content_type: "text/html; charset=utf-8",
    body: include_str!("dashboard/index.html"),
};

/// The style sheet.
pub const STYLE: DashboardFile = DashboardFile {
    content_type: "text/css; charset=utf-8",
    body: include_str!("dashboard/app.css"),
};

/// The script.
pub const SCRIPT: DashboardFile = DashboardFile {
    content_type: "text/javascript; charset=utf-8",
    body: concat!(
        include_str!("dashboard/dom.js"),
        include_str!("dashboard/format.js"),
        include_str!("dashboard/api.js"),
        include_str!("dashboard/notices.js"),
        include_str!("dashboard/history.js"),
        include_str!("dashboard/state.js"),
        include_str!("dashboard/stream.js"),
        include_str!("dashboard/strip.js"),
        include_str!("dashboard/chart.js"),
        include_str!("dashboard/attention.js"),
        include_str!("dashboard/rules.js"),
        include_str!("dashboard/rule_panel.js"),
        include_str!("dashboard/bans.js"),
        include_str!("dashboard/decisions.js"),
        include_str!("dashboard/client.js"),
        include_str!("dashboard/explain.js"),
        include_str!("dashboard/upstreams.js"),
        include_str!("dashboard/main.js"),
    ),
};
