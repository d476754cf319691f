//! Advice that the command says is given in place of the program's own (`filemap_control::rule`),
//! so that a program can be measured as if it gave that advice itself.
//!
//! A mapping is advised when it is made. Of the program's own advice for it, what says how it is
//! read is not carried out; the rest is. An open file is advised before it is first read.
//!
//! The functions are called by `purpose`, for the hooks.

mod mappings;

use std::ffi::c_int;
use std::fmt::Write;
use std::ops::{Range, RangeInclusive};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use filemap_control::rule::{Extent, Rule, RuleKind};
use rustix::fs::{Advice, FileType, Mode, OFlags};

use crate::advice;
use crate::disposition::with_signals_blocked;
use crate::file::{self, PathText, ShortText};
use crate::purpose::Mapped;
use crate::start::{self, Run};
use mappings::MAPPINGS;

/// Advice on how a mapping is read: the rest is about pages, or about something else.
const ON_READING: [c_int; 3] = [libc::MADV_NORMAL, libc::MADV_RANDOM, libc::MADV_SEQUENTIAL];

/// The same of an open file.
const ON_READING_FILES: [c_int; 3] =
    [libc::POSIX_FADV_NORMAL, libc::POSIX_FADV_RANDOM, libc::POSIX_FADV_SEQUENTIAL];

/// Descriptors that are known by their numbers. Others are advised before each read.
const MOST: usize = 4096;

/// What each descriptor stands for that was looked at before it was read: a number of the file, and
/// 0 where nobody has looked.
static SEEN: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];

/// Rules that were told to be given, a bit each.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// A mapping was made. What was mapped in its place is gone.
pub fn mapped(new: &Mapped) {
    let Some(run) = start::running() else { return };
    MAPPINGS.remove(&new.range);
    let is_of_file = new.descriptor >= 0
        && new.flags & (libc::MAP_ANONYMOUS | libc::MAP_HUGETLB) == 0
        && !new.range.is_empty();
    if !is_of_file {
        return;
    }
    // SAFETY: the program has just mapped what this descriptor stands for.
    let file = unsafe { BorrowedFd::borrow_raw(new.descriptor) };
    with_signals_blocked(|| file::with_path(file, |path| advise(run, new, path)));
}

fn rules<'a>(run: &'a Run, path: &PathText) -> impl Iterator<Item = (usize, &'a Rule)> {
    let rules = run.settings.rules.iter().enumerate();
    rules.filter(move |(_, rule)| rule.path.as_bytes() == path.as_bytes())
}

fn advise(run: &Run, new: &Mapped, path: &PathText) {
    let whole = Extent { offset_bytes: new.offset_bytes, length_bytes: new.range.len() as u64 };
    for (number, rule) in rules(run, path) {
        let is_for = !rule.kind.is_of_file() && rule.mapping.is_none_or(|own| own == whole);
        let range = part(new, rule.part);
        if !is_for || range.is_empty() {
            continue;
        }
        if rule.kind.is_kept() {
            MAPPINGS.add(&new.range);
        }
        let is_given = match rule.kind {
            RuleKind::Normal => advice::as_by_itself(&range),
            RuleKind::Random => advice::single_pages(&range),
            RuleKind::Sequential => advice::in_order(&range),
            RuleKind::WillNeed => advice::read(&range),
            RuleKind::Populate => advice::populate(&range),
            RuleKind::FileNormal | RuleKind::FileRandom | RuleKind::FileSequential => false,
        };
        if is_given {
            tell(run, number);
        }
    }
}

/// The addresses of `part` of the file, as far as they are mapped: in whole pages, as `part` is.
fn part(new: &Mapped, part: Option<Extent>) -> Range<usize> {
    let Some(part) = part else { return new.range.clone() };
    let end = part.offset_bytes.saturating_add(part.length_bytes);
    let at = |offset: u64| {
        let skipped = offset.saturating_sub(new.offset_bytes).min(new.range.len() as u64);
        new.range.start + skipped as usize
    };
    at(part.offset_bytes)..at(end)
}

/// The program is about to unmap `range`. Nobody wants to know if that fails: what was advised is.
pub fn unmapping(range: &Range<usize>) -> bool {
    if start::running().is_some() {
        MAPPINGS.remove(range);
    }
    false
}

/// What was mapped at `from` is at `to` now with its advice, or has a second mapping there where
/// `from` is empty.
pub fn moved(from: &Range<usize>, to: &Range<usize>) {
    if start::running().is_none() {
        return;
    }
    let first = from.start..from.end.max(from.start.saturating_add(1));
    let is_advised = MAPPINGS.has(&first);
    MAPPINGS.remove(from);
    MAPPINGS.remove(to);
    if is_advised {
        MAPPINGS.add(to);
    }
}

/// The program is about to advise `range`. Returns whether that is to be carried out.
pub fn advising(range: &Range<usize>, advice: c_int) -> bool {
    start::running().is_none() || !ON_READING.contains(&advice) || !MAPPINGS.has(range)
}

/// The rules of an open file, with their positions, where the program is about to read it.
fn of_file<'a>(run: &'a Run, path: &PathText) -> impl Iterator<Item = (usize, &'a Rule)> {
    rules(run, path).filter(|(_, rule)| rule.kind.is_of_file())
}

fn has_files(run: &Run) -> bool {
    run.settings.rules.iter().any(|rule| rule.kind.is_of_file())
}

/// The program is about to read from a descriptor.
pub fn reading(descriptor: c_int) {
    let Some(run) = start::running().filter(|run| has_files(run) && descriptor >= 0) else {
        return;
    };
    look_at(run, descriptor);
}

fn look_at(run: &Run, descriptor: c_int) {
    // SAFETY: it is only asked for; where it is not open the kernel says so.
    let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let Ok(stat) = rustix::fs::fstat(file) else { return };
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return;
    }
    let place = usize::try_from(descriptor).ok().and_then(|at| SEEN.get(at));
    let identity = (stat.st_ino ^ stat.st_dev.rotate_left(32)).max(1);
    if place.is_some_and(|place| place.swap(identity, Ordering::Relaxed) == identity) {
        return;
    }
    with_signals_blocked(|| {
        file::with_path(file, |path| {
            for (number, rule) in of_file(run, path) {
                let advice = match rule.kind {
                    RuleKind::FileRandom => Advice::Random,
                    RuleKind::FileSequential => Advice::Sequential,
                    _ => Advice::Normal,
                };
                if rustix::fs::fadvise(file, 0, None, advice).is_ok() {
                    tell(run, number);
                }
            }
        });
    });
}

/// The program is about to advise an open file. Returns whether that is to be carried out.
pub fn advising_file(descriptor: c_int, advice: c_int) -> bool {
    let Some(run) = start::running().filter(|run| has_files(run) && descriptor >= 0) else {
        return true;
    };
    if !ON_READING_FILES.contains(&advice) {
        return true;
    }
    // SAFETY: it is only asked for; where it is not open the kernel says so.
    let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let mut is_replaced = false;
    with_signals_blocked(|| {
        file::with_path(file, |path| is_replaced = of_file(run, path).next().is_some());
    });
    !is_replaced
}

/// These descriptors are about to stand for something else, as far as they are open.
pub fn closing(descriptors: RangeInclusive<c_int>) {
    if start::running().is_none() {
        return;
    }
    let last = usize::try_from(*descriptors.end()).unwrap_or(0).min(MOST - 1);
    let first = usize::try_from(*descriptors.start()).unwrap_or(0);
    let closed = SEEN.get(first..=last.max(first)).unwrap_or_default();
    closed.iter().for_each(|place| place.store(0, Ordering::Relaxed));
}

/// Tells that a rule was given, once in each process. A file of the command's own is opened for
/// that alone, so that no lock of the program is lost with its descriptor.
fn tell(run: &Run, number: usize) {
    let bit = u32::try_from(number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or(0);
    if bit != 0 && TOLD.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
        return;
    }
    let Some(path) = run.given() else { return };
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return };
    let mut line = ShortText::new();
    let _ = writeln!(line, "{number}");
    let _ = rustix::io::write(&file, line.as_bytes());
}

/// This is the child of a fork now. It has its parent's mappings with their advice.
pub fn after_fork() {
    MAPPINGS.release_after_fork();
}
