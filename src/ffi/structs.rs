//! Structs that C and the library hand each other. Each begins with its own size, so that it can grow at the end: an
//! older program passes a shorter one, whose missing fields are as after `lace_…_init`; a newer one passes a longer
//! one, which is accepted as long as what this library does not know is zero.

use super::results::{LACE_EFAULT, LACE_EINVAL, LACE_OK};

/// No struct of this interface will ever be as long: a size beyond it is an uninitialised one.
const MAX_SIZE: usize = 4096;

/// A struct with its size in front.
///
/// # Safety
/// The type is `repr(C)`, its first field is a `u32` with the size, and all bytes zero, as well as any bytes of a
/// valid value's front followed by zeros, are a valid value.
pub unsafe trait Sized32: Copy {
    /// The size it had when it first was released: frozen.
    const MIN: usize;
    /// Sets what is not zero in a fresh one, if there is such a thing.
    const PRESET: Option<fn(&mut Self)> = None;
    /// A fresh one, but for its size.
    fn fresh() -> Self {
        // SAFETY: that is a value, by the contract of this trait.
        let mut value = unsafe { core::mem::zeroed() };
        if let Some(set) = Self::PRESET {
            set(&mut value);
        }
        value
    }
}

/// The size field of whatever `p` points to, which was `min` bytes when it first was released.
fn size_at(p: *const u8, min: usize) -> Result<usize, i32> {
    if p.is_null() {
        return Err(LACE_EFAULT);
    }
    // SAFETY: not null, and the caller of the C function vouches that it points to a struct that begins with a `u32`.
    let size = unsafe { p.cast::<u32>().read_unaligned() } as usize;
    if (min..=MAX_SIZE).contains(&size) { Ok(size) } else { Err(LACE_EINVAL) }
}

/// `lace_…_init`: sets up a struct of `size` bytes.
pub fn init<T: Sized32>(to: *mut T, size: usize) -> i32 {
    if T::PRESET.is_none() {
        // SAFETY: of no bytes there are none.
        return unsafe { set_up(to.cast::<u8>(), size, T::MIN, core::ptr::dangling(), 0) };
    }
    let value = T::fresh();
    // SAFETY: `value` has the size of its type.
    unsafe { set_up(to.cast::<u8>(), size, T::MIN, (&raw const value).cast::<u8>(), size_of::<T>()) }
}

/// `init` for every type: this and the two below are in the text once.
///
/// # Safety
/// `value` has `len` bytes; the caller of the C function vouches for the `size` bytes at `to`.
#[inline(never)]
unsafe fn set_up(to: *mut u8, size: usize, min: usize, value: *const u8, len: usize) -> i32 {
    if to.is_null() {
        return LACE_EFAULT;
    }
    if !(min..=MAX_SIZE).contains(&size) {
        return LACE_EINVAL;
    }
    // SAFETY: the caller gives `size` bytes; no more are written, and the value lies on the library's stack.
    unsafe {
        to.write_bytes(0, size);
        core::ptr::copy_nonoverlapping(value, to, size.min(len));
        to.cast::<u32>().write_unaligned(size as u32);
    }
    LACE_OK
}

/// Lends a copy of a struct to `work`.
pub fn with<T: Sized32, R>(from: *const T, work: impl FnOnce(&T) -> Result<R, i32>) -> Result<R, i32> {
    let mut value = T::fresh();
    // SAFETY: `value` has the size of its type; by the contract of `Sized32` the result is a value.
    unsafe { take(from.cast::<u8>(), T::MIN, (&raw mut value).cast::<u8>(), size_of::<T>())? };
    work(&value)
}

/// Takes a copy of a struct.
pub fn read<T: Sized32>(from: *const T) -> Result<T, i32> {
    with(from, |value| Ok(*value))
}

/// # Safety
/// `value` has `len` bytes; the caller of the C function vouches for the struct at `from`.
#[inline(never)]
unsafe fn take(from: *const u8, min: usize, value: *mut u8, len: usize) -> Result<(), i32> {
    let size = size_at(from, min)?;
    let known = size.min(len);
    for at in known..size {
        // SAFETY: within the `size` bytes that the struct says it has.
        if unsafe { from.add(at).read() } != 0 {
            return Err(LACE_EINVAL);
        }
    }
    // SAFETY: `known` bytes are readable there and writable here.
    unsafe { core::ptr::copy_nonoverlapping(from, value, known) };
    Ok(())
}

/// The same where NULL stands for a fresh one.
pub fn read_or_fresh<T: Sized32>(from: *const T) -> Result<T, i32> {
    if from.is_null() { Ok(T::fresh()) } else { read(from) }
}

/// Fills in a struct that the caller has initialised: as many bytes as it has, its size left alone.
pub fn write<T: Sized32>(to: *mut T, value: &T) -> Result<(), i32> {
    // SAFETY: `value` has the size of its type.
    unsafe { give(to.cast::<u8>(), T::MIN, (&raw const *value).cast::<u8>(), size_of::<T>()) }
}

/// # Safety
/// `value` has `len` bytes; the caller of the C function vouches for the struct at `to`.
#[inline(never)]
unsafe fn give(to: *mut u8, min: usize, value: *const u8, len: usize) -> Result<(), i32> {
    let size = size_at(to, min)?;
    // SAFETY: the struct has `size` bytes, of which those behind its size are written; `value` is the library's own.
    unsafe { core::ptr::copy_nonoverlapping(value.add(4), to.add(4), size.min(len) - 4) };
    Ok(())
}

/// Whether a struct could be filled in.
pub fn writable<T: Sized32>(to: *mut T) -> Result<(), i32> {
    size_at(to.cast::<u8>(), T::MIN).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(C)]
    struct Thing {
        size: u32,
        old: u32,
        new: u32,
    }
    // SAFETY: integers only, the size in front.
    unsafe impl Sized32 for Thing {
        const MIN: usize = 8;
        const PRESET: Option<fn(&mut Self)> = Some(|thing| (thing.old, thing.new) = (1, 2));
    }

    #[test]
    fn structs_grow_at_the_end() {
        let mut t = Thing { size: 9, old: 9, new: 9 };
        assert_eq!(init(&mut t, 12), 0);
        assert_eq!(t, Thing { size: 12, old: 1, new: 2 });
        t.old = 7;
        assert_eq!(read(&t), Ok(Thing { size: 12, old: 7, new: 2 }));
        // A program of the first version.
        let mut t = Thing { size: 0, old: 0, new: 99 };
        assert_eq!(init(&mut t, 8), 0);
        assert_eq!(t, Thing { size: 8, old: 1, new: 99 });
        assert_eq!(read(&t), Ok(Thing { size: 8, old: 1, new: 2 }));
        write(&mut t, &Thing { size: 0, old: 5, new: 6 }).unwrap();
        assert_eq!(t, Thing { size: 8, old: 5, new: 99 });
        // A program of a later version.
        let mut long = [Thing { size: 9, old: 9, new: 9 }; 2];
        assert_eq!(init(long.as_mut_ptr(), 24), 0);
        assert_eq!(long, [Thing { size: 24, old: 1, new: 2 }, Thing { size: 0, old: 0, new: 0 }]);
        assert_eq!(read(long.as_ptr()), Ok(Thing { size: 24, old: 1, new: 2 }));
        long[1].new = 1;
        assert_eq!(read(long.as_ptr()), Err(LACE_EINVAL));
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let mut t = Thing { size: 0, old: 3, new: 4 };
        assert_eq!(init(core::ptr::null_mut::<Thing>(), 12), LACE_EFAULT);
        for size in [0, 7, 4097, usize::MAX] {
            assert_eq!(init(&mut t, size), LACE_EINVAL);
        }
        assert_eq!(t, Thing { size: 0, old: 3, new: 4 });
        assert_eq!(read(core::ptr::null::<Thing>()), Err(LACE_EFAULT));
        for size in [0, 7, 4097, u32::MAX] {
            t.size = size;
            assert_eq!(read(&t), Err(LACE_EINVAL));
            assert_eq!(write(&mut t, &Thing::fresh()), Err(LACE_EINVAL));
        }
    }
}
