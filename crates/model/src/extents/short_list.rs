//! Lists that are short in most chunks.

use std::ops::Range;

use smallvec::SmallVec;

/// A list of small things, which takes no memory of its own with up to four.
pub type ShortList<T> = SmallVec<[T; 4]>;

/// Puts `made` in the place of `replaced`.
#[inline]
pub fn replace<T: Copy>(list: &mut ShortList<T>, replaced: Range<usize>, made: &[T]) {
    let common = replaced.len().min(made.len());
    list[replaced.start..replaced.start + common].copy_from_slice(&made[..common]);
    if made.len() > common {
        list.insert_from_slice(replaced.end, &made[common..]);
    } else if replaced.len() > common {
        list.drain(replaced.start + common..replaced.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_as_a_spliced_vector() {
        for length in 0..8_u8 {
            for start in 0..=length {
                for end in start..=length {
                    for made in 0..6_u8 {
                        let mut list: ShortList<u8> = (0..length).collect();
                        let mut vector = list.to_vec();
                        let new: Vec<u8> = (100..100 + made).collect();
                        let range = usize::from(start)..usize::from(end);
                        vector.splice(range.clone(), new.iter().copied());
                        replace(&mut list, range, &new);
                        assert_eq!(list[..], vector[..], "{length} {start}..{end} {made}");
                    }
                }
            }
        }
    }
}
