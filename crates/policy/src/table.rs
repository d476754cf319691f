//! The streams of a mapping.

use crate::stream::{Meeting, Stream};

/// Streams that are known at a time.
const STREAMS: usize = 16;

/// Single faults that have a place at least, however many streams there are: each could be the
/// first of a new one.
const SINGLES: usize = 4;

/// The streams. The one that was not met for the longest time makes room for a new one.
#[derive(Clone, Debug)]
pub struct Table {
    streams: [Option<Stream>; STREAMS],
}

impl Table {
    pub const NEW: Table = Table { streams: [const { None }; STREAMS] };

    /// The stream that a fault on `page` goes on with.
    pub fn meet(&mut self, page: u64) -> Option<(&mut Stream, Meeting)> {
        let mut best: Option<(&mut Stream, Meeting)> = None;
        for stream in self.streams.iter_mut().flatten() {
            let Some(meeting) = stream.meets(page) else { continue };
            if meeting.is_exact {
                return Some((stream, meeting));
            }
            if best.is_none() {
                best = Some((stream, meeting));
            }
        }
        best
    }

    /// The stream that has asked for `page`, and the number that the page has in it.
    pub fn that_has_asked(&mut self, page: u64) -> Option<(&mut Stream, u64)> {
        let mut streams = self.streams.iter_mut().flatten();
        streams.find_map(|stream| stream.has_asked_for(page).map(|number| (stream, number)))
    }

    /// All of them.
    pub fn streams(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.iter_mut().flatten()
    }

    /// Adds a stream.
    pub fn insert(&mut self, stream: Stream) {
        let singles = self.streams.iter().flatten().filter(|stream| stream.is_single()).count();
        let is_for_singles = singles < SINGLES;
        let may_go = |place: &&mut Option<Stream>| match place {
            Some(stream) => !is_for_singles || !stream.is_single(),
            None => true,
        };
        // A free place comes first, as `None` is the least.
        let places = self.streams.iter_mut().filter(may_go);
        if let Some(place) = places.min_by_key(|place| place.as_ref().map(Stream::kept_until)) {
            *place = Some(stream);
        }
    }
}
