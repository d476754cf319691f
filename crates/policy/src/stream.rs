//! One stream: a row of pages that a program comes to, one after the other.

use crate::beyond::Beyond;
use crate::lengths::Lengths;
use crate::pages::Pages;
use crate::region::AROUND_PAGES;
use crate::step::Step;

/// The first window that a stream asks for.
const FIRST_WINDOW: u64 = 4;

/// From this size on windows grow by 2, below by 4.
const SLOWER_FROM: u64 = 64;

/// The most elements of a stride that are asked for together, which is how many requests the device
/// has to work on at a time.
const STRIDE_DEPTH: u64 = 32;

/// A run that is expected to end within so many pages is read at once.
const AT_ONCE: u64 = 256;

/// The first window of a run that is expected to be longer than that.
const FIRST_OF_LONG: u64 = 32;

/// A run that goes on after its expected end begins to grow from this part of the length.
const BEYOND_PART: u64 = 32;

/// The most pages that a stream may leave out after what was asked for.
const MOST_SLACK: u64 = 32;

/// Streams that begin after the last fault of one that is over then, as far as can be told.
const BEGUN_SINCE: u64 = 3;

/// What decides on a stream's windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It grows by itself.
    Growing,
    /// It reads what runs before it would have read.
    Following,
}

/// How a program came to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComeBy {
    /// It was missing, and was not asked for.
    Miss,
    /// It was asked for and had not arrived.
    Wait,
    Hit,
}

/// Elements of a stream: the first, and the one after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    from: u64,
    to: u64,
}

impl Elements {
    pub const NONE: Elements = Elements { from: 0, to: 0 };
}

/// A stream. Its elements are numbered from 0, the page of its first fault.
#[derive(Clone, Debug)]
pub struct Stream {
    start: u64,
    step: Step,
    /// Elements up to the last one that faulted, which is one of them.
    known: u64,
    /// When the program comes to this element or one after it, the next window is asked for.
    wire: u64,
    /// The element after the last that was asked for.
    end: u64,
    /// Elements of the last window.
    window: u64,
    /// The length that was expected, where `role` says so.
    expected: u64,
    role: Role,
    /// How it came to the last one that is known.
    come_by: ComeBy,
    faults: u8,
    /// Number of its last fault, among those of the mapping.
    last_fault: u64,
    /// How many streams had begun by then.
    begun: u64,
    /// Its length was counted, as it seemed to be over.
    is_counted: bool,
}

/// A fault that may go on with a stream.
#[derive(Clone, Copy, Debug)]
pub struct Meeting {
    pub number: u64,
    pub step: Step,
    /// It is just what the stream waits for.
    pub is_exact: bool,
}

/// What a stream has to know to answer.
pub struct Circumstances<'a> {
    /// The pages that may be read.
    pub inside: Pages,
    /// The most pages that may be asked for at once.
    pub largest: u64,
    pub lengths: &'a mut Lengths,
    pub beyond: &'a mut Beyond,
    pub is_memory_short: bool,
    /// Number of the fault.
    pub fault: u64,
    /// Streams that have begun so far.
    pub begun: u64,
    /// The fault before this one was on an adjacent page.
    pub is_direct: bool,
}

/// What a stream asks for: how many elements, and whether its run is expected to end there.
struct Window {
    elements: u64,
    is_last: bool,
}

impl Stream {
    /// A stream that begins with a fault on `page`.
    pub const fn new(page: u64, step: Step) -> Stream {
        Stream {
            start: page,
            step,
            known: 1,
            wire: 1,
            end: 1,
            window: 0,
            expected: 0,
            role: Role::Growing,
            come_by: ComeBy::Miss,
            faults: 1,
            last_fault: 0,
            begun: 0,
            is_counted: false,
        }
    }

    /// Whether it is a single fault, and nothing was asked for since.
    pub const fn is_single(&self) -> bool {
        self.known == 1 && self.end == 1
    }

    /// The number of the fault up to which it is not forgotten for others: it does not fault while
    /// the program is within what was asked for.
    pub const fn kept_until(&self) -> u64 {
        self.last_fault.saturating_add(self.end.saturating_sub(self.known))
    }

    /// Whether a fault on `page` may go on with it.
    pub fn meets(&self, page: u64) -> Option<Meeting> {
        if self.is_single() {
            let step = Step::between(self.start, page).filter(|step| step.is_dense())?;
            return Some(Meeting { number: 1, step, is_exact: true });
        }
        let number = self.step.number(self.start, page)?;
        // A program may leave out some pages of a stream, and the one that asks among them.
        let ahead = self.end.saturating_sub(self.known);
        let slack = if self.step.is_dense() { (ahead / 4).min(MOST_SLACK) } else { 0 };
        let is_near = self.known <= number && number <= self.end.saturating_add(slack);
        let is_exact = number <= self.end;
        is_near.then_some(Meeting { number, step: self.step, is_exact })
    }

    /// The element at `page`, if it was asked for and the program has not come to it.
    pub fn has_asked_for(&self, page: u64) -> Option<u64> {
        let number = self.step.number(self.start, page)?;
        (self.known <= number && number < self.end).then_some(number)
    }

    /// Goes on with the fault that it meets, on a page that was not asked for.
    pub fn go_on(&mut self, meeting: Meeting, around: &mut Circumstances<'_>) -> Elements {
        let Meeting { number, step, is_exact } = meeting;
        self.is_back_in(around);
        if step != self.step {
            // For runs that go forward it was one of a single page.
            around.lengths.count(1);
            self.step = step;
        }
        let was_lost = number < self.end;
        self.known = self.known.max(number.saturating_add(1));
        self.come_by = ComeBy::Miss;
        self.faults = self.faults.saturating_add(1);
        if !is_exact {
            // Perhaps another one, in the same place.
            self.window /= BEYOND_PART;
        }
        if was_lost {
            return self.ask_again(around);
        }
        self.ask(around)
    }

    /// The program comes to element `number`, which was asked for; it had to wait where `is_wait`.
    pub fn come(&mut self, number: u64, is_wait: bool, around: &mut Circumstances<'_>) -> Elements {
        self.is_back_in(around);
        self.known = number.saturating_add(1);
        self.come_by = if is_wait { ComeBy::Wait } else { ComeBy::Hit };
        self.faults = self.faults.saturating_add(1);
        if number >= self.wire {
            return self.ask(around);
        }
        self.note(around);
        Elements::NONE
    }

    /// Asks for the window after what was asked for so far.
    pub fn ask(&mut self, around: &mut Circumstances<'_>) -> Elements {
        self.note(around);
        let from = self.end.max(self.known);
        let Window { elements, is_last } = self.next_window(from, around);
        let end = from.saturating_add(elements.min(around.largest)).min(self.room(around));
        self.end = end.max(from);
        self.wire = if is_last { self.end } else { from };
        Elements { from, to: self.end }
    }

    /// Asks for the rest of what was asked for.
    fn ask_again(&mut self, around: &Circumstances<'_>) -> Elements {
        self.note(around);
        let end = self.known.saturating_add(around.largest).min(self.end).min(self.room(around));
        self.end = end.max(self.known);
        self.wire = self.end;
        self.come_by = ComeBy::Miss;
        Elements { from: self.known, to: self.end }
    }

    /// The run goes on, if it was taken as over.
    fn is_back_in(&mut self, around: &mut Circumstances<'_>) {
        if self.is_counted {
            self.is_counted = false;
            self.recount(around.lengths, Lengths::discount);
            around.beyond.discount(self.known, self.end);
        }
    }

    /// The pages of these elements.
    pub fn pages(&self, elements: Elements) -> impl Iterator<Item = Pages> + use<> {
        let Elements { from, to } = elements;
        let (start, step) = (self.start, self.step);
        let each = if step.is_dense() { to.saturating_sub(from).max(1) } else { 1 };
        let firsts = (from..to).step_by(usize::try_from(each).unwrap_or(usize::MAX));
        firsts.filter_map(move |first| {
            let (one, other) = (step.page(start, first)?, step.page(start, first + each - 1)?);
            Some(Pages { first: one.min(other), end: one.max(other).saturating_add(1) })
        })
    }

    pub fn is_back(&self) -> bool {
        self.step.is_back()
    }

    /// How many elements it has within what may be read.
    fn room(&self, around: &Circumstances<'_>) -> u64 {
        let Pages { first, end } = around.inside;
        self.step.elements(self.start, first, end.saturating_sub(1))
    }

    fn next_window(&mut self, from: u64, around: &mut Circumstances<'_>) -> Window {
        if self.step != Step::FORWARD {
            return self.grown(from, around);
        }
        let Some(reach) = around.lengths.reach(self.known) else {
            if self.role == Role::Following {
                // It is longer than all that is known: it begins again, with little.
                self.window = self.expected / BEYOND_PART;
            }
            self.role = Role::Growing;
            return self.grown(from, around);
        };
        let left = reach.saturating_sub(from);
        if left == 0 {
            return Window { elements: 0, is_last: true };
        }
        self.expected = reach;
        self.role = Role::Following;
        if left <= AT_ONCE.min(around.largest) {
            return Window { elements: left, is_last: true };
        }
        let most = around.beyond.most(from, around.is_memory_short).min(around.largest);
        self.window = self.larger().max(FIRST_OF_LONG).min(most);
        Window { elements: self.window.min(left), is_last: self.window >= left }
    }

    /// A window that is larger than the last one, where there is enough reason for any.
    fn grown(&mut self, from: u64, around: &Circumstances<'_>) -> Window {
        // A neighbour of an earlier fault can be there by chance. It is not where nothing came in
        // between, or when the one after that comes too.
        let is_stream = self.faults > 2 || self.faults == 2 && around.is_direct;
        if self.step.is_dense() && !is_stream {
            return Window { elements: 0, is_last: true };
        }
        let most = around.beyond.most(from, around.is_memory_short).min(around.largest);
        self.window = self.larger().min(most);
        Window { elements: self.window, is_last: false }
    }

    fn larger(&self) -> u64 {
        if self.window == 0 {
            return FIRST_WINDOW;
        }
        if !self.step.is_dense() {
            return self.window.saturating_mul(2).min(STRIDE_DEPTH);
        }
        self.window.saturating_mul(if self.window < SLOWER_FROM { 4 } else { 2 })
    }

    fn note(&mut self, around: &Circumstances<'_>) {
        (self.last_fault, self.begun) = (around.fault, around.begun);
    }

    /// Says how long its run was, once and where that is known, if it is over. It seems to be when
    /// others have `begun` since.
    pub fn teach(&mut self, begun: u64, lengths: &mut Lengths, beyond: &mut Beyond) {
        if self.is_counted || begun.saturating_sub(self.begun) < BEGUN_SINCE {
            return;
        }
        self.is_counted = true;
        self.recount(lengths, Lengths::count);
        beyond.count(self.known, self.end);
    }

    /// Counts its run, or takes it back.
    fn recount(&self, lengths: &mut Lengths, count: impl Fn(&mut Lengths, u64)) {
        if self.step == Step::FORWARD {
            count(lengths, self.length());
        }
    }

    /// Its length: in the middle between the last page that is known to be of it and the last one
    /// that can be, as fault-around may have mapped it. Where these are near each other it is the
    /// longest that it can have been, since a page too many costs less than a fault.
    fn length(&self) -> u64 {
        let last = self.known.saturating_sub(1);
        let around = match (self.come_by, self.step.page(self.start, last)) {
            (ComeBy::Hit, Some(page)) => AROUND_PAGES - page % AROUND_PAGES,
            _ => 1,
        };
        let longest = self.end.min(last.saturating_add(around)).max(self.known);
        self.known.saturating_add(longest.saturating_sub(self.known).div_ceil(2))
    }
}
