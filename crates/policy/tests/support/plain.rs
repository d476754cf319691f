//! The policy a second time, in the obvious way: signed numbers without bounds, lists that grow,
//! tables that are searched from the start.

use filemap_policy::Bounds;

/// What [`filemap_policy::State`] does.
#[derive(Default)]
pub struct Plain {
    largest: i128,
    faults: i128,
    begun: i128,
    last: Option<i128>,
    streams: Vec<Stream>,
    /// Faults of no stream, all of them.
    alone: Vec<i128>,
    /// Lengths of runs that were counted, with how often.
    counts: Vec<(i128, i128)>,
    counted: i128,
    expected: i128,
    doubts: i128,
}

#[derive(Clone, PartialEq)]
enum Role {
    Growing,
    Following,
    Alone,
}

#[derive(Clone)]
struct Stream {
    start: i128,
    step: i128,
    known: i128,
    wire: i128,
    end: i128,
    window: i128,
    expected: i128,
    role: Role,
    faults: i128,
    last_fault: i128,
    begun: i128,
    is_counted: bool,
}

/// Greatest lengths of the buckets, up to one without end.
fn bounds_of_buckets() -> Vec<i128> {
    let mut bounds: Vec<i128> = (0..16).collect();
    for octave in (4..12).map(|power| 1_i128 << power) {
        bounds.extend((1..=8).map(|part| octave + part * octave / 8 - 1));
    }
    bounds.push(i128::from(u64::MAX));
    bounds
}

fn bucket(length: i128) -> i128 {
    bounds_of_buckets().into_iter().find(|bound| length <= *bound).expect("the last is the most")
}

impl Plain {
    pub fn new(largest: u64) -> Plain {
        let counts = bounds_of_buckets().into_iter().map(|bound| (bound, 0)).collect();
        Plain { largest: largest.into(), counts, ..Plain::default() }
    }

    /// The pages to read, one by one, in order of their number.
    pub fn fault(&mut self, page: u64, bounds: Bounds) -> Vec<u64> {
        let first = i128::from(bounds.mapping.first);
        let end = i128::from(bounds.mapping.end.min(bounds.file_pages));
        let page = i128::from(page);
        if page < first || page >= end {
            return Vec::new();
        }
        self.faults += 1;
        let is_direct = self.last.is_some_and(|last| (last - page).abs() == 1);
        self.last = Some(page);
        let met = self.meet(page);
        let mut stream = match met {
            Some(place) => {
                let mut stream = self.streams[place].clone();
                self.go_on(&mut stream, page);
                stream
            }
            None => self.begin(page),
        };
        (stream.last_fault, stream.begun) = (self.faults, self.begun);
        let elements = self.elements(&mut stream, is_direct, first, end);
        let pages = elements.map(|number| stream.start + number * stream.step);
        let mut pages: Vec<u64> = pages.map(|page| u64::try_from(page).unwrap()).collect();
        pages.sort_unstable();
        match met {
            Some(place) => self.streams[place] = stream,
            None => self.insert(stream),
        }
        pages
    }

    fn meet(&self, page: i128) -> Option<usize> {
        let near = |stream: &Stream| -> Option<bool> {
            if stream.known == 1 && stream.end == 1 {
                return ((page - stream.start).abs() == 1).then_some(true);
            }
            let distance = page - stream.start;
            if distance % stream.step != 0 {
                return None;
            }
            let number = distance / stream.step;
            let slack = match stream.step.abs() {
                1 => ((stream.end - stream.known) / 4).min(32),
                _ => 0,
            };
            let is_near = stream.known <= number && number <= stream.end + slack;
            is_near.then_some(number == stream.wire || number == stream.end)
        };
        let exact = self.streams.iter().position(|stream| near(stream) == Some(true));
        exact.or_else(|| self.streams.iter().position(|stream| near(stream).is_some()))
    }

    fn go_on(&mut self, stream: &mut Stream, page: i128) {
        if stream.is_counted {
            stream.is_counted = false;
            self.recount(stream, -1);
        }
        if stream.known == 1 && stream.end == 1 {
            let step = page - stream.start;
            if step != stream.step {
                self.count(1);
            }
            stream.step = step;
        }
        let number = (page - stream.start) / stream.step;
        if number != stream.wire && number != stream.end {
            stream.window /= 32;
        }
        stream.known = number + 1;
        stream.faults += 1;
    }

    fn begin(&mut self, page: i128) -> Stream {
        let ago = |count: usize| self.alone.iter().rev().nth(count - 1).copied();
        let stride = (1..=4).find_map(|turns| {
            let row: Vec<i128> = (1..=4).map_while(|number| ago(number * turns)).collect();
            let step = page - row.first()?;
            let equal = row.len() == 4 && row.windows(2).all(|pair| pair[0] - pair[1] == step);
            (equal && step.abs() > 1).then_some(step)
        });
        self.alone.push(page);
        self.begun += 1;
        for place in 0..self.streams.len() {
            let mut stream = self.streams[place].clone();
            if !stream.is_counted && self.begun - stream.begun >= 3 {
                stream.is_counted = true;
                if stream.role == Role::Alone && stream.step == 1 {
                    self.compare(stream.length(), stream.expected);
                }
                self.recount(&stream, 1);
            }
            self.streams[place] = stream;
        }
        Stream {
            start: page,
            step: stride.unwrap_or(1),
            known: 1,
            wire: 1,
            end: 1,
            window: 0,
            expected: 0,
            role: Role::Growing,
            faults: 1,
            last_fault: self.faults,
            begun: self.begun,
            is_counted: false,
        }
    }

    fn insert(&mut self, stream: Stream) {
        if self.streams.len() < 16 {
            self.streams.push(stream);
            return;
        }
        let is_single = |stream: &Stream| stream.known == 1 && stream.end == 1;
        let spares = self.streams.iter().filter(|stream| is_single(stream)).count() < 4;
        let may_go = self.streams.iter().enumerate();
        let may_go = may_go.filter(|(_, stream)| !spares || !is_single(stream));
        let worth = |stream: &Stream| stream.last_fault + stream.end - stream.known;
        let (place, _) = may_go.min_by_key(|(_, stream)| worth(stream)).expect("16 streams");
        self.streams[place] = stream;
    }

    /// The elements that a stream asks for, whose `known` one has just faulted.
    fn elements(
        &mut self,
        stream: &mut Stream,
        is_direct: bool,
        first: i128,
        end: i128,
    ) -> std::ops::Range<i128> {
        // The elements that lie in the bounds are those below this.
        let edge = if stream.step < 0 { first } else { end - 1 };
        let room = (edge - stream.start) / stream.step + 1;
        let last = stream.known - 1;
        if stream.faults > 1 && last < stream.end && last != stream.wire {
            stream.end = stream.end.min(stream.known + self.largest).min(room).max(stream.known);
            stream.wire = stream.end;
            return stream.known..stream.end;
        }
        let from = stream.end.max(stream.known);
        let (count, is_last) = self.window(stream, from, is_direct);
        let to = (from + count.min(self.largest)).min(room);
        if to <= from {
            (stream.wire, stream.end) = (from, from);
            return 0..0;
        }
        stream.end = to;
        stream.wire = if is_last { to } else { from };
        if is_last { from..to } else { from + 1..to }
    }

    fn window(&mut self, stream: &mut Stream, from: i128, is_direct: bool) -> (i128, bool) {
        let is_dense = stream.step.abs() == 1;
        if stream.step == 1 {
            if stream.role == Role::Alone && stream.known <= 2 * stream.expected {
                return ((stream.expected.min(4096) / 8).max(1), false);
            }
            match self.reach(stream.known) {
                Some(reach) => {
                    if reach <= from {
                        return (0, true);
                    }
                    stream.expected = reach;
                    if stream.role != Role::Following {
                        stream.role = self.next_role();
                        if stream.role == Role::Alone {
                            return (0, true);
                        }
                    }
                    if reach - from <= self.largest.min(256) {
                        return (reach - from, true);
                    }
                    stream.window = stream.larger().max(32).min(self.largest);
                    return (stream.window, false);
                }
                None => {
                    if stream.role == Role::Following {
                        stream.window = stream.expected / 32;
                    }
                    stream.role = Role::Growing;
                }
            }
        }
        if is_dense && !(stream.faults > 2 || stream.faults == 2 && is_direct) {
            return (0, true);
        }
        stream.window = stream.larger().min((from / 4).max(64)).min(self.largest);
        (stream.window, false)
    }

    fn next_role(&mut self) -> Role {
        if self.doubts >= 2 {
            return Role::Alone;
        }
        self.expected += 1;
        if self.expected % 8 == 0 { Role::Alone } else { Role::Following }
    }

    fn reach(&self, length: i128) -> Option<i128> {
        let own = bucket(length);
        let at_least = |bound: i128| -> i128 {
            self.counts.iter().filter(|(other, _)| *other >= bound).map(|(_, count)| count).sum()
        };
        let all = at_least(own);
        let reached = self.counts.iter().map(|(bound, _)| *bound);
        let reached = reached.filter(|bound| *bound >= own && 2 * at_least(*bound) >= all);
        if all < 3 { None } else { reached.max() }
    }

    fn count(&mut self, length: i128) {
        self.change(length, 1);
        self.counted += 1;
        if self.counted == 256 {
            self.halve();
        }
    }

    fn change(&mut self, length: i128, by: i128) {
        let own = bucket(length);
        for (bound, count) in &mut self.counts {
            if *bound == own {
                *count = (*count + by).max(0);
            }
        }
    }

    fn halve(&mut self) {
        self.counts.iter_mut().for_each(|(_, count)| *count /= 2);
        self.counted = 0;
    }

    fn compare(&mut self, length: i128, expected: i128) {
        if 2 * length >= expected {
            self.doubts = 0;
            return;
        }
        self.doubts += 1;
        if self.doubts >= 2 {
            self.halve();
        }
    }

    fn recount(&mut self, stream: &Stream, by: i128) {
        let says_nothing = stream.role == Role::Following && stream.known <= stream.expected;
        if stream.step != 1 || says_nothing {
            return;
        }
        match by {
            1 => self.count(stream.length()),
            _ => self.change(stream.length(), by),
        }
    }
}

impl Stream {
    fn length(&self) -> i128 {
        match self.role {
            Role::Alone => self.wire,
            _ => (self.known + self.wire + 1) / 2,
        }
    }

    fn larger(&self) -> i128 {
        match (self.window, self.step.abs()) {
            (0, _) => 4,
            (window, 1) if window < 64 => 4 * window,
            (window, 1) => 2 * window,
            (window, _) => (2 * window).min(32),
        }
    }
}
