//! A table of values named by an index and a generation, so that a stale name finds nothing. The handles of the C ABI
//! are made of these; their kind tags are for `ffi`.

#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

/// One place of a table.
#[derive(Clone, Debug)]
pub struct Slot<T> {
    generation: u16,
    value: Option<T>,
}

impl<T> Slot<T> {
    /// A free place.
    pub const EMPTY: Slot<T> = Slot { generation: 1, value: None };

    /// The same, made where it is to lie: the constant is copied from as many bytes of the text as it has.
    #[inline]
    pub fn empty() -> Slot<T> {
        Slot { generation: 1, value: None }
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Slot::EMPTY
    }
}

/// The name of a value: valid from its insertion to its removal. After 65535 removals from one place a name comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Position in the table.
    pub index: u16,
    /// Never 0.
    pub generation: u16,
}

/// A table over places that the caller owns. At most 65536 of them are used.
#[derive(Debug)]
pub struct Slots<'s, T> {
    slots: &'s mut [Slot<T>],
    /// Places from here on are free: nothing need be looked for there.
    end: usize,
}

impl<'s, T> Slots<'s, T> {
    /// A table over `slots`; what they hold stays.
    pub fn new(slots: &'s mut [Slot<T>]) -> Self {
        let end = slots.iter().rposition(|slot| slot.value.is_some()).map_or(0, |last| last.saturating_add(1));
        Slots { slots, end }
    }

    /// Number of places.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Places from this one on are free.
    pub fn used(&self) -> usize {
        self.end
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.slots.iter().filter(|slot| slot.value.is_some()).count()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.value.is_none())
    }

    /// The name the next insertion would get; `None` when the table is full.
    pub fn vacant(&self) -> Option<Key> {
        let (index, slot) = self.slots.iter().enumerate().find(|(_, slot)| slot.value.is_none())?;
        Some(Key { index: u16::try_from(index).ok()?, generation: slot.generation })
    }

    /// Puts `value` in the lowest free place. The value comes back when there is none.
    pub fn insert(&mut self, value: T) -> Result<Key, T> {
        let Some(key) = self.vacant() else {
            return Err(value);
        };
        match self.slots.get_mut(usize::from(key.index)) {
            Some(slot) => {
                slot.value = Some(value);
                self.end = self.end.max(usize::from(key.index).saturating_add(1));
                Ok(key)
            }
            None => Err(value),
        }
    }

    /// The value named `key`.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(usize::from(key.index))?;
        if slot.generation == key.generation { slot.value.as_ref() } else { None }
    }

    /// The value named `key`.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(usize::from(key.index))?;
        if slot.generation == key.generation { slot.value.as_mut() } else { None }
    }

    /// Takes the value named `key` out; its name finds nothing from now on.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(usize::from(key.index))?;
        if slot.generation != key.generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = match slot.generation.wrapping_add(1) {
            0 => 1,
            next => next,
        };
        while let Some(last) = self.end.checked_sub(1)
            && self.slots.get(last).is_some_and(|slot| slot.value.is_none())
        {
            self.end = last;
        }
        Some(value)
    }

    /// The value at position `index`, whatever its generation, with its name.
    #[inline]
    pub fn at(&self, index: usize) -> Option<(Key, &T)> {
        let slot = self.slots.get(index)?;
        let key = Key { index: u16::try_from(index).ok()?, generation: slot.generation };
        slot.value.as_ref().map(|value| (key, value))
    }

    /// The value at `index`, whatever its generation.
    #[inline]
    pub fn at_mut(&mut self, index: usize) -> Option<(Key, &mut T)> {
        let slot = self.slots.get_mut(index)?;
        let key = Key { index: u16::try_from(index).ok()?, generation: slot.generation };
        Some((key, slot.value.as_mut()?))
    }

    /// The values with their names, by position.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().take(self.end).enumerate().filter_map(|(index, slot)| {
            let value = slot.value.as_ref()?;
            Some((Key { index: index as u16, generation: slot.generation }, value))
        })
    }

    /// The values with their names, by position.
    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.slots.iter_mut().take(self.end).enumerate().filter_map(|(index, slot)| {
            let value = slot.value.as_mut()?;
            Some((Key { index: index as u16, generation: slot.generation }, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_name_is_good_until_its_value_is_removed() {
        let mut store = [const { Slot::EMPTY }; 2];
        let mut table = Slots::new(&mut store);
        let a = table.insert("a").unwrap();
        let b = table.insert("b").unwrap();
        assert_ne!(a.index, b.index);
        assert_eq!(table.insert("c"), Err("c"));
        assert_eq!((table.get(a), table.get(b)), (Some(&"a"), Some(&"b")));
        assert_eq!(table.remove(a), Some("a"));
        assert_eq!(table.get(a), None);
        assert_eq!(table.remove(a), None);
        let c = table.insert("c").unwrap();
        assert_eq!(c.index, a.index);
        assert_ne!(c.generation, a.generation);
        assert_eq!(table.get(a), None);
        assert_eq!(table.get_mut(a), None);
        assert_eq!(table.remove(a), None);
        *table.get_mut(c).unwrap() = "d";
        assert_eq!(table.get(c), Some(&"d"));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn generations_come_round_without_zero() {
        let mut store = [Slot::EMPTY];
        let mut table = Slots::new(&mut store);
        let first = table.insert(0u32).unwrap();
        assert_eq!(first.generation, 1);
        table.remove(first);
        for round in 2..=65_536u32 {
            let key = table.insert(round).unwrap();
            assert_ne!(key.generation, 0);
            assert_eq!(table.get(first).is_some(), key.generation == first.generation);
            assert_eq!(u32::from(key.generation), if round == 65_536 { 1 } else { round });
            table.remove(key);
        }
    }

    #[test]
    fn names_from_nowhere_find_nothing() {
        let mut store = [Slot::EMPTY, Slot::EMPTY];
        let mut table: Slots<'_, u8> = Slots::new(&mut store);
        let key = table.insert(7).unwrap();
        for index in [0, 1, 2, u16::MAX] {
            for generation in [0, 1, 2, u16::MAX] {
                let probe = Key { index, generation };
                assert_eq!(table.get(probe).is_some(), probe == key);
            }
        }
        assert!(table.at_mut(0).is_some());
        assert!(table.at_mut(1).is_none());
        assert!(table.at_mut(9).is_none());
    }

    #[test]
    fn iteration_gives_names_that_work() {
        let mut store = [const { Slot::EMPTY }; 4];
        let mut table = Slots::new(&mut store);
        let keys: Vec<Key> = (0..4u8).map(|n| table.insert(n).unwrap()).collect();
        table.remove(keys[1]);
        let listed: Vec<(Key, u8)> = table.iter().map(|(key, n)| (key, *n)).collect();
        assert_eq!(listed, [(keys[0], 0), (keys[2], 2), (keys[3], 3)]);
        for (_, n) in table.iter_mut() {
            *n += 10;
        }
        assert_eq!(table.get(keys[3]), Some(&13));
        assert_eq!(table.vacant(), Some(Key { index: 1, generation: 2 }));
        assert!(!table.is_empty());
    }
}
