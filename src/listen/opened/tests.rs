//! Streams that their client ended.

use super::super::frames::Frames;
use super::*;

fn frame(kind: u8, flags: u8, stream: u32) -> Frame {
    let [s, t, r, e] = stream.to_be_bytes();
    let bytes = [0, 0, 0, kind, flags, s, t, r, e];
    Frames::new().next(&mut &bytes[..]).unwrap()
}

/// Whether each of the newest streams was ended, against a plain list.
#[test]
fn it_agrees_with_a_list_of_all_streams() {
    let mut opened = Opened::default();
    let mut ended = std::collections::BTreeSet::new();
    let mut newest: u32 = 1;
    for step in 0..20_000_u32 {
        let dice = step.wrapping_mul(2_654_435_761) >> 16;
        let frame = match dice % 5 {
            0 | 1 => {
                newest += 2 * (1 + dice % 7);
                frame(kind::HEADERS, (dice >> 4) as u8 & flag::END_STREAM, newest)
            }
            2 => frame(
                kind::RST_STREAM,
                0,
                newest.saturating_sub(dice % 40 * 2).max(1),
            ),
            _ => frame(
                kind::DATA,
                flag::END_STREAM,
                newest.saturating_sub(dice % 600 * 2).max(1),
            ),
        };
        opened.follow(&frame);
        let ends = frame.kind == kind::RST_STREAM || frame.has(flag::END_STREAM);
        if ends && frame.stream <= opened.newest && opened.newest - frame.stream < 2 * SPAN {
            ended.insert(frame.stream);
        }
        for stream in (opened.newest.saturating_sub(2 * SPAN - 2).max(1)..=opened.newest).step_by(2)
        {
            if stream % 2 == 1 {
                assert_eq!(
                    opened.is_ended(stream),
                    ended.contains(&stream),
                    "{step} {stream}"
                );
            }
        }
    }
}

#[test]
fn a_stream_that_is_not_a_client_s_is_never_ended() {
    let mut opened = Opened::default();
    for stream in [0, 2, 4] {
        opened.follow(&frame(kind::HEADERS, flag::END_STREAM, stream));
        assert!(!opened.is_ended(stream));
    }
    opened.follow(&frame(kind::RST_STREAM, 0, 9));
    assert!(!opened.is_ended(9), "idle");
}

#[test]
fn the_highest_stream_is_counted_too() {
    let mut opened = Opened::default();
    opened.follow(&frame(kind::HEADERS, flag::END_STREAM, 0x7fff_ffff));
    assert!(opened.is_ended(0x7fff_ffff) && !opened.is_ended(0x7fff_fffd));
}
