//! Netascii (RFC 764, as RFC 1350 §1 takes it): lines of text on the wire end in CR LF, and a CR that ends no line is
//! CR NUL. Here a line ends in LF. Pairs may be split between two blocks, so both directions keep a state.

const CR: u8 = b'\r';
const LF: u8 = b'\n';

/// What a conversion came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Bytes of the input used up.
    pub used: usize,
    /// Bytes of the output filled.
    pub made: usize,
}

/// From the wire to lines. A CR before anything but LF and NUL is taken as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoder {
    cr: bool,
}

impl Decoder {
    /// Whether a CR waits for what follows it; at the end of the file it stands for itself.
    pub fn has_rest(&self) -> bool {
        self.cr
    }

    /// Converts as much as `out` has room for.
    pub fn convert(&mut self, input: &[u8], out: &mut [u8]) -> Converted {
        let mut done = Converted { used: 0, made: 0 };
        for slot in out {
            let mut byte = None;
            while byte.is_none() {
                let Some(next) = input.get(done.used).copied() else { return done };
                match (self.cr, next) {
                    (true, LF) => byte = Some(LF),
                    (true, 0) => byte = Some(CR),
                    (true, _) => {
                        // Not a pair: the CR goes out, the byte is looked at again.
                        byte = Some(CR);
                        self.cr = false;
                        break;
                    }
                    (false, CR) => {}
                    (false, other) => byte = Some(other),
                }
                self.cr = byte.is_none();
                done.used = done.used.wrapping_add(1);
            }
            *slot = byte.unwrap_or(CR);
            done.made = done.made.wrapping_add(1);
        }
        done
    }
}

/// From lines to the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoder {
    /// The second byte of a pair whose first is out.
    second: Option<u8>,
}

impl Encoder {
    /// Converts as much as `out` has room for.
    pub fn convert(&mut self, input: &[u8], out: &mut [u8]) -> Converted {
        let mut done = Converted { used: 0, made: 0 };
        for slot in out {
            if let Some(second) = self.second.take() {
                *slot = second;
            } else {
                let Some(next) = input.get(done.used).copied() else { return done };
                done.used = done.used.wrapping_add(1);
                self.second = match next {
                    LF => Some(LF),
                    CR => Some(0),
                    _ => None,
                };
                *slot = if next == LF { CR } else { next };
            }
            done.made = done.made.wrapping_add(1);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// Converts in pieces of at most `piece` bytes of input and `room` bytes of output.
    fn decode(input: &[u8], piece: usize, room: usize) -> Vec<u8> {
        let mut d = Decoder::default();
        let mut all = Vec::new();
        for part in input.chunks(piece) {
            let mut at = 0;
            while at < part.len() {
                let mut out = vec![0; room];
                let c = d.convert(&part[at..], &mut out);
                assert!(c.used + c.made > 0);
                all.extend_from_slice(&out[..c.made]);
                at += c.used;
            }
        }
        if d.has_rest() {
            all.push(b'\r');
        }
        all
    }

    fn encode(input: &[u8], piece: usize, room: usize) -> Vec<u8> {
        let mut e = Encoder::default();
        let mut all = Vec::new();
        for part in input.chunks(piece) {
            let mut at = 0;
            loop {
                let mut out = vec![0; room];
                let c = e.convert(&part[at..], &mut out);
                if c.made == 0 {
                    break;
                }
                all.extend_from_slice(&out[..c.made]);
                at += c.used;
            }
        }
        all
    }

    #[test]
    fn pairs_split_anywhere() {
        let wire = b"abcdefg\r\nuvwxyz\r\0\r\n\r\0\0x\rq\r\r\n";
        for piece in 1..10 {
            for room in 1..10 {
                assert_eq!(decode(wire, piece, room), b"abcdefg\nuvwxyz\r\n\r\0x\rq\r\n", "{piece} {room}");
            }
        }
        assert_eq!(decode(b"end\r", 2, 2), b"end\r");
        let text = b"a\nb\r\nc\r\rd\n\n";
        for piece in 1..6 {
            for room in 1..6 {
                let wire = encode(text, piece, room);
                assert_eq!(wire, b"a\r\nb\r\0\r\nc\r\0\r\0d\r\n\r\n");
                assert_eq!(decode(&wire, piece, room), text);
            }
        }
    }
}
