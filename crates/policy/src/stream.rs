//! Streams: sequences of pages that a program accesses in order, and the streams of a file.

use crate::lengths::Overread;
use crate::lengths::RunLengths;
use crate::reads::PageRange;
use crate::region::AROUND_PAGES;
use crate::stride::Stride;

/// First window of a stream.
const FIRST_WINDOW: u64 = 4;

/// Windows grow by a factor of 4 below this size, and by 2 from it on.
const SLOW_GROWTH_FROM: u64 = 64;

/// Maximum number of elements of a stride requested together, about the queue depth of a device.
const STRIDE_DEPTH: u64 = 32;

/// A run expected to end within this many pages is read in one request.
const MAX_SINGLE_READ: u64 = 256;

/// First window of a longer run.
const FIRST_LONG_WINDOW: u64 = 32;

/// A run that outlives its expected end restarts with this fraction of the length as its window.
const REGROW_FRACTION: u64 = 32;

/// Maximum number of pages that a program may skip after a window.
const MAX_SLACK: u64 = 32;

/// A stream is considered over once this many others have begun since its last fault.
const STREAMS_UNTIL_OVER: u64 = 3;

/// How the windows of a stream are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// They grow with the stream.
    Growing,
    /// They follow the lengths of earlier runs.
    Following,
}

/// How the last element was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElementTouch {
    /// It was missing and had not been requested.
    Miss,
    /// It was requested but had not arrived.
    Wait,
    Hit,
}

/// A range of elements of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    from: u64,
    to: u64,
}

impl Elements {
    pub const NONE: Elements = Elements { from: 0, to: 0 };
}

/// A stream. Elements are numbered from 0, the page of its first fault.
#[derive(Clone, Debug)]
pub struct Stream {
    start: u64,
    step: Stride,
    /// Number of elements up to and including the last one accessed.
    known: u64,
    /// An access to this element or a later one triggers the request for the next window.
    trigger: u64,
    /// The element after the last one requested.
    end: u64,
    /// Elements of the last window.
    window: u64,
    /// Expected length, with [`Role::Following`].
    expected: u64,
    role: Role,
    /// How the last known element was accessed.
    last_touch: ElementTouch,
    faults: u8,
    /// Number of faults on the file at its last access.
    last_fault: u64,
    /// Number of streams begun by then.
    begun: u64,
    /// Its length was counted because it seemed to be over.
    is_counted: bool,
}

/// A fault that may continue a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamMatch {
    pub number: u64,
    pub step: Stride,
    /// It is exactly the expected element.
    pub is_exact: bool,
}

/// The context in which a stream answers a fault.
pub struct StreamContext<'a> {
    /// The pages that may be read.
    pub inside: PageRange,
    /// Maximum number of pages per request.
    pub largest: u64,
    pub lengths: &'a mut RunLengths,
    pub overread: &'a mut Overread,
    pub is_memory_short: bool,
    /// Number of the fault.
    pub fault_number: u64,
    /// Number of streams begun.
    pub begun: u64,
    /// The previous fault of the thread was on an adjacent page.
    pub is_direct: bool,
}

/// A request: how many elements, and whether the run is expected to end there.
struct StreamWindow {
    elements: u64,
    is_last: bool,
}

impl Stream {
    /// A stream that begins with a fault on `page`.
    pub const fn new(page: u64, step: Stride) -> Stream {
        Stream {
            start: page,
            step,
            known: 1,
            trigger: 1,
            end: 1,
            window: 0,
            expected: 0,
            role: Role::Growing,
            last_touch: ElementTouch::Miss,
            faults: 1,
            last_fault: 0,
            begun: 0,
            is_counted: false,
        }
    }

    /// Whether it is a single fault without a request.
    pub const fn is_single(&self) -> bool {
        self.known == 1 && self.end == 1
    }

    /// The fault number until which the stream is not evicted by others: while the program is
    /// inside the requested pages, it does not fault.
    pub const fn kept_until(&self) -> u64 {
        self.last_fault.saturating_add(self.end.saturating_sub(self.known))
    }

    /// Whether a fault on `page` may continue it.
    pub fn match_fault(&self, page: u64) -> Option<StreamMatch> {
        if self.is_single() {
            let step = Stride::between(self.start, page).filter(|step| step.is_dense())?;
            return Some(StreamMatch { number: 1, step, is_exact: true });
        }
        let number = self.step.number(self.start, page)?;
        // A program may skip some pages of a stream, including the one that triggers the next
        // window.
        let ahead = self.end.saturating_sub(self.known);
        let slack = if self.step.is_dense() { (ahead / 4).min(MAX_SLACK) } else { 0 };
        let is_near = self.known <= number && number <= self.end.saturating_add(slack);
        let is_exact = number <= self.end;
        is_near.then_some(StreamMatch { number, step: self.step, is_exact })
    }

    /// The element at `page`, if it was requested and not accessed yet.
    pub fn has_asked_for(&self, page: u64) -> Option<u64> {
        let number = self.step.number(self.start, page)?;
        (self.known <= number && number < self.end).then_some(number)
    }

    /// Continues with a matching fault on a page that was not requested.
    pub fn on_miss(&mut self, meeting: StreamMatch, around: &mut StreamContext<'_>) -> Elements {
        let StreamMatch { number, step, is_exact } = meeting;
        self.reopen(around);
        if step != self.step {
            // As a forward run, it ended after one page.
            around.lengths.count(1);
            self.step = step;
        }
        let was_lost = number < self.end;
        self.known = self.known.max(number.saturating_add(1));
        self.last_touch = ElementTouch::Miss;
        self.faults = self.faults.saturating_add(1);
        if !is_exact {
            // Possibly another stream in the same place.
            self.window /= REGROW_FRACTION;
        }
        if was_lost {
            return self.ask_rest(around);
        }
        self.ask_next_window(around)
    }

    /// Handles an access to the requested element `number`, for which the program had to wait if
    /// `is_wait`.
    pub fn on_known_element(
        &mut self,
        number: u64,
        is_wait: bool,
        around: &mut StreamContext<'_>,
    ) -> Elements {
        self.reopen(around);
        self.known = number.saturating_add(1);
        self.last_touch = if is_wait { ElementTouch::Wait } else { ElementTouch::Hit };
        self.faults = self.faults.saturating_add(1);
        if number >= self.trigger {
            return self.ask_next_window(around);
        }
        self.record_activity(around);
        Elements::NONE
    }

    /// Requests the next window.
    pub fn ask_next_window(&mut self, around: &mut StreamContext<'_>) -> Elements {
        self.record_activity(around);
        let from = self.end.max(self.known);
        let StreamWindow { elements, is_last } = self.next_window(from, around);
        let end = from.saturating_add(elements.min(around.largest)).min(self.max_elements(around));
        self.end = end.max(from);
        self.trigger = if is_last { self.end } else { from };
        Elements { from, to: self.end }
    }

    /// Requests the rest of the last window again.
    fn ask_rest(&mut self, around: &StreamContext<'_>) -> Elements {
        self.record_activity(around);
        let end =
            self.known.saturating_add(around.largest).min(self.end).min(self.max_elements(around));
        self.end = end.max(self.known);
        self.trigger = self.end;
        self.last_touch = ElementTouch::Miss;
        Elements { from: self.known, to: self.end }
    }

    /// Undoes the count of a run that was considered over.
    fn reopen(&mut self, around: &mut StreamContext<'_>) {
        if self.is_counted {
            self.is_counted = false;
            self.count_length(around.lengths, RunLengths::discount);
            around.overread.discount(self.known, self.end);
        }
    }

    /// The pages of these elements.
    pub fn pages(&self, elements: Elements) -> impl Iterator<Item = PageRange> + use<> {
        let Elements { from, to } = elements;
        let (start, step) = (self.start, self.step);
        let each = if step.is_dense() { to.saturating_sub(from).max(1) } else { 1 };
        let firsts = (from..to).step_by(usize::try_from(each).unwrap_or(usize::MAX));
        firsts.filter_map(move |first| {
            let (one, other) = (step.page(start, first)?, step.page(start, first + each - 1)?);
            Some(PageRange { first: one.min(other), end: one.max(other).saturating_add(1) })
        })
    }

    pub fn is_back(&self) -> bool {
        self.step.is_back()
    }

    /// Number of its elements that may be read.
    fn max_elements(&self, around: &StreamContext<'_>) -> u64 {
        let PageRange { first, end } = around.inside;
        self.step.elements(self.start, first, end.saturating_sub(1))
    }

    fn next_window(&mut self, from: u64, around: &mut StreamContext<'_>) -> StreamWindow {
        if self.step != Stride::FORWARD {
            return self.grow_window(from, around);
        }
        let Some(reach) = around.lengths.median_length(self.known) else {
            if self.role == Role::Following {
                // It is longer than all known runs and starts over with a small window.
                self.window = self.expected / REGROW_FRACTION;
            }
            self.role = Role::Growing;
            return self.grow_window(from, around);
        };
        let left = reach.saturating_sub(from);
        if left == 0 {
            return StreamWindow { elements: 0, is_last: true };
        }
        self.expected = reach;
        self.role = Role::Following;
        if left <= MAX_SINGLE_READ.min(around.largest) {
            return StreamWindow { elements: left, is_last: true };
        }
        let most = around.overread.max_window(from, around.is_memory_short).min(around.largest);
        self.window = self.next_window_size().max(FIRST_LONG_WINDOW).min(most);
        StreamWindow { elements: self.window.min(left), is_last: self.window >= left }
    }

    /// A larger window, if the stream is established.
    fn grow_window(&mut self, from: u64, around: &StreamContext<'_>) -> StreamWindow {
        // An adjacent fault may be chance, unless it came directly after, or a third one follows.
        let is_stream = self.faults > 2 || self.faults == 2 && around.is_direct;
        if self.step.is_dense() && !is_stream {
            return StreamWindow { elements: 0, is_last: true };
        }
        let most = around.overread.max_window(from, around.is_memory_short).min(around.largest);
        self.window = self.next_window_size().min(most);
        StreamWindow { elements: self.window, is_last: false }
    }

    fn next_window_size(&self) -> u64 {
        if self.window == 0 {
            return FIRST_WINDOW;
        }
        if !self.step.is_dense() {
            return self.window.saturating_mul(2).min(STRIDE_DEPTH);
        }
        self.window.saturating_mul(if self.window < SLOW_GROWTH_FROM { 4 } else { 2 })
    }

    fn record_activity(&mut self, around: &StreamContext<'_>) {
        (self.last_fault, self.begun) = (around.fault_number, around.begun);
    }

    /// Counts the length of the run once it seems to be over, given the number of streams `begun`.
    pub fn record_if_over(&mut self, begun: u64, lengths: &mut RunLengths, beyond: &mut Overread) {
        if self.is_counted || begun.saturating_sub(self.begun) < STREAMS_UNTIL_OVER {
            return;
        }
        self.is_counted = true;
        self.count_length(lengths, RunLengths::count);
        beyond.count(self.known, self.end);
    }

    /// Counts its length, or undoes that.
    fn count_length(&self, lengths: &mut RunLengths, count: impl Fn(&mut RunLengths, u64)) {
        if self.step == Stride::FORWARD {
            count(lengths, self.length());
        }
    }

    /// Its length: halfway between the last page known to be accessed and the last one that may
    /// have been, as fault-around hides accesses. If the two are close, the larger one, since an
    /// extra page costs less than a fault.
    fn length(&self) -> u64 {
        let last = self.known.saturating_sub(1);
        let around = match (self.last_touch, self.step.page(self.start, last)) {
            (ElementTouch::Hit, Some(page)) => AROUND_PAGES - page % AROUND_PAGES,
            _ => 1,
        };
        let longest = self.end.min(last.saturating_add(around)).max(self.known);
        self.known.saturating_add(longest.saturating_sub(self.known).div_ceil(2))
    }
}

/// Maximum number of streams.
const MAX_STREAMS: usize = 16;

/// Minimum number of slots reserved for single faults, the candidates for new streams.
const MIN_SINGLES: usize = 4;

/// The streams. A new one replaces the least recently used.
#[derive(Clone, Debug)]
pub struct StreamTable {
    streams: [Option<Stream>; MAX_STREAMS],
}

impl StreamTable {
    pub const NEW: StreamTable = StreamTable { streams: [const { None }; MAX_STREAMS] };

    /// The stream that a fault on `page` continues.
    pub fn match_fault(&mut self, page: u64) -> Option<(&mut Stream, StreamMatch)> {
        let mut best: Option<(&mut Stream, StreamMatch)> = None;
        for stream in self.streams.iter_mut().flatten() {
            let Some(meeting) = stream.match_fault(page) else { continue };
            if meeting.is_exact {
                return Some((stream, meeting));
            }
            if best.is_none() {
                best = Some((stream, meeting));
            }
        }
        best
    }

    /// The stream that requested `page`, and the element number of the page.
    pub fn find_asking(&mut self, page: u64) -> Option<(&mut Stream, u64)> {
        let mut streams = self.streams.iter_mut().flatten();
        streams.find_map(|stream| stream.has_asked_for(page).map(|number| (stream, number)))
    }

    /// All streams.
    pub fn streams(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.iter_mut().flatten()
    }

    /// Adds a stream.
    pub fn insert(&mut self, stream: Stream) {
        let singles = self.streams.iter().flatten().filter(|stream| stream.is_single()).count();
        let is_for_singles = singles < MIN_SINGLES;
        let may_go = |place: &&mut Option<Stream>| match place {
            Some(stream) => !is_for_singles || !stream.is_single(),
            None => true,
        };
        // Free slots come first, as `None` is the least.
        let places = self.streams.iter_mut().filter(may_go);
        if let Some(place) = places.min_by_key(|place| place.as_ref().map(Stream::kept_until)) {
            *place = Some(stream);
        }
    }
}
