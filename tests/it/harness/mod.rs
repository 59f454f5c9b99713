//! A gateway, an origin and clients, so that a test reads as a sentence:
//! `gateway.client().from("203.0.113.7").post("/login").times(6).last_is(429)`.

mod client;
mod folder;
mod gateway;
mod origin;

pub use client::{Answer, Client};
pub use folder::Folder;
pub use gateway::Running;
pub use origin::{Origin, Seen};
