//! What an HTTP/2 client allows us to send, by what it said. What was sent is counted by others.

use crate::listen::Broken;
use crate::listen::frames::{Frame, PEEK_SETTINGS};

/// Over the largest h2 says PROTOCOL_ERROR, where RFC 9113, 6.5.2 wants FLOW_CONTROL_ERROR.
const INITIAL_WINDOW_SIZE: u16 = 4;
const LARGEST: u32 = 0x7fff_ffff;

/// The windows of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::listen) struct Windows {
    /// Of a stream that is new.
    pub(in crate::listen) stream: u32,
    /// Of the whole connection, with all that was sent.
    pub(in crate::listen) whole: u64,
}

// === impl Windows ===

impl Windows {
    /// RFC 9113, 6.9.2.
    pub(in crate::listen) const AT_FIRST: Self = Self {
        stream: 65_535,
        whole: 65_535,
    };

    /// Takes in SETTINGS.
    pub(super) fn settle(
        &mut self,
        frame: &Frame,
        settings: impl Iterator<Item = (u16, u32)>,
    ) -> Result<(), Broken> {
        for (setting, value) in settings {
            match setting {
                INITIAL_WINDOW_SIZE if value > LARGEST => return Err(Broken::WINDOW),
                INITIAL_WINDOW_SIZE => self.stream = value,
                _ => {}
            }
        }
        // What is said behind those that are kept may be that there is none.
        if frame.length > PEEK_SETTINGS {
            self.stream = 0;
        }
        Ok(())
    }

    /// Takes in WINDOW_UPDATE.
    pub(super) fn update(&mut self, frame: &Frame) {
        if frame.stream == 0 {
            self.whole += u64::from(frame.word());
        }
    }
}
