//! Chart of the pages of a file that were mapped, read, accessed and evicted.

use maud::html;

use filemap_report::plot::{
    MARGIN_BELOW, PLOT_LEFT, PLOT_WIDTH, Plot, draw_horizontal_axis, legend_entry, round,
};
use filemap_report::units::number;
use filemap_report::{Axis, Table, count_row, ticks};

use super::super::map::{FileMap, MapCell};

/// Pitch of the strips, and height of the bars in them.
const ROW: f64 = 22.0;
const STRIP: f64 = 16.0;

/// Space above the strips.
const TOP: f64 = 6.0;

/// A strip: its name, the count of a cell that it shows, and its colour class.
type Strip = (&'static str, fn(&MapCell) -> u64, &'static str);

const STRIPS: [Strip; 4] = [
    ("mapped", |cell| cell.mapped, "u2"),
    ("read", |cell| cell.came, "w2"),
    ("accessed", |cell| cell.used, "u4"),
    ("evicted", |cell| cell.left, "u0"),
];

/// The chart of `map`, with its strips from top to bottom.
pub(in super::super) fn plot(map: &FileMap, page_bytes: u64) -> Plot {
    let bottom = TOP + ROW * STRIPS.len() as f64;
    let (first, last) = (map.start as f64, (map.start + map.pages.max(1)) as f64);
    let axis = Axis { left: PLOT_LEFT, width: PLOT_WIDTH, first, last };
    let marks = ticks(first, last - 1.0, 4.0, 1.0).into_iter();
    let marks: Vec<_> = marks.map(|value| (value, number(value))).collect();
    let name = format!("page of the file, of {} KiB", page_bytes >> 10);
    let body = html! {
        (draw_horizontal_axis(&axis, (TOP, bottom), &marks, &name))
        @for (row, strip) in STRIPS.iter().enumerate() {
            @let y = TOP + ROW * row as f64 + (ROW - STRIP) / 2.0;
            text.name.end x=(round(PLOT_LEFT - 8.0)) y=(round(y + 12.0)) { (strip.0) }
            @for (x, width, shade) in runs(map, strip.1) {
                rect class=(strip.2) x=(round(x)) y=(round(y)) width=(format!("{width:.2}"))
                    height=(STRIP) fill-opacity=(shade) {}
            }
        }
    };
    Plot {
        title: "Pages of the file".to_string(),
        note: "The stronger the colour of a place, the more of its pages: a faint one has an eighth of them or \
               fewer, a full one all. Evicted are those that are no longer in at the end."
            .to_string(),
        description: format!(
            "{} pages, mapped, read, accessed and evicted; the table below has each part of the file.",
            number(map.pages as f64)
        ),
        legend: vec![STRIPS.iter().map(|(name, _, class)| legend_entry(class, *name)).collect()],
        height: bottom + MARGIN_BELOW,
        body,
        table: Some(("All parts of the file".to_string(), map_table(map))),
    }
}

/// Runs of neighbouring cells of the same shade, with the shade in eighths.
fn runs(map: &FileMap, part: fn(&MapCell) -> u64) -> Vec<(f64, f64, f64)> {
    let width = PLOT_WIDTH / map.cells.len().max(1) as f64;
    let shade =
        |cell: &MapCell| (part(cell) as f64 / cell.pages as f64 * 8.0).ceil().min(8.0) / 8.0;
    let mut before = 0;
    let run = |alike: &[MapCell]| {
        let at = before;
        before += alike.len();
        (PLOT_LEFT + at as f64 * width, alike.len() as f64 * width, shade(&alike[0]))
    };
    let runs = map.cells.chunk_by(|a, b| shade(a) == shade(b)).map(run);
    runs.filter(|(.., shade)| *shade > 0.0).collect()
}

fn map_table(map: &FileMap) -> Table {
    let mut start = map.start;
    let rows = map.cells.iter().map(|cell| {
        let first = start;
        start = start.saturating_add(cell.pages);
        let pages = format!("{} to {}", number(first as f64), number((start - 1) as f64));
        count_row(pages, [cell.mapped, cell.came, cell.used, cell.left])
    });
    Table::from_parts(["pages"], STRIPS.map(|(name, ..)| name), rows)
}
