//! The report of `explain`.

use filemap_job::{EngineKind, Record};
use filemap_report::units::{bytes, bytes_range, number};
use filemap_report::{Part, Plot, Report, Table, count_row};

use super::causes::{self, MAX_NAMED_FILES, grouped};
use super::counter::CounterMoves;
use super::map::{FileMap, MapCell};
use super::origin::Origin;
use super::pictures;
use super::record::{ExplainRecord, MissCounter, OpenRecord, SourcePages};
use super::remedies::Remedies;
use crate::json::to_json;
use crate::latency;
use crate::measures::RecordMeasurements;
use crate::record::{elapsed_note, title};
use crate::setup;
use crate::spread;
use crate::stats::SampleStats;

/// Cells per line of a map in text.
const LINE_CELLS: usize = 62;

/// Legend of the map.
const MAP_NOTE: &str = "· none, - up to a third, + up to two thirds, # more: of the cell's pages \
                        mapped and come in, of those that came in accessed and left.";

/// Maximum number of mappings and open files listed by name. The others are summed.
const MAX_NAMED_OPENS: usize = 8;

impl ExplainRecord {
    /// The report of the record.
    pub fn report(&self) -> Report {
        let record = self.record();
        let by = if self.has_several_files() { "by file and cause" } else { "by cause" };
        let mut parts = vec![
            Part::Heading(format!("{}: bytes {by}", title(&record))),
            Part::Cards(crate::run::cards(
                &record,
                &RecordMeasurements::from_record(&record, None),
            )),
            setup::record_setup(&record),
            Part::Lead(self.answer.clone()),
            Part::Bars(causes::cause_bars(self)),
        ];
        if let Some(history) = &self.history {
            parts.extend(pictures::history_parts(history));
        }
        parts.push(Part::Table(causes::cause_table(self)));
        parts.push(Part::Paragraph(self.sum_note()));
        let sources = self.source_table();
        parts.extend((!sources.rows.is_empty()).then_some(Part::Table(sources)));
        parts.extend(seeds_note(&record));
        parts.extend(Part::warnings(&self.warnings));
        if self.history.as_ref().is_some_and(|history| history.threads.len() > 1) {
            parts.extend(crate::run::waits(&record));
        } else {
            parts.extend(latency::table(&record).map(Part::Table));
        }
        parts.extend(self.counter_parts());
        parts.extend(self.map_parts());
        parts.extend(Remedies::parts(self.remedies.as_ref(), self.page_bytes));
        let predicted = "The times of what was tried are predicted by the model.".to_string();
        parts.push(Part::Paragraph(elapsed_note(&record).unwrap_or(predicted)));
        Report {
            parts,
            rows: causes::cause_rows(self),
            footer: self.footer.footer(),
            record_json: to_json(self),
        }
    }

    /// A note on the sums by cause, and whether they agree with the engine's count.
    fn sum_note(&self) -> String {
        let engine = &self.engine;
        // Files without blocks are not read from the device, and direct reads bypass the cache.
        let is_model = *engine == EngineKind::Model.name();
        let counted = match (self.bytes_counted, self.counters.data_pages_read) {
            (Some(counted), _) if counted == self.bytes_read => {
                let sum = bytes(self.bytes_read as f64);
                format!(" They add up to the {sum} that the {engine} counts.")
            }
            (Some(read), Some(counted)) if is_model && counted == self.pages_read => {
                let sum = number(counted as f64);
                let holes = if read < self.bytes_read {
                    let read = bytes(read as f64);
                    format!(" {read} of them were read; the others lie in holes of the file.")
                } else {
                    String::new()
                };
                format!(" They add up to the {sum} pages that the {engine} counts.{holes}")
            }
            (Some(counted), _) => format!(
                " They add up to {} bytes; the {engine} counts {} that were read.",
                number(self.bytes_read as f64),
                number(counted as f64)
            ),
            (None, _) => String::new(),
        };
        format!(
            "Each page that entered the cache is counted once, when it left or at the end; 'again' \
             are pages that had been in before.{counted}"
        )
    }

    /// Pages by the cause that read them, per mapping and open file if there are several.
    fn source_table(&self) -> Table {
        if self.mappings.len() <= 1 && self.opens.len() <= 1 {
            let rows = self.brought_in.iter().filter(|own| own.is_any()).map(|own| {
                let accessed = own.accessed.unwrap_or(0);
                let share = 100.0 * accessed as f64 / own.pages.max(1) as f64;
                let name = Origin::name_for_key(&own.by);
                let mut row = count_row(name, [own.calls, own.pages, accessed]);
                row.push(format!("{share:.1}"));
                row
            });
            return Table::from_parts(["brought in by"], ["calls", "pages", "accessed", "%"], rows);
        }
        let mappings = self.mappings.iter().map(|own| ("mapping", &own.name, &own.brought_in));
        let opens = self.opens.iter().map(|own| ("open", &own.name, &own.brought_in));
        let mut all: Vec<_> = mappings.chain(opens).collect();
        all.retain(|(.., sources)| sources.iter().any(SourcePages::is_any));
        let pages = |sources: &[SourcePages]| {
            sources.iter().map(|own| own.pages).fold(0, u64::saturating_add)
        };
        all.sort_by_key(|(.., sources)| std::cmp::Reverse(pages(sources)));
        let (named, others) = all.split_at(all.len().min(MAX_NAMED_OPENS));
        let mut rows: Vec<Vec<String>> = Vec::new();
        let row = |name: String, own: &SourcePages| {
            let mut row = count_row(Origin::name_for_key(&own.by), [own.calls, own.pages]);
            row.insert(0, name);
            row
        };
        for (kind, name, sources) in named {
            let read = sources.iter().filter(|own| own.is_any());
            rows.extend(read.map(|own| row(format!("{kind} {name}"), own)));
        }
        for by in others.first().into_iter().flat_map(|(.., first)| first.iter().map(|own| &own.by))
        {
            let mut sum = SourcePages { by: by.clone(), calls: 0, pages: 0, accessed: None };
            for own in others.iter().flat_map(|(.., sources)| *sources).filter(|own| own.by == *by)
            {
                sum.calls = sum.calls.saturating_add(own.calls);
                sum.pages = sum.pages.saturating_add(own.pages);
            }
            let name = format!("{} others", number(others.len() as f64));
            rows.extend(sum.is_any().then(|| row(name, &sum)));
        }
        grouped(Table::from_parts(["through", "by"], ["calls", "pages added"], rows))
    }

    /// The miss counters.
    fn counter_parts(&self) -> Vec<Part> {
        let accesses = self.history.as_ref().map_or(0, |history| history.accesses);
        let known = self.opens.iter().filter_map(|open| Some((open, open.mmap_miss.as_ref()?)));
        // Among several open files, those whose counter never moved are omitted.
        let is_only = known.clone().count() <= 1;
        let mut known: Vec<(&OpenRecord, &MissCounter)> = known
            .filter(|(_, counter)| counter.max.is_some() || counter.moves.is_some())
            .filter(|(_, counter)| is_only || counter.misses > 0 || counter.max > Some(0))
            .collect();
        known.sort_by_key(|(_, counter)| std::cmp::Reverse(counter.misses));
        if known.is_empty() {
            return Vec::new();
        }
        let plot = |(open, counter): &(&OpenRecord, &MissCounter)| {
            let points = &counter.course;
            let threshold = Some(counter.threshold);
            let plot = pictures::counter_plot(points, accesses, counter.complete, threshold);
            let title = if is_only {
                plot.title.clone()
            } else {
                format!("Open file {}: {}", open.name, plot.title)
            };
            Part::Plot(Plot { title, ..plot })
        };
        let drawn = known.iter().filter(|(_, counter)| counter.max.is_some());
        let mut parts = vec![Part::Heading("mmap_miss".to_string())];
        parts.extend(drawn.take(MAX_NAMED_FILES).map(plot));
        match known.as_slice() {
            [(_, counter)] => {
                parts.extend(counter.moves.as_ref().map(|moves| Part::Table(moves_table(moves))));
            }
            counters => parts.push(Part::Table(counter_table(counters))),
        }
        parts
    }

    /// The maps of the files with the most pages read.
    fn map_parts(&self) -> Vec<Part> {
        let mapped = self.files.iter().filter_map(|file| Some((file, file.map.as_ref()?)));
        let mut mapped: Vec<_> = mapped.filter(|(_, map)| map.is_sound()).collect();
        mapped.sort_by_key(|(file, _)| std::cmp::Reverse(file.pages_read));
        if mapped.is_empty() {
            return Vec::new();
        }
        let mut parts = vec![Part::Heading("Pages".to_string())];
        for (file, map) in mapped {
            let plot = pictures::map_plot(map, self.page_bytes);
            let (mut table, mut title) = (map_table(map), plot.title.clone());
            if self.has_several_files() {
                table.title = format!("File {}", file.name);
                title = format!("File {}: {title}", file.name);
            }
            parts.push(Part::Plot(Plot { title, ..plot }));
            parts.push(Part::Table(table));
        }
        parts.push(Part::Paragraph(MAP_NOTE.to_string()));
        parts
    }
}

/// The changes of one counter.
fn moves_table(moves: &CounterMoves) -> Table {
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
    Table::from_parts(["what moved mmap_miss"], ["times", "by"], rows)
}

/// Several counters: the ones with the most misses, and the sum of the others.
fn counter_table(counters: &[(&OpenRecord, &MissCounter)]) -> Table {
    let (named, others) = counters.split_at(counters.len().min(MAX_NAMED_OPENS));
    let taken = |counter: &MissCounter| counter.moves.as_ref().map_or(0, CounterMoves::decrements);
    let value = |value: Option<u16>| value.map_or("-".to_string(), |value| value.to_string());
    let row = |(open, counter): &(&OpenRecord, &MissCounter)| {
        let counts = [counter.misses, counter.misses_above_threshold, taken(counter)];
        let mut row = count_row(open.name.as_str(), counts);
        row.extend([value(counter.max), value(counter.last)]);
        row
    };
    let mut rows: Vec<Vec<String>> = named.iter().map(row).collect();
    if !others.is_empty() {
        let sum = |count: fn(&MissCounter) -> u64| {
            others.iter().map(|(_, own)| count(own)).fold(0, u64::saturating_add)
        };
        let taken = others.iter().map(|(_, own)| taken(own)).fold(0, u64::saturating_add);
        let sums = [sum(|own| own.misses), sum(|own| own.misses_above_threshold), taken];
        let mut row = count_row(format!("{} others", number(others.len() as f64)), sums);
        row.extend([value(others.iter().filter_map(|(_, own)| own.max).max()), String::new()]);
        rows.push(row);
    }
    let heads = ["misses", "read alone", "hits took", "highest", "last"];
    Table::from_parts(["mmap_miss of open file"], heads, rows)
}

/// The pages of a file as characters.
fn map_table(map: &FileMap) -> Table {
    let cells = map.coarse(LINE_CELLS);
    let strip = |name: &str, part: fn(&MapCell) -> (u64, u64)| {
        let mark = |cell: &MapCell| match part(cell) {
            (0, _) => '·',
            (pages, all) if pages * 3 < all => '-',
            (pages, all) if pages * 3 < all * 2 => '+',
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
    Table::from_parts(["pages", pages.as_str()], [""; 0], rows)
}

/// The spread of reads over runs with different seeds.
fn seeds_note(record: &Record) -> Vec<Part> {
    let seeds = spread::seeds(record);
    let Some(read) = SampleStats::from_sorted(spread::bytes_read(record)).filter(|_| seeds > 1)
    else {
        return Vec::new();
    };
    let text = format!(
        "This is the first of {seeds} seeds. Over all of them the job reads {} (median), from {}.",
        bytes(read.median),
        bytes_range(read.min, read.max)
    );
    let note = spread::note("The job", &read);
    [Some(text), note].into_iter().flatten().map(Part::Paragraph).collect()
}
