//! What tells a process from a later one with the same number.

/// When a process was started, in clock ticks since boot: field 22 of its `/proc/PID/stat`, whose
/// text is `stat`. `None` where that has no such field.
#[must_use]
pub fn start_ticks(stat: &[u8]) -> Option<u64> {
    // The name of the program is in brackets and may hold anything, also blanks and brackets.
    let behind = stat.iter().rposition(|&byte| byte == b')')?;
    // The bracket ends field 2.
    let field = stat.get(behind..)?.split(|&byte| byte == b' ').nth(20)?;
    str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_may_hold_anything() {
        for name in ["cat", "a b", ") S 1 2", "((", "1)"] {
            let fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
            let stat = format!("77 ({name}) S {}\n", fields.join(" "));
            assert_eq!(start_ticks(stat.as_bytes()), Some(22), "{stat}");
        }
        assert_eq!(start_ticks(b"77 (cat) S 1 2"), None);
        assert_eq!(start_ticks(b""), None);
    }
}
