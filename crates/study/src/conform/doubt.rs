//! When logs without a mismatch do not show that kernel and model agree.

/// Lines that may be excluded however short the logs are.
const EXCLUDED_AT_LEAST: u64 = 8;

/// Beyond these, one line in so many decisions.
const EXCLUDED_ONE_IN: u64 = 10_000;

/// The same of a kernel in a virtual machine.
const EXCLUDED_AT_LEAST_OF_GUEST: u64 = 40;
const EXCLUDED_ONE_IN_OF_GUEST: u64 = 1_000;

/// Most lines that may be excluded from so many decisions.
///
/// Runs of the built-in patterns exclude 0 to 4 lines of 68,080, and random patterns at most 10 of
/// 155,850 to 315,000 (data/measured/conform-host.toml): 8 and one in 10,000 is twice that or more.
/// A model whose fault-around maps pages that are still being read excludes 54 of the 68,080.
///
/// An emulated disk is fast beside an emulated processor, so that what a fault asks for may arrive
/// within it. Runs of the built-in patterns then exclude up to 26 lines, all of them in one pattern
/// of 1,100 decisions. That much shows nothing of fault-around any more; the same rules are held
/// against it on a machine of its own.
fn most_excluded(decisions: u64, is_of_guest: bool) -> u64 {
    if is_of_guest {
        EXCLUDED_AT_LEAST_OF_GUEST + decisions / EXCLUDED_ONE_IN_OF_GUEST
    } else {
        EXCLUDED_AT_LEAST + decisions / EXCLUDED_ONE_IN
    }
}

/// Why logs of so many decisions, of which so many lines were excluded, do not show that kernel and
/// model agree, although no line differs. The kernel may be that of a virtual machine.
pub(super) fn doubt(decisions: u64, excluded: u64, is_of_guest: bool) -> Option<String> {
    let most = most_excluded(decisions, is_of_guest);
    if decisions == 0 {
        return Some("nothing was compared: neither log holds a decision".to_string());
    }
    (excluded > most).then(|| {
        format!(
            "{excluded} lines were excluded, more than {most} of {decisions} decisions: too much \
             was excluded to say that they agree"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_exclude_is_no_doubt() {
        // Decisions and excluded lines (data/measured/conform-host.toml), the most for a length.
        for (decisions, excluded) in [(68_080, 4), (155_850, 8), (211_192, 10), (61, 2)] {
            assert_eq!(doubt(decisions, excluded, false), None, "{decisions}");
        }
    }

    #[test]
    fn too_much_excluded_is_a_difference() {
        for (decisions, excluded) in [(68_080, 54), (155_850, 54), (1_000, 9)] {
            let doubt = doubt(decisions, excluded, false).unwrap();
            assert!(doubt.contains("too much was excluded"), "{doubt}");
        }
        assert_eq!(doubt(1_000, 8, false), None);
    }

    #[test]
    fn more_may_arrive_within_a_fault_of_a_guest() {
        let of_guest = |decisions, excluded| doubt(decisions, excluded, true);
        assert_eq!(of_guest(1_100, 26), None);
        assert_eq!(of_guest(66_086, 26), None);
        assert!(of_guest(1_100, 42).is_some());
        assert!(of_guest(66_086, 107).is_some());
    }

    #[test]
    fn nothing_compared_is_a_difference() {
        assert!(doubt(0, 0, false).is_some());
        assert_eq!(doubt(1, 0, false), None);
    }
}
