//! HTTP/2 to an origin: one connection a core and server carries many requests at once.
//!
//! `trunk` is a connection, `trunks` are all to one server, `request` and `answer` translate heads,
//! `upload` and `download` carry bodies, `exchange` is one request. As in HTTP/1, whoever waits for
//! an answer drives both directions of its stream; only the frames of a connection have a task.
//! Nothing here chooses a server, and nothing is sent twice unless the origin refused it unread.

mod answer;
mod download;
mod exchange;
mod request;
mod trunk;
mod trunks;
mod upload;

pub(super) use exchange::Exchange;
pub(super) use trunk::Trunk;
pub(super) use trunks::{Seat, Trunks};
pub(super) use upload::Upload;
