//! 64-bit arithmetic that saturates, and division. It takes a dozen instructions or more on a 32-bit machine: there is one copy of
//! each there.

/// `a` + `b`, at most [`u64::MAX`].
#[cfg_attr(target_pointer_width = "32", inline(never))]
#[cfg_attr(not(target_pointer_width = "32"), inline)]
pub const fn add(a: u64, b: u64) -> u64 {
    a.saturating_add(b)
}

/// `a` - `b`, at least 0.
#[cfg_attr(target_pointer_width = "32", inline(never))]
#[cfg_attr(not(target_pointer_width = "32"), inline)]
pub const fn sub(a: u64, b: u64) -> u64 {
    a.saturating_sub(b)
}

/// `a` times `b`, at most [`u64::MAX`].
#[cfg_attr(target_pointer_width = "32", inline(never))]
#[cfg_attr(not(target_pointer_width = "32"), inline)]
pub const fn mul(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

/// `a / b`, where `b` is not 0: for what is seldom divided.
#[cfg(not(target_pointer_width = "32"))]
#[inline]
pub const fn div(a: u64, b: u64) -> u64 {
    match a.checked_div(b) {
        Some(quotient) => quotient,
        None => u64::MAX,
    }
}

/// `a / b`, where `b` is not 0: for what is seldom divided, bit by bit. The division that comes with the compiler is some
/// times faster and has half a kilobyte, which a program without TCP need not carry.
#[cfg(target_pointer_width = "32")]
#[inline(never)]
pub const fn div(a: u64, b: u64) -> u64 {
    by_bits(a, b)
}

#[cfg(any(target_pointer_width = "32", test))]
const fn by_bits(a: u64, b: u64) -> u64 {
    // The quotient comes in from below as the dividend goes out above.
    let (mut rest, mut bits, mut left) = (0u64, a, u64::BITS);
    while left > 0 {
        // What goes out above the rest counts as well: then the rest is larger than any divisor.
        let over = rest >> 63 == 1;
        rest = rest << 1 | bits >> 63;
        bits <<= 1;
        if over || rest >= b {
            rest = rest.wrapping_sub(b);
            bits |= 1;
        }
        left = left.wrapping_sub(1);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_by_bit_is_the_same_quotient() {
        let numbers =
            [0, 1, 2, 3, 10, 999, 1_000_000, 65_464, u64::from(u32::MAX), 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX];
        for a in numbers {
            for b in numbers {
                if b != 0 {
                    assert_eq!((by_bits(a, b), div(a, b)), (a / b, a / b), "{a} / {b}");
                }
            }
            assert_eq!(by_bits(a, 0), u64::MAX);
        }
        let mut x = 1u64;
        for _ in 0..2000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (a, b) = (x, x.rotate_left(17) >> (x % 64));
            assert_eq!(by_bits(a, b.max(1)), a / b.max(1));
        }
    }
}
