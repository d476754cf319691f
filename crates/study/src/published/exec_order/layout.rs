//! The tables of the series.

use super::cells::{CALLS, CONDITIONS, JUDGED, PHASES, Pair, Ratio, TOLERANCE_PERCENT, near};
use super::times::{Assumptions, Counts};
use crate::published::data::{PUBLISHED, PhaseRow};
use filemap_report::Part;
use filemap_report::{Head, Table};

/// Nanoseconds of a walk that the region spans.
const WALKS_NS: [f64; 6] = [10.0, 15.0, 20.0, 30.0, 40.0, 60.0];

/// Nanoseconds of a call.
const CALLS_NS: [f64; 5] = [20.0, 30.0, 40.0, 60.0, 80.0];

/// Microseconds of latency that the region spans.
const LATENCIES_US: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 54.0, 100.0];

/// GB a second.
const BANDWIDTHS: [f64; 5] = [1.3, 3.25, 6.5, 13.0, 26.0];

/// The report; `pairs` are those of the conditions in their order.
pub(super) fn parts(pairs: &[Pair], ratios: &[Ratio], assumed: &Assumptions) -> Vec<Part> {
    let judged = &pairs[JUDGED];
    let mut parts = PUBLISHED.exec_order.source.parts();
    parts.extend([
        Part::Table(ratio_table(ratios)),
        Part::Paragraph(touched_note(judged)),
        Part::Paragraph(assumptions(assumed)),
        Part::Table(counts_table(pairs, 0)),
        Part::Table(counts_table(pairs, 1)),
        Part::Paragraph(
            "Called in order, the executable window hits often enough that the counter of misses \
             never switches it off, so exec-bypass changes no count here. thp-order does, and only \
             under HUGEPAGE: a PMD-sized folio of 64 KiB pages has 512 MiB, which the cache does \
             not hold, and instead of nothing the mapping gets folios of 2 MiB and more, whose \
             entries carry the contiguous bit."
                .to_string(),
        ),
        Part::Table(walk_region(&judged.counts, assumed)),
        Part::Table(device_region(&judged.counts, assumed)),
        Part::Paragraph(
            "The random ratio depends on walk against call alone: the counts give 0.75 walks a \
             call before and none after. The cold ratio depends on latency times bandwidth, and \
             holds where a window's latency and faults take about as long as its transfer. The \
             bandwidth assumed is the least that the published time allows, and the latency is \
             chosen so that the cold ratio comes out. The cold row is therefore fitted and is not \
             judged. The random row is judged, and uses the default profile."
                .to_string(),
        ),
    ]);
    parts
}

/// How much the phases touch beside what they read.
fn touched_note(judged: &Pair) -> String {
    let job = &judged.jobs[0];
    let pages = job.used_pages().expect("a published file has few enough pages to count");
    let mib = |pages: u64| (pages * job.page_size()) >> 20;
    let [cold, random] = judged.counts[1];
    format!(
        "The cold phase touches {pages} pages ({} MiB), each once, and reads {} MiB, before and \
         after: the series changes how they are read. The random phase touches the same pages \
         and reads {} MiB, as all of them are cached by then.",
        mib(pages),
        mib(cold.pages),
        mib(random.pages),
    )
}

fn ratio_table(ratios: &[Ratio]) -> Table {
    let row = |ratio: &Ratio| {
        vec![
            ratio.row.phase.clone(),
            format!("{} -> {}", ratio.row.before_ms, ratio.row.after_ms),
            format!("{:.1} -> {:.1}", ratio.ms[0], ratio.ms[1]),
            format!("{:.3}", ratio.row.ratio()),
            format!("{:.3}", ratio.figure()),
            ratio.error_percent().map_or("-".to_string(), |error| format!("{error:+.1} %")),
            match ratio.ok() {
                None => "fitted".to_string(),
                Some(true) => "ok".to_string(),
                Some(false) => format!("FAIL: over {TOLERANCE_PERCENT} %"),
            },
        ]
    };
    let (advice, read_ahead_kb) = CONDITIONS[JUDGED];
    Table {
        title: format!("Time after / before, advice {advice}, {read_ahead_kb} KiB readahead"),
        columns: vec![
            Head::left("phase"),
            Head::right("published ms"),
            Head::right("model ms"),
            Head::right("published"),
            Head::right("model"),
            Head::right("error"),
            Head::left("verdict"),
        ],
        rows: ratios.iter().map(row).collect(),
    }
}

fn assumptions(assumed: &Assumptions) -> String {
    format!(
        "Assumed, as it was not published: the advice and the readahead above; {CALLS} random \
         calls; a device of {} us and {} GB/s; {} ns a call and {} ns its access, {} ns more where \
         only the second level of the instruction TLB has the translation, {} ns more for a walk; \
         {} ns a try of a fault, {} ns a page added. TLB: 48 entries of at most 2 MiB, then 2048. \
         Times are the counts below at these costs; ratios may be off by {TOLERANCE_PERCENT} %.",
        assumed.latency_ns / 1000.0,
        assumed.bandwidth,
        assumed.call_ns,
        assumed.touch_ns,
        assumed.second_ns,
        assumed.walk_ns,
        assumed.fault_ns,
        assumed.add_page_ns,
    )
}

fn counts_table(pairs: &[Pair], phase: usize) -> Table {
    let mut rows = Vec::new();
    for pair in pairs {
        for (variant, phases) in ["before", "after"].iter().zip(&pair.counts) {
            let Counts { major, minor, windows, pages, misses, walks, .. } = phases[phase];
            let mut row = vec![
                pair.advice.to_string(),
                pair.read_ahead_kb.to_string(),
                (*variant).to_string(),
            ];
            row.extend([major, minor, windows, pages, misses, walks].map(|n| n.to_string()));
            rows.push(row);
        }
    }
    let mut columns =
        vec![Head::left("advice"), Head::right("readahead\nKiB"), Head::left("variant")];
    let counts = ["major", "minor", "windows", "pages\nread", "TLB\nmisses", "walks"];
    columns.extend(counts.map(Head::right));
    Table { title: format!("Counts of the {} phase", PHASES[phase]), columns, rows }
}

/// The random ratio over the time of a walk and of a call.
fn walk_region(counts: &[[Counts; 2]; 2], assumed: &Assumptions) -> Table {
    let at = |walk_ns: f64, call_ns: f64| Assumptions { walk_ns, call_ns, ..*assumed };
    region("ns a walk, by ns a call", "random", &WALKS_NS, &CALLS_NS, |walk_ns, call_ns| {
        ratio(&at(walk_ns, call_ns), counts, 1)
    })
}

/// The cold ratio over the device.
fn device_region(counts: &[[Counts; 2]; 2], assumed: &Assumptions) -> Table {
    let at =
        |us: f64, bandwidth: f64| Assumptions { latency_ns: us * 1000.0, bandwidth, ..*assumed };
    region("us of latency, by GB/s", "cold", &LATENCIES_US, &BANDWIDTHS, |us, bandwidth| {
        ratio(&at(us, bandwidth), counts, 0)
    })
}

fn ratio(assumed: &Assumptions, counts: &[[Counts; 2]; 2], phase: usize) -> f64 {
    assumed.ms(&counts[1][phase]) / assumed.ms(&counts[0][phase])
}

/// Ratios of a phase over two constants; those that hold have a star.
fn region(
    axes: &str,
    phase: &str,
    down: &[f64],
    across: &[f64],
    ratio: impl Fn(f64, f64) -> f64,
) -> Table {
    let published: &PhaseRow = PUBLISHED
        .exec_order
        .rows
        .iter()
        .find(|row| row.phase == phase)
        .expect("the phases of this study are published");
    let cell = |ratio: f64| format!("{ratio:.3}{}", if near(ratio, published) { "*" } else { " " });
    let row = |&first: &f64| {
        let cells = across.iter().map(|&second| cell(ratio(first, second)));
        std::iter::once(first.to_string()).chain(cells).collect()
    };
    let mut columns = vec![Head::right("")];
    columns.extend(across.iter().map(|value| Head::right(format!("{value} "))));
    Table {
        title: format!("Where the {phase} ratio holds (*): {axes}"),
        columns,
        rows: down.iter().map(row).collect(),
    }
}
