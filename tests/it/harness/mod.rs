//! A gateway, an origin and clients, so that a test reads as a sentence:
//! `gateway.client().from("203.0.113.7").post("/login").times(6).last_is(429)`.

mod challenge;
mod client;
mod curl;
mod folder;
mod gateway;
mod h2;
mod log_line;
mod origin;
mod process;
mod socket;
mod stage;
mod streams;
mod talk;
mod terminal;
mod terminal_screen;
mod wire;

pub use challenge::Challenge;
pub use client::{Answer, Client};
pub use curl::upload_with_curl;
pub use folder::Folder;
pub use gateway::Running;
pub use h2::{END, Frames, Heard, PADDED, WHOLE, block, next_frame, status, word};
pub use origin::{Origin, Seen};
pub use process::{Process, wait_until};
pub use socket::{Echo, PUSHED};
pub use stage::{Authority, Call, Stage, server_of};
pub use talk::{Talk, Told, fields, run};
pub use terminal::Terminal;
pub use wire::Wire;
