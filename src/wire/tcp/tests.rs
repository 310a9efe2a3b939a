use super::*;
use crate::wire::testing::{each_cut, each_mutation};
use std::vec;
use std::vec::Vec;

fn block(left: u32, right: u32) -> SackBlock {
    SackBlock { left: SeqNumber(left), right: SeqNumber(right) }
}

fn sack(blocks: &[SackBlock]) -> SackBlocks {
    let mut list = SackBlocks::default();
    for &block in blocks {
        assert!(list.push(block));
    }
    list
}

fn repr(options: Options) -> Repr {
    Repr {
        source_port: 49152,
        destination_port: 80,
        seq: SeqNumber(0xffff_fff0),
        ack: SeqNumber(0x0102_0304),
        flags: Flags::ACK | Flags::PSH,
        window: 0xbeef,
        options,
    }
}

fn bytes(repr: &Repr, payload: &[u8]) -> Vec<u8> {
    let mut buf = [0xee; 60];
    let n = repr.emit([0x12, 0x34], &mut buf).unwrap();
    assert_eq!(n, repr.header_len());
    assert!(buf[n..].iter().all(|&b| b == 0xee));
    [&buf[..n], payload].concat()
}

/// A segment with the options `raw`, padded with zeros (end of list).
fn with_raw_options(raw: &[u8]) -> Vec<u8> {
    let mut wire = bytes(&repr(Options::default()), &[]);
    wire.extend_from_slice(raw);
    wire.resize(wire.len().next_multiple_of(4), 0);
    wire[12] = (wire.len() as u8 / 4) << 4;
    wire.extend_from_slice(b"payload");
    wire
}

fn parse_options(raw: &[u8]) -> Options {
    let wire = with_raw_options(raw);
    let segment = Segment::parse(&wire).unwrap();
    assert_eq!(segment.payload(), b"payload");
    segment.options()
}

const TIMESTAMPS: Option<Timestamps> = Some(Timestamps { value: 0x0102_0304, echo: 0xfffe_fdfc });

fn every_option_set() -> Vec<Options> {
    let mut sets = Vec::new();
    for max_segment_size in [None, Some(1460)] {
        for window_scale in [None, Some(0), Some(14)] {
            for sack_permitted in [false, true] {
                for timestamps in [None, TIMESTAMPS] {
                    for n in 0..=4u32 {
                        let blocks: Vec<_> = (0..n).map(|i| block(i * 100, i * 100 + 50)).collect();
                        sets.push(Options {
                            max_segment_size,
                            window_scale,
                            sack_permitted,
                            timestamps,
                            sack: sack(&blocks),
                        });
                    }
                }
            }
        }
    }
    sets
}

#[test]
fn round_trip_of_every_option_set() {
    for options in every_option_set() {
        let repr = repr(options);
        let wire = bytes(&repr, b"payload");
        let segment = Segment::parse(&wire).unwrap();
        assert!(repr.header_len() <= MAX_HEADER_LEN && repr.header_len().is_multiple_of(4));
        assert_eq!((segment.payload(), segment.checksum()), (&b"payload"[..], [0x12, 0x34]));
        let mut parsed = Repr::parse(&segment);
        let (sent, got) = (options.sack.as_slice(), parsed.options.sack);
        // Blocks that do not fit are left out from the end; what fits is all there.
        assert_eq!(got.as_slice(), &sent[..got.as_slice().len()]);
        if got.as_slice().len() < sent.len() {
            assert!(repr.header_len() + 8 + if got.is_empty() { 4 } else { 0 } > MAX_HEADER_LEN);
        }
        parsed.options.sack = options.sack;
        assert_eq!(parsed, repr);
        assert_eq!(segment.options(), Options::parse(segment.option_bytes()), "the short cut changes nothing");
    }
}

#[test]
fn four_blocks_fit_alone_and_three_beside_timestamps() {
    let blocks = sack(&[block(1, 2), block(3, 4), block(5, 6), block(7, 8)]);
    let alone = Options { sack: blocks, ..Options::default() };
    assert_eq!(alone.emitted_len(), 36);
    let beside = Options { timestamps: TIMESTAMPS, ..alone };
    assert_eq!(beside.emitted_len(), 40);
    let wire = bytes(&repr(beside), &[]);
    let parsed = Segment::parse(&wire).unwrap().options();
    assert_eq!(parsed.sack.as_slice(), &blocks.as_slice()[..3]);
    let mut full = blocks;
    assert!(!full.push(block(9, 10)));
}

#[test]
fn buffer_too_small() {
    let repr = repr(Options { timestamps: TIMESTAMPS, ..Options::default() });
    for n in 0..32 {
        assert_eq!(repr.emit([0; 2], &mut vec![0; n]), Err(Error::NoRoom));
    }
    assert_eq!(repr.emit([0; 2], &mut [0; 32]), Ok(32));
}

#[test]
fn cut_everywhere() {
    let wire = bytes(&repr(Options { max_segment_size: Some(536), timestamps: TIMESTAMPS, ..Options::default() }), b"");
    each_cut(&wire, |cut| assert_eq!(Segment::parse(cut).unwrap_err(), Error::Truncated));
    assert!(Segment::parse(&wire).is_ok());
}

#[test]
fn data_offset_is_checked() {
    let mut wire = bytes(&repr(Options::default()), b"data");
    wire[12] = 0x40;
    assert_eq!(Segment::parse(&wire).unwrap_err(), Error::Malformed);
    wire[12] = 0x70; // 28 bytes of header, 24 there
    assert_eq!(Segment::parse(&wire).unwrap_err(), Error::Truncated);
    wire[12] = 0x60;
    assert!(Segment::parse(&wire).unwrap().payload().is_empty());
    wire[12] = 0x50;
    assert_eq!(Segment::parse(&wire).unwrap().payload(), b"data");
}

#[test]
fn case_c02_wire_window_scale_option() {
    assert_eq!(parse_options(&[3, 3, 7]).window_scale, Some(7));
    assert_eq!(parse_options(&[3, 3, 14]).window_scale, Some(14));
    assert_eq!(parse_options(&[3, 3, 15]).window_scale, Some(14));
    assert_eq!(parse_options(&[3, 3, 255]).window_scale, Some(14));
    // A wrong length: ignored, and what follows is still found.
    assert_eq!(parse_options(&[3, 2, 2, 4, 5, 0xb4]), Options { max_segment_size: Some(1460), ..Options::default() });
    assert_eq!(
        parse_options(&[3, 4, 7, 7, 2, 4, 5, 0xb4]),
        Options { max_segment_size: Some(1460), ..Options::default() }
    );
}

#[test]
fn case_c07_wire_sack_option_lengths() {
    let eight = [0xff, 0xff, 0xff, 0, 0, 0, 1, 0];
    let raw = |len: u8, data: &[u8]| [&[5, len], data].concat();
    assert_eq!(parse_options(&raw(10, &eight)).sack.as_slice(), [block(0xffff_ff00, 0x100)]);
    let four = [eight, eight, eight, eight].concat();
    assert_eq!(parse_options(&raw(34, &four)).sack.as_slice().len(), 4);
    // No block, half a block, and a length beyond the header.
    assert!(parse_options(&raw(2, &[])).sack.is_empty());
    assert!(parse_options(&raw(6, &[0; 4])).sack.is_empty());
    assert!(parse_options(&raw(18, &eight)).sack.is_empty());
}

#[test]
fn bad_option_lengths_end_or_skip() {
    let mss = [2, 4, 5, 0xb4];
    let found = Options { max_segment_size: Some(1460), ..Options::default() };
    for skipped in
        [&[2u8, 3, 9][..], &[4, 3, 0], &[8, 9, 0, 0, 0, 0, 0, 0, 0], &[254, 4, 0, 0], &[2, 6, 1, 1, 1, 1], &[1, 1, 1]]
    {
        assert_eq!(parse_options(&[skipped, &mss].concat()), found);
    }
    for end in [&[0u8][..], &[254, 0], &[254, 1], &[2, 0], &[254, 41], &[2, 255], &[254]] {
        assert_eq!(parse_options(&[&mss[..], end].concat()), found);
        let mut hidden = end.to_vec();
        if end.len() == 2 || end[0] == 0 {
            hidden.extend_from_slice(&mss);
            assert_eq!(parse_options(&hidden), Options::default());
        }
    }
    // An option cut at the end of the header.
    let mut wire = bytes(&repr(Options::default()), &[]);
    wire.extend_from_slice(&[1, 1, 2, 4]);
    wire[12] = 0x60;
    assert_eq!(Segment::parse(&wire).unwrap().options(), Options::default());
}

#[test]
fn mutations_do_no_harm() {
    let blocks = sack(&[block(1, 2), block(3, 4)]);
    let options = Options {
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: TIMESTAMPS,
        sack: blocks,
        ..Options::default()
    };
    each_mutation(&bytes(&repr(options), b"x"), |wire| {
        if let Ok(segment) = Segment::parse(wire) {
            assert_eq!(segment.header_len() + segment.payload().len(), wire.len());
            let options = segment.options();
            assert!(options.window_scale.is_none_or(|shift| shift <= MAX_WINDOW_SCALE));
            assert!(segment.option_iter().count() <= 40);
        }
    });
}

#[test]
fn case_c16_wire_urgent_pointer_changes_nothing() {
    let mut repr = repr(Options::default());
    let plain = bytes(&repr, b"ten bytes!");
    let expect = Segment::parse(&plain).unwrap().payload().to_vec();
    for flags in [Flags::ACK, Flags::ACK | Flags::URG, Flags::SYN | Flags::URG, Flags::ACK | Flags::FIN | Flags::URG] {
        for pointer in [0u16, 1, 10, 11, 65535] {
            repr.flags = flags;
            let mut wire = bytes(&repr, b"ten bytes!");
            wire[18..20].copy_from_slice(&pointer.to_be_bytes());
            let segment = Segment::parse(&wire).unwrap();
            assert_eq!(segment.payload(), expect);
            assert_eq!(Repr::parse(&segment), repr);
        }
    }
}

#[test]
fn sequence_space() {
    let mut repr = repr(Options::default());
    for (flags, expect) in
        [(Flags::ACK, 3), (Flags::SYN, 4), (Flags::FIN | Flags::ACK, 4), (Flags::SYN | Flags::FIN, 5)]
    {
        repr.flags = flags;
        assert_eq!(Segment::parse(&bytes(&repr, b"abc")).unwrap().seq_len(), expect);
    }
}

#[test]
fn sequence_numbers_wrap() {
    let before = SeqNumber(0xffff_fff0);
    let after = before + 0x20;
    assert_eq!(after, SeqNumber(0x10));
    assert!(before < after);
    assert!(after > before);
    assert!(before <= SeqNumber(0xffff_fff0));
    assert!(after >= before);
    assert_eq!((after.since(before), after.offset_from(before), before.offset_from(after)), (0x20, 0x20, -0x20));
    assert_eq!((before.max(after), before.min(after)), (after, before));
    assert_eq!(after - 0x20, before);
    let mut moving = before;
    moving += 0x20;
    moving -= 1;
    assert_eq!(moving, SeqNumber(0xf));
    assert!(SeqNumber(0).is_within(before, 17) && !SeqNumber(0).is_within(before, 16));
    assert!(before.is_within(before, 1) && !before.is_within(before, 0));
    assert!(SeqNumber(0) < SeqNumber(0x7fff_ffff) && SeqNumber(0x8000_0001) < SeqNumber(0));
}

#[test]
fn quoted_front() {
    let wire = bytes(&repr(Options::default()), &[]);
    let quoted = Quoted { source_port: 49152, destination_port: 80, seq: SeqNumber(0xffff_fff0) };
    assert_eq!(Quoted::parse(&wire[..8]), Ok(quoted));
    each_cut(&wire[..8], |cut| assert_eq!(Quoted::parse(cut), Err(Error::Truncated)));
}
