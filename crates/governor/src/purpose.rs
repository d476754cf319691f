//! What the program does, told to the purpose that the library was loaded for. The hooks and the
//! observer know this module, and none of the purposes.
//!
//! The purpose is chosen once, before the program begins. Until then, and where the library is
//! switched off, nobody is told. A purpose that has no use for something has an empty arm.
//!
//! What is told may come in a signal handler, and from any thread. So no arm allocates, changes
//! errno, or waits for a lock without having all signals blocked.

use std::ffi::{c_char, c_int};
use std::iter;
use std::ops::{Range, RangeInclusive};

use crate::policy::Reads;
use filemap_control::Purpose;
use filemap_control::layout::Reason;

use crate::access::Access;
use crate::start::{self, Run};
use crate::table::Mapping;
use crate::{advise, govern, lending, record};

/// What a program has mapped.
pub struct Mapped {
    pub range: Range<usize>,
    /// PROT_READ and so on.
    pub protection: c_int,
    /// MAP_SHARED and so on.
    pub flags: c_int,
    /// The file's, or -1.
    pub descriptor: c_int,
    /// Where it begins in the file.
    pub offset_bytes: u64,
}

/// A range that moves, while it does.
pub struct Moving {
    from: Range<usize>,
    governed: Option<govern::Moving>,
    recorded: Option<record::Moving>,
}

/// Whether the purpose wants to know of faults.
pub fn observes(run: &Run) -> bool {
    run.settings.purpose != Purpose::Advise
}

fn chosen() -> Option<Purpose> {
    start::settings().map(|settings| settings.purpose)
}

/// The program is about to begin.
pub fn begins(run: &Run) {
    match run.settings.purpose {
        Purpose::Govern | Purpose::Advise => {}
        Purpose::Record => record::look_up(),
    }
}

/// The program is about to map something in place of what is at `range`.
pub fn mapping_over(range: &Range<usize>) {
    match chosen() {
        Some(Purpose::Record) => record::mapping_over(range),
        // What is governed there is forgotten when it is gone.
        Some(Purpose::Govern | Purpose::Advise) | None => {}
    }
}

/// A mapping was made.
pub fn mapped(new: &Mapped) {
    match chosen() {
        Some(Purpose::Govern) => govern::mapped(new),
        Some(Purpose::Record) => record::mapped(new),
        Some(Purpose::Advise) => advise::mapped(new),
        None => {}
    }
}

/// The program is about to unmap `range`. Returns whether somebody wants to know if that fails.
pub fn unmapping(range: &Range<usize>) -> bool {
    match chosen() {
        Some(Purpose::Govern) => govern::forget(range),
        Some(Purpose::Record) => record::unmapping(range),
        Some(Purpose::Advise) => advise::unmapping(range),
        None => false,
    }
}

/// Something of `range` that was to be unmapped is still there.
pub fn not_unmapped(range: &Range<usize>) {
    match chosen() {
        Some(Purpose::Govern) => govern::left_in_place(range),
        Some(Purpose::Record) => record::not_unmapped(range),
        // It has been advised before.
        Some(Purpose::Advise) | None => {}
    }
}

/// The program is about to move or resize what is mapped at `from`, or to make a second mapping of
/// it where that is empty. It is to come in place of what is at `onto`, which may be empty.
pub fn moving(from: Range<usize>, onto: &Range<usize>) -> Moving {
    let (governed, recorded) = match chosen() {
        Some(Purpose::Govern) if !from.is_empty() => (govern::lift(&from), None),
        Some(Purpose::Record) => (None, Some(record::moving(&from, onto))),
        Some(Purpose::Govern | Purpose::Advise) | None => (None, None),
    };
    Moving { from, governed, recorded }
}

/// It is at `to` now.
pub fn moved(Moving { from, governed, recorded }: Moving, to: Range<usize>) {
    match (chosen(), governed) {
        (Some(Purpose::Govern), Some(governed)) => govern::set_down(governed, to),
        (Some(Purpose::Govern), None) if from.is_empty() => govern::doubled(from.start, &to),
        (Some(Purpose::Govern), None) => govern::moved_unseen(&to),
        (Some(Purpose::Record), _) => {
            recorded.iter().for_each(|recorded| record::moved(recorded, &from, &to));
        }
        (Some(Purpose::Advise), _) => advise::moved(&from, &to),
        (None, _) => {}
    }
}

/// It has stayed as it was.
pub fn not_moved(Moving { from, governed, recorded }: Moving) {
    match (chosen(), governed) {
        (Some(Purpose::Govern), Some(governed)) => govern::set_down(governed, from),
        (Some(Purpose::Record), _) => {
            recorded.iter().for_each(|recorded| record::not_moved(recorded, &from));
        }
        _ => {}
    }
}

/// The program gives `range` another protection, by `call`, which returns 0 where it could.
pub fn protect(range: &Range<usize>, protection: c_int, call: impl FnOnce() -> c_int) -> c_int {
    match chosen() {
        Some(Purpose::Govern) => {
            let result = call();
            if result == 0 {
                govern::protected(range, protection);
            }
            result
        }
        Some(Purpose::Record) => record::protect(range, protection, call),
        Some(Purpose::Advise) | None => call(),
    }
}

/// The program advises `range`, by `call`. Where the kernel is not to hear of it the advice was
/// taken.
pub fn advise(range: &Range<usize>, advice: c_int, call: impl FnOnce() -> c_int) -> c_int {
    match chosen() {
        Some(Purpose::Govern) => {
            govern::advising(range, advice);
            call()
        }
        Some(Purpose::Record) => record::advise(range, advice, call).unwrap_or(0),
        Some(Purpose::Advise) => {
            if advise::advising(range, advice) {
                call()
            } else {
                0
            }
        }
        None => call(),
    }
}

/// The program is about to read from a descriptor.
pub fn reading(descriptor: c_int) {
    if let Some(Purpose::Advise) = chosen() {
        advise::reading(descriptor);
    }
}

/// The program has read `length` bytes of the file of a descriptor, from `offset` on, or from where
/// the file stood.
pub fn has_read(descriptor: c_int, offset: Option<u64>, length: u64) {
    if let Some(Purpose::Record) = chosen() {
        record::has_read(descriptor, offset, length);
    }
}

/// The program is about to advise a part of the file of a descriptor. Returns whether the kernel
/// is to hear of it.
pub fn advising_file(descriptor: c_int, offset: u64, length: u64, advice: c_int) -> bool {
    match chosen() {
        Some(Purpose::Record) => record::advising_file(descriptor, offset, length, advice),
        Some(Purpose::Advise) => advise::advising_file(descriptor, advice),
        Some(Purpose::Govern) | None => true,
    }
}

/// The program is about to have a part of the file of a descriptor read ahead. Returns whether the
/// kernel is to hear of it.
pub fn reading_ahead(descriptor: c_int, offset: u64, length: u64) -> bool {
    match chosen() {
        Some(Purpose::Record) => record::reading_ahead(descriptor, offset, length),
        Some(Purpose::Govern | Purpose::Advise) | None => true,
    }
}

/// What a call returns that takes the program's memory.
pub trait Taken {
    /// Bytes that it has taken; more than there are where it does not say how many.
    fn bytes(&self) -> usize;
}

impl Taken for isize {
    fn bytes(&self) -> usize {
        usize::try_from(*self).unwrap_or(0)
    }
}

/// Calls that return 0 or a number of messages.
impl Taken for c_int {
    fn bytes(&self) -> usize {
        if *self < 0 { 0 } else { usize::MAX }
    }
}

/// Calls that return a number of items.
impl Taken for usize {
    fn bytes(&self) -> usize {
        if *self == 0 { 0 } else { usize::MAX }
    }
}

/// Runs `call`, in which the kernel reads all pages of `range` and locks them in memory.
pub fn locked<R: Taken>(range: Range<usize>, call: impl FnOnce() -> R) -> R {
    match chosen() {
        Some(Purpose::Govern) => lending::lend(range, call),
        Some(Purpose::Record) => record::locked(&range, call),
        Some(Purpose::Advise) | None => call(),
    }
}

/// Whether somebody is told what the kernel reads.
pub fn is_told_of_reads() -> bool {
    match chosen() {
        Some(Purpose::Govern) => govern::is_anything(),
        Some(Purpose::Record) => record::is_anything(),
        Some(Purpose::Advise) | None => false,
    }
}

/// Runs `call`, in which the kernel reads the program's memory at `range`.
pub fn read_by_kernel<R: Taken>(range: Range<usize>, call: impl FnOnce() -> R) -> R {
    all_read_by_kernel(iter::once(range), call)
}

/// The same of several ranges.
pub fn all_read_by_kernel<R: Taken>(
    ranges: impl Iterator<Item = Range<usize>> + Clone,
    call: impl FnOnce() -> R,
) -> R {
    match chosen() {
        Some(Purpose::Govern) => lending::all_read_by_kernel(ranges, call),
        Some(Purpose::Record) => record::taken_by_kernel(ranges, false, call),
        Some(Purpose::Advise) | None => call(),
    }
}

/// Runs `call`, in which the kernel writes to the program's memory at `range`.
pub fn written_by_kernel<R: Taken>(range: Range<usize>, call: impl FnOnce() -> R) -> R {
    all_written_by_kernel(iter::once(range), call)
}

/// The same of several ranges.
pub fn all_written_by_kernel<R: Taken>(
    ranges: impl Iterator<Item = Range<usize>> + Clone,
    call: impl FnOnce() -> R,
) -> R {
    match chosen() {
        Some(Purpose::Record) => record::taken_by_kernel(ranges, true, call),
        // What may be written to is not governed.
        Some(Purpose::Govern | Purpose::Advise) | None => call(),
    }
}

/// Runs `call`, in which the kernel reads texts that end with a zero.
pub fn texts_read_by_kernel<R, const COUNT: usize>(
    texts: [*const c_char; COUNT],
    call: impl FnOnce() -> R,
) -> R {
    match chosen() {
        Some(Purpose::Record) => record::texts_read_by_kernel(texts, call),
        // Few pages, which are read on demand.
        Some(Purpose::Govern | Purpose::Advise) | None => call(),
    }
}

/// Runs `call`, of which nobody knows where in memory the kernel comes to. It may have acted before
/// it comes to memory that it may not touch, so that it is not tried a second time.
pub fn open_to_kernel<R>(call: impl FnOnce() -> R) -> R {
    match chosen() {
        Some(Purpose::Record) => record::open_to_kernel(call),
        Some(Purpose::Govern | Purpose::Advise) | None => call(),
    }
}

/// The program is about to close these descriptors, as far as they are open.
pub fn closing(descriptors: RangeInclusive<c_int>) {
    match chosen() {
        Some(Purpose::Record) => record::closing(descriptors),
        Some(Purpose::Advise) => advise::closing(descriptors),
        // No file is kept open for a mapping that is governed, and none is looked for again.
        Some(Purpose::Govern) | None => {}
    }
}

/// What the descriptor `from` stands for has the descriptor `to` as well.
pub fn duplicated(from: c_int, to: c_int) {
    match chosen() {
        Some(Purpose::Record) => record::duplicated(from, to),
        Some(Purpose::Advise) => advise::closing(to..=to),
        // The same.
        Some(Purpose::Govern) | None => {}
    }
}

/// A major fault at `address`, in the handler, in the thread that has made it.
pub fn fault(address: usize) {
    match chosen() {
        Some(Purpose::Govern) => govern::fault(address),
        Some(Purpose::Record) => record::fault(address),
        Some(Purpose::Advise) | None => {}
    }
}

/// A touch of memory that the kernel has refused, in the handler, in the thread that has made it.
/// Returns whether that was for the library, so that it can be tried again.
pub fn touched(access: &Access) -> bool {
    match chosen() {
        Some(Purpose::Record) => record::touched(access),
        Some(Purpose::Govern | Purpose::Advise) | None => false,
    }
}

/// What an observer has to look at that cannot report single faults: mappings, each with a number
/// that stays its own while it lasts. A number may be there without a mapping, with no range.
pub fn watched() -> impl Iterator<Item = (usize, Mapping)> {
    let is_governing = matches!(chosen(), Some(Purpose::Govern));
    is_governing.then(govern::watched).into_iter().flatten()
}

/// A page of the mapping with this number was found to have come. Returns what else is going to
/// come, as it was asked for.
pub fn has_come(run: &Run, number: usize, address: usize) -> Reads {
    match run.settings.purpose {
        Purpose::Govern => govern::has_come(run, number, address),
        Purpose::Record | Purpose::Advise => Reads::NONE,
    }
}

/// `range` cannot be looked at.
pub fn not_watched(range: &Range<usize>) {
    match chosen() {
        Some(Purpose::Govern) => govern::give_back(range),
        Some(Purpose::Record | Purpose::Advise) | None => {}
    }
}

/// Nothing is observed any more, and nothing that was done for mappings may stay.
pub fn stopped(run: &Run, reason: Reason) {
    match run.settings.purpose {
        Purpose::Govern => govern::give_all_back(run, reason),
        Purpose::Record => record::stopped(reason),
        // What was advised stays so, as if the program had advised it.
        Purpose::Advise => {}
    }
}

/// The process is about to fork.
pub fn before_fork() {
    if let Some(Purpose::Record) = chosen() {
        record::before_fork();
    }
}

/// It has forked, and this is the parent or the child; or it could not.
pub fn fork_is_over() {
    if let Some(Purpose::Record) = chosen() {
        record::fork_is_over();
    }
}

/// This is the child of a fork now, in which no other thread of the parent is.
pub fn after_fork() {
    match chosen() {
        Some(Purpose::Govern) => govern::after_fork(),
        Some(Purpose::Record) => record::after_fork(),
        Some(Purpose::Advise) => advise::after_fork(),
        None => {}
    }
}

/// The child of a fork has an observer of its own. Returns whether there is something to observe.
pub fn goes_on(run: &Run) -> bool {
    match run.settings.purpose {
        Purpose::Govern => govern::goes_on(run),
        Purpose::Record => record::is_anything(),
        Purpose::Advise => false,
    }
}

/// The process ends, or makes no system call any more that is not its own.
pub fn ends(run: &Run) {
    match run.settings.purpose {
        Purpose::Govern => govern::complete(run),
        Purpose::Record => record::ends(),
        Purpose::Advise => {}
    }
}
