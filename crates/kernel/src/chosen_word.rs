//! Settings of the kernel that show what could be set, and which of that is.

/// The word in brackets: the one that is set, of those that could be.
pub(crate) fn selected_word(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_word_is_in_brackets() {
        assert_eq!(selected_word("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(selected_word("nothing"), None);
    }
}
