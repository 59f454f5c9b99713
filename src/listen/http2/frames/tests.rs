//! Frames in all kinds of pieces.

use super::*;

fn bytes(length: u32, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = length.to_be_bytes();
    let [s, t, r, e] = stream.to_be_bytes();
    [&[a, b, c, kind, flags, s, t, r, e], payload].concat()
}

/// What is seen of `bytes` that come in pieces of `size`.
fn seen(bytes: &[u8], size: usize) -> (Vec<FrameHeader>, bool) {
    let mut frames = FrameScanner::new();
    let mut seen = Vec::new();
    for mut piece in bytes.chunks(size) {
        while let Some(frame) = frames.next(&mut piece) {
            seen.push(frame);
        }
        assert!(piece.is_empty());
    }
    (seen, frames.is_between())
}

#[test]
fn frames_are_recognized_however_they_are_split() {
    let all = [
        bytes(0, kind::SETTINGS, 0, 0, b""),
        bytes(40, kind::HEADERS, 5, 1, &[7; 40]),
        bytes(4, kind::WINDOW_UPDATE, 0, 0x8000_0001, &[0, 0, 1, 2]),
        bytes(8, kind::GOAWAY, 0, 0, &[0, 0, 0, 9, 0, 0, 0, 11]),
        bytes(3, kind::DATA, flag::PADDED, 1, &[2, 0, 0]),
        bytes(0, kind::DATA, flag::END_STREAM, 1, b""),
    ]
    .concat();
    let (whole, between) = seen(&all, all.len());
    let kinds: Vec<u8> = whole.iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [4, 1, 8, 7, 0, 0]);
    assert!(between);
    assert_eq!((whole[1].length, whole[1].stream), (40, 1));
    assert_eq!((whole[2].word(), whole[2].stream), (0x102, 1));
    assert_eq!((whole[3].word(), whole[3].second_word()), (9, 11));
    assert!(whole[4].is_blank() && whole[5].is_blank() && !whole[1].is_blank());
    assert!(whole[5].has(flag::END_STREAM));
    for size in 1..all.len() {
        assert_eq!(seen(&all, size), (whole.clone(), true), "{size}");
    }
}

#[test]
fn a_frame_can_begin_only_after_the_previous_one_ends() {
    let all = bytes(20, kind::DATA, 0, 1, &[0; 20]);
    for end in 1..all.len() {
        assert!(!seen(&all[..end], 5).1, "{end}");
    }
    assert!(seen(&all, 5).1);
}

#[test]
fn settings_are_read_however_they_are_split() {
    let payload = [0, 4, 0x80, 0, 0, 1, 0, 5, 0, 0, 64, 0];
    let all = bytes(12, kind::SETTINGS, 0, 0, &payload);
    for size in 1..=all.len() {
        let mut frames = FrameScanner::new();
        let seen = all
            .chunks(size)
            .filter_map(|mut piece| frames.next(&mut piece));
        let frame = seen.last().unwrap();
        let settings: Vec<_> = frames.settings(&frame).collect();
        assert_eq!(settings, [(4, 0x8000_0001), (5, 16_384)]);
    }
}

#[test]
fn the_remaining_bytes_of_a_frame_are_known() {
    let mut frames = FrameScanner::new();
    let all = bytes(20, kind::DATA, 0, 1, &[0; 12]);
    assert!(frames.next(&mut &all[..]).is_some());
    assert!(frames.next(&mut &all[17..]).is_none());
    assert_eq!(frames.remaining(), 8);
}

fn short_frame(kind: u8, flags: u8, stream: u32) -> FrameHeader {
    let [s, t, r, e] = stream.to_be_bytes();
    let bytes = [0, 0, 0, kind, flags, s, t, r, e];
    FrameScanner::new().next(&mut &bytes[..]).unwrap()
}

/// Whether each of the newest streams was ended, against a plain list.
#[test]
fn closed_streams_agree_with_a_list_of_all_streams() {
    let mut opened = ClosedStreams::default();
    let mut ended = std::collections::BTreeSet::new();
    let mut newest: u32 = 1;
    for step in 0..20_000_u32 {
        let dice = step.wrapping_mul(2_654_435_761) >> 16;
        let frame = match dice % 5 {
            0 | 1 => {
                newest += 2 * (1 + dice % 7);
                short_frame(kind::HEADERS, (dice >> 4) as u8 & flag::END_STREAM, newest)
            }
            2 => short_frame(
                kind::RST_STREAM,
                0,
                newest.saturating_sub(dice % 40 * 2).max(1),
            ),
            _ => short_frame(
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
fn streams_not_opened_by_the_client_are_never_closed() {
    let mut opened = ClosedStreams::default();
    for stream in [0, 2, 4] {
        opened.follow(&short_frame(kind::HEADERS, flag::END_STREAM, stream));
        assert!(!opened.is_ended(stream));
    }
    opened.follow(&short_frame(kind::RST_STREAM, 0, 9));
    assert!(!opened.is_ended(9), "idle");
}

#[test]
fn the_highest_stream_id_is_counted_too() {
    let mut opened = ClosedStreams::default();
    opened.follow(&short_frame(kind::HEADERS, flag::END_STREAM, 0x7fff_ffff));
    assert!(opened.is_ended(0x7fff_ffff) && !opened.is_ended(0x7fff_fffd));
}

#[test]
fn a_pseudo_header_at_the_beginning_of_a_block_is_recognized() {
    for (flags, block, is_pseudo) in [
        (0, &b"\x84"[..], true),
        (0, b"\x8f", false),
        (0, b"\xbe", false),
        // A literal with a name of the static table, and one with its own name.
        (0, b"\x44\x01/", true),
        (0, b"\x0f\x01/", false),
        (0, b"\x00\x05:path\x01/", true),
        (0, b"\x10\x84\xb9\x58\xd3\x3f", true),
        (0, b"\x40\x03x-a\x011", false),
        (0, b"\x3f\xe1\x1f", false),
        (0, b"\x00", false),
        (0, b"", false),
        (flag::PADDED, b"\x01\x84\x00", true),
        (flag::PRIORITY, b"\x00\x00\x00\x00\x09\x84", true),
        (flag::PADDED | flag::PRIORITY, b"\x02\x00", false),
    ] {
        let length = u32::try_from(block.len()).unwrap();
        let frame = bytes(length, kind::HEADERS, flags, 1, block);
        for size in 1..=frame.len() {
            let (frames, _) = seen(&frame, size);
            assert_eq!(
                frames[0].begins_with_pseudo_header(),
                is_pseudo,
                "{flags} {block:?}"
            );
        }
    }
}
