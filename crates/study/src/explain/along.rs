//! The counter of misses, and the pages of the file in characters.

use filemap_report::units::number;
use filemap_report::{Part, Table};

use super::counter::Moves;
use super::map::{Cell, Map};
use super::pictures;
use super::record::MissCounter;

/// Cells in a line of text.
const LINE_CELLS: usize = 62;

/// How to read the map.
const MAP_NOTE: &str = "· none, - up to a third, + up to two thirds, # more: of the cell's pages \
                        mapped and come in, of those that came in accessed and left.";

/// The counter of a run of so many accesses; nothing where nothing is known of it.
pub(super) fn counter(counter: &MissCounter, accesses: u64) -> Vec<Part> {
    let plot = || pictures::misses(&counter.course, accesses, counter.complete);
    let plot = counter.max.is_some().then(|| Part::Plot(plot()));
    let moves = counter.moves.as_ref().map(|of| Part::Table(moves(of)));
    if plot.is_none() && moves.is_none() {
        return Vec::new();
    }
    let heading = Part::Heading("mmap_miss".to_string());
    [Some(heading), plot, moves].into_iter().flatten().collect()
}

/// What moved the counter.
fn moves(moves: &Moves) -> Table {
    let row = |event: &str, times: u64, sign: &str, by: u64| {
        let sign = if by > 0 { sign } else { "" };
        vec![event.to_string(), number(times as f64), format!("{sign}{}", number(by as f64))]
    };
    let added = moves.misses.saturating_sub(moves.misses_at_cap);
    let by_retries = (moves.retries_taking, moves.taken_by_retries);
    let by_arounds = (moves.arounds_taking, moves.taken_by_arounds);
    let rows = [
        row("miss", moves.misses, "+", added),
        row("fault-around on the retry of a miss", by_retries.0, "-", by_retries.1),
        row("fault-around of another fault", by_arounds.0, "-", by_arounds.1),
        row("page found by the fault itself", moves.hits_taking, "-", moves.hits_taking),
    ];
    Table::of(["what moved mmap_miss"], ["times", "by"], rows)
}

/// The pages of the file.
pub(super) fn map(map: &Map) -> Vec<Part> {
    let cells = map.coarse(LINE_CELLS);
    let strip = |name: &str, part: fn(&Cell) -> (u64, u64)| {
        let mark = |cell: &Cell| match part(cell) {
            (0, _) => '·',
            (pages, of) if pages * 3 < of => '-',
            (pages, of) if pages * 3 < of * 2 => '+',
            _ => '#',
        };
        vec![name.to_string(), cells.iter().map(mark).collect()]
    };
    let pages = format!("{} to {}", map.start, (map.start + map.pages).saturating_sub(1));
    let rows = [
        strip("mapped", |cell| (cell.mapped, cell.pages)),
        strip("came in", |cell| (cell.came, cell.pages)),
        strip("accessed", |cell| (cell.used, cell.came)),
        strip("left", |cell| (cell.left, cell.came)),
    ];
    let table = Table::of(["pages", pages.as_str()], [""; 0], rows);
    vec![Part::Table(table), Part::Paragraph(MAP_NOTE.to_string())]
}
