//! What is done about the program's mappings: those that a governor is for are advised, and each
//! major fault in them asks the policy.
//!
//! The functions are called by `purpose`, for the hooks and the observer.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use crate::policy::{Reads, State};
use filemap_control::layout::{self, Reason, header, mapping as word};

use crate::disposition::with_signals_blocked;
use crate::file::PathText;
use crate::observer;
use crate::purpose::Mapped;
use crate::stand_down;
use crate::start::{self, Run};
use crate::table::{Mapping, Slot, TABLE};
use crate::{advice, file, statistics};

/// Flags of mmap(2) of mappings that are left alone: they have no file, or all their pages are read
/// at once.
const LEFT_ALONE: i32 =
    libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_LOCKED | libc::MAP_POPULATE;

/// Advice on what is read, and in which pages. The program's word on that stands.
const ON_READING: [i32; 7] = [
    libc::MADV_NORMAL,
    libc::MADV_RANDOM,
    libc::MADV_SEQUENTIAL,
    libc::MADV_HUGEPAGE,
    libc::MADV_NOHUGEPAGE,
    libc::MADV_COLLAPSE,
    libc::MADV_POPULATE_READ,
];

/// A mapping was made. What was governed in its place is gone.
pub fn mapped(new: &Mapped) {
    // What was mapped of it before cannot be told any more.
    take_out(&new.range, layout::State::Ended, |_| None);
    let Some(run) = start::running() else { return };
    let is_for = new.protection == libc::PROT_READ
        && new.flags & LEFT_ALONE == 0
        && new.range.len() as u64 >= run.settings.min_bytes
        && new.descriptor >= 0;
    if is_for {
        // SAFETY: the program has just mapped what this descriptor stands for.
        let file = unsafe { BorrowedFd::borrow_raw(new.descriptor) };
        with_signals_blocked(|| file::with_path(file, |path| consider(run, new, file, path)));
    }
}

/// Governs a mapping if its file is one that a governor is for.
fn consider(run: &Run, new: &Mapped, descriptor: BorrowedFd<'_>, path: &PathText) {
    let Some(stored) = file::stored(descriptor) else { return };
    if !run.is_wanted(path.as_c_str()) || stand_down::is_due() {
        return;
    }
    let page = run.page_size as u64;
    let mapping = Mapping {
        range: new.range.clone(),
        first_page: new.offset_bytes / page,
        file_pages: stored.bytes.div_ceil(page),
        call_pages: stored.call_bytes() / page,
    };
    run.open_statistics();
    begin(run, &mapping, State::new(run.settings.largest_window_bytes / page), path.as_bytes());
}

/// Governs a mapping, if there is room in the table. Otherwise it is left to the kernel.
fn begin(run: &Run, mapping: &Mapping, state: State, path: &[u8]) {
    let found = with_signals_blocked(|| {
        let _held = TABLE.hold();
        let free = || TABLE.slots().filter(|(_, slot)| slot.is_free());
        let fresh = free().find(|(number, _)| statistics::is_fresh(*number));
        let Some((number, slot)) = fresh.or_else(|| free().next()) else { return false };
        if !advice::single_pages(&mapping.range) {
            return true;
        }
        statistics::begin(number, mapping, run.page_size, path);
        slot.known().begin(mapping, state);
        TABLE.note_used(number);
        true
    });
    observer::begin();
    if !found {
        advice::as_by_itself(&mapping.range);
        statistics::count(header::TABLE_FULL, 1);
    }
}

/// Takes `range` out of the table, as nothing of it is governed any more. Of mappings that lie
/// partly in it the rest stays governed. Returns whether something of it was governed.
fn take_out(
    range: &Range<usize>,
    why: layout::State,
    touched: impl Fn(&Range<usize>) -> Option<u64>,
) -> bool {
    if TABLE.overlapping(range.clone()).next().is_none() {
        return false;
    }
    let Some(run) = start::started() else { return false };
    with_signals_blocked(|| {
        let _held = TABLE.hold();
        for (number, slot) in TABLE.overlapping(range.clone()) {
            let had = slot.range();
            if cut(slot, range, run.page_size) {
                statistics::end(number, why, touched(&had));
            } else {
                statistics::reshape(number, &slot.range());
            }
        }
    });
    true
}

/// Cuts `range` out of the mapping of a slot. Returns whether nothing is left.
fn cut(slot: &Slot, range: &Range<usize>, page_size: usize) -> bool {
    let has = slot.range();
    let inside = |address: usize| address.max(has.start).min(has.end);
    let before = has.start..inside(range.start);
    let behind = inside(range.end)..has.end;
    let kept = if before.is_empty() { &behind } else { &before };
    slot.known().keep(kept, page_size);
    if !before.is_empty() && !behind.is_empty() {
        // A slot has one range, so that what is behind the hole goes back to the kernel.
        advice::as_by_itself(&behind);
    }
    kept.is_empty()
}

/// The program is about to unmap `range`. Returns whether something of it was governed.
pub fn forget(range: &Range<usize>) -> bool {
    take_out(range, layout::State::Ended, |had| {
        start::started().and_then(|run| run.touched_pages(had))
    })
}

/// The program is about to advise a part of `range` itself, or has made it writable or executable:
/// its word stands, from before the governor's. All of a mapping is given back.
pub fn give_back(range: &Range<usize>) {
    for (_, slot) in TABLE.overlapping(range.clone()) {
        let whole = slot.range();
        take_out(&whole, layout::State::GivenBack, |had| {
            advice::as_by_itself(had);
            start::started().and_then(|run| run.touched_pages(had))
        });
    }
}

/// The program is about to advise `range`.
pub fn advising(range: &Range<usize>, advice: i32) {
    if ON_READING.contains(&advice) {
        give_back(range);
    }
}

/// `range` has another protection. What may be written to or executed is nothing for a governor.
pub fn protected(range: &Range<usize>, protection: i32) {
    if protection & (libc::PROT_WRITE | libc::PROT_EXEC) != 0 {
        give_back(range);
    }
}

/// Something of `range` that was to be unmapped is still there, and is governed no more.
pub fn left_in_place(range: &Range<usize>) {
    if start::running().is_some() {
        advice::as_by_itself(range);
    }
}

/// Something that is not governed has moved to `range`.
pub fn moved_unseen(range: &Range<usize>) {
    take_out(range, layout::State::Ended, |_| None);
}

/// A second mapping of what is at `from` was made at `range`. It is not governed, and has got the
/// advice of the first.
pub fn doubled(from: usize, range: &Range<usize>) {
    moved_unseen(range);
    let is_governed = TABLE.overlapping(from..from.saturating_add(1)).next().is_some();
    if is_governed && start::running().is_some() {
        advice::as_by_itself(range);
    }
}

/// A mapping that moves, while it does.
pub struct Moving {
    mapping: Mapping,
    state: State,
    number: usize,
}

/// Takes `range` out of the table as it is going to move, if it is the whole of a mapping or a part
/// of one. `None` where it is not governed.
///
/// Meanwhile it has the advice that it has without a governor: the kernel moves a range as one only
/// where all of it is alike, also with what lies beside the mapping.
pub fn lift(range: &Range<usize>) -> Option<Moving> {
    let run = start::running()?;
    let (number, slot) = TABLE.overlapping(range.clone()).next()?;
    let has = slot.range();
    if range.start < has.start || range.end > has.end {
        give_back(range);
        return None;
    }
    advice::as_by_itself(range);
    let moving = with_signals_blocked(|| {
        let had = slot.mapping();
        let skipped = range.start.checked_sub(had.range.start)? / run.page_size;
        let state = slot.known().state().clone();
        let first_page = had.first_page + skipped as u64;
        let mapping = Mapping { range: range.clone(), first_page, ..had };
        Some(Moving { mapping, state, number })
    })?;
    forget(range);
    Some(moving)
}

/// Governs again what has moved to `range`, or has stayed.
pub fn set_down(moving: Moving, range: Range<usize>) {
    forget(&range);
    let Some(run) = start::running() else { return };
    let mapping = Mapping { range, ..moving.mapping };
    let path = statistics::path_of(moving.number);
    begin(run, &mapping, moving.state, path.as_bytes());
}

/// A major fault at `address`, in the handler.
pub fn fault(address: usize) {
    let Some(run) = start::observing() else { return };
    statistics::count(header::REPORTED, 1);
    let found = TABLE.used().find(|(_, slot)| slot.range().contains(&address));
    let Some((number, slot)) = found else { return };
    missing(run, number, slot, address);
}

/// Whether anything is governed.
pub fn is_anything() -> bool {
    !TABLE.is_empty()
}

/// The slots that may have a mapping, with what they have.
pub fn watched() -> impl Iterator<Item = (usize, Mapping)> {
    TABLE.used().map(|(number, slot)| (number, slot.mapping()))
}

/// A page of the mapping in slot `number` was missing, at `address`. Returns what the kernel was
/// asked for.
pub fn has_come(run: &Run, number: usize, address: usize) -> Reads {
    let slot = TABLE.slot(number);
    slot.map_or(Reads::NONE, |slot| missing(run, number, slot, address))
}

/// The same.
fn missing(run: &Run, number: usize, slot: &Slot, address: usize) -> Reads {
    let Some(mut known) = slot.try_known() else {
        statistics::count(header::MISSED, 1);
        return Reads::NONE;
    };
    let mapping = known.mapping();
    if !mapping.range.contains(&address) {
        return Reads::NONE;
    }
    let page = mapping.first_page + ((address - mapping.range.start) / run.page_size) as u64;
    let bounds = known.bounds(page, run.page_size);
    let begun = known.state().begun();
    let reads = known.state().fault(page, bounds);
    let streams = known.state().begun() - begun;
    let calls = reads.pieces(mapping.call_pages).count() as u64;
    // All is counted while the lock is held: a slot that is free by then may get another mapping.
    let more = [
        (word::FAULTS, 1),
        (word::STREAMS, streams),
        (word::ADVISED_PAGES, reads.pages()),
        (word::CALLS, calls),
    ];
    for (index, more) in more.into_iter().filter(|(_, more)| *more > 0) {
        statistics::count_of(number, index, more);
    }
    drop(known);
    ask(run, &mapping, reads);
    reads
}

/// Asks the kernel to read. A mapping that is gone by then makes no difference: it is advice.
fn ask(run: &Run, mapping: &Mapping, reads: Reads) {
    for pages in reads.pieces(mapping.call_pages) {
        let skipped = pages.first.saturating_sub(mapping.first_page) as usize;
        let start = mapping.range.start + skipped * run.page_size;
        let end = start + pages.count() as usize * run.page_size;
        advice::read(&(start..end.min(mapping.range.end)));
    }
}

/// All mappings go back to the kernel.
pub fn give_all_back(run: &Run, reason: Reason) {
    statistics::reason(reason);
    with_signals_blocked(|| {
        let _held = TABLE.hold();
        for (number, slot) in TABLE.used().filter(|(_, slot)| !slot.is_free()) {
            let range = slot.range();
            advice::as_by_itself(&range);
            slot.known().keep(&(range.start..range.start), run.page_size);
            statistics::end(number, layout::State::GivenBack, None);
        }
    });
}

/// In the child of a fork, before it does anything.
pub fn after_fork() {
    TABLE.release_after_fork();
    statistics::after_fork();
}

/// In the child of a fork, which has its parent's mappings and an observer of its own. Returns
/// whether one of them is governed.
pub fn goes_on(run: &Run) -> bool {
    let is_governing = is_anything();
    if is_governing {
        run.open_statistics();
    }
    is_governing
}

/// The process ends: its numbers are completed, and the file is removed if nobody collects it.
pub fn complete(run: &Run) {
    if !statistics::is_kept() {
        return;
    }
    for (number, slot) in TABLE.used().filter(|(_, slot)| !slot.is_free()) {
        statistics::end(number, layout::State::Ended, run.touched_pages(&slot.range()));
    }
    run.remove_statistics();
}
