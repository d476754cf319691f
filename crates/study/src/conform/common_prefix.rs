//! The common prefix of two logs.

use filemap_core::decision::{Decision, ReadaheadSnapshot};
use filemap_core::units::PageIndex;
use filemap_job::ShownKinds;

use super::in_flight::InFlightPages;

/// The common prefix of two logs, and the rest of each.
pub struct CommonPrefix<'a> {
    /// The common lines, as in the model's log.
    pub same: Vec<Decision>,
    /// Number of lines of faults that only one log has because a page was still being read when
    /// fault-around passed it.
    pub excluded: u64,
    /// Number of these in the model's log.
    pub excluded_of_model: u64,
    /// The rest of the model's log, from the first difference on.
    pub model: &'a [Decision],
    /// The rest of the kernel's log.
    pub kernel: &'a [Decision],
}

impl CommonPrefix<'_> {
    /// Whether both logs are exhausted.
    pub fn is_complete(&self) -> bool {
        self.model.is_empty() && self.kernel.is_empty()
    }
}

/// Follows the logs of the model and of a kernel, both restricted to `seen`, up to their first
/// difference.
pub fn common_prefix<'a>(
    model: &'a [Decision],
    kernel: &'a [Decision],
    seen: ShownKinds,
) -> CommonPrefix<'a> {
    let mut in_flight = InFlightPages::new(seen);
    let mut passed_over = ExcludedFaults::default();
    let mut agreed =
        CommonPrefix { same: Vec::new(), excluded: 0, excluded_of_model: 0, model, kernel };
    loop {
        match (agreed.model, agreed.kernel) {
            ([], []) => return agreed,
            ([a, rest_left @ ..], [b, rest_right @ ..]) if passed_over.are_equal(a, b) => {
                in_flight.follow(a);
                agreed.same.push(*a);
                (agreed.model, agreed.kernel) = (rest_left, rest_right);
            }
            (left, right) => {
                let Some((side, fault)) = find_excluded_fault(left, right, &in_flight) else {
                    return agreed;
                };
                let log = if side == Side::Model { &mut agreed.model } else { &mut agreed.kernel };
                *log = &log[fault.lines..];
                passed_over.count(side);
                agreed.excluded += fault.lines as u64;
                if side == Side::Model {
                    agreed.excluded_of_model += fault.lines as u64;
                }
                in_flight.skip(fault.from, fault.last);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Model,
    Kernel,
}

/// Excluded faults that only one of the logs has.
#[derive(Default)]
struct ExcludedFaults {
    model: u16,
    kernel: u16,
}

impl ExcludedFaults {
    fn count(&mut self, side: Side) {
        match side {
            Side::Model => self.model = self.model.saturating_add(1),
            Side::Kernel => self.kernel = self.kernel.saturating_add(1),
        }
    }

    /// Whether two lines are equal, except that each excluded fault of the other log may have
    /// lowered mmap_miss by the hit that it credits. The amount is fixed from then on.
    fn are_equal(&mut self, model: &Decision, kernel: &Decision) -> bool {
        let Some([ours, theirs]) = mmap_miss_of_same_readahead(model, kernel) else {
            return model == kernel;
        };
        let of_model = theirs.saturating_sub(ours);
        let of_kernel = ours.saturating_sub(theirs);
        let are_equal = of_model <= self.model && of_kernel <= self.kernel;
        if are_equal {
            *self = ExcludedFaults { model: of_model, kernel: of_kernel };
        }
        are_equal
    }
}

/// mmap_miss of two lines that begin the same readahead.
pub(super) fn mmap_miss_of_same_readahead(model: &Decision, kernel: &Decision) -> Option<[u16; 2]> {
    let (Decision::Entered { cause, found }, Decision::Entered { cause: also, found: theirs }) =
        (model, kernel)
    else {
        return None;
    };
    let same = ReadaheadSnapshot { mmap_miss: found.mmap_miss, ..*theirs };
    (cause == also && *found == same).then_some([found.mmap_miss, theirs.mmap_miss])
}

/// A fault that fault-around resolved.
struct ExcludedFault {
    lines: usize,
    from: PageIndex,
    last: PageIndex,
}

/// The fault that may be excluded from one of the logs, which differ in their first line.
fn find_excluded_fault(
    model: &[Decision],
    kernel: &[Decision],
    in_flight: &InFlightPages,
) -> Option<(Side, ExcludedFault)> {
    let ours = leading_fault(model, kernel.first(), in_flight);
    let theirs = leading_fault(kernel, model.first(), in_flight);
    match (ours, theirs) {
        // The log that reaches the other's fault later is the one with more faults.
        (Some(ours), Some(theirs)) => {
            let kernel_has_more = distance(kernel, model.first(), in_flight)
                <= distance(model, kernel.first(), in_flight);
            Some(if kernel_has_more { (Side::Kernel, theirs) } else { (Side::Model, ours) })
        }
        (Some(ours), None) => Some((Side::Model, ours)),
        (None, Some(theirs)) => Some((Side::Kernel, theirs)),
        (None, None) => None,
    }
}

/// The fault at the beginning of `log`, if its page may be mapped in the other. If the fault is
/// followed by a read of its own, the other log has to continue with that read.
fn leading_fault(
    log: &[Decision],
    other: Option<&Decision>,
    in_flight: &InFlightPages,
) -> Option<ExcludedFault> {
    let (index, around, rest) = match log {
        [Decision::Faulted { index }, Decision::MapPages { from, last, .. }, rest @ ..] => {
            (*index, ExcludedFault { lines: 2, from: *from, last: *last }, rest)
        }
        [Decision::Faulted { index }, rest @ ..] if !in_flight.shows_around() => {
            let (from, last) = in_flight.around(*index);
            (*index, ExcludedFault { lines: 1, from, last }, rest)
        }
        _ => return None,
    };
    let is_all = matches!(rest, [] | [Decision::Faulted { .. } | Decision::Entered { .. }, ..])
        || (other.is_some() && rest.first() == other);
    (is_all && in_flight.is_unsure(index)).then_some(around)
}

/// Number of faults of `log` to exclude before `wanted`.
fn distance(log: &[Decision], wanted: Option<&Decision>, in_flight: &InFlightPages) -> usize {
    let mut rest = log;
    let mut faults = 0;
    while rest.first() != wanted {
        match leading_fault(rest, wanted, in_flight) {
            Some(around) => rest = &rest[around.lines..],
            None => return usize::MAX,
        }
        faults += 1;
    }
    faults
}
