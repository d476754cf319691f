//! The report on an explanation.

use filemap_job::Record;
use filemap_report::{Part, Report};

use super::courses::Courses;
use super::record::Explained;
use super::remedies::Remedies;
use super::{along, causes, pictures, tables};
use crate::json::to_json;
use crate::measures::Measures;
use crate::record::{elapsed_note, title};
use crate::setup;

impl Explained {
    /// The report on it.
    pub fn report(&self) -> Report {
        let record = self.record();
        let by = if self.is_of_tables() { "by file and cause" } else { "by cause" };
        let mut parts = vec![
            Part::Heading(format!("{}: bytes {by}", title(&record))),
            Part::Cards(crate::run::cards(&record, &Measures::of(&record, None))),
            setup::of_record(&record),
            Part::Lead(self.answer.clone()),
            Part::Bars(causes::as_bars(self)),
        ];
        if let Some(courses) = &self.history {
            parts.extend(pictures::of_courses(courses));
        }
        parts.extend(tables::parts(self));
        parts.extend(tables::over_seeds(&record));
        parts.extend(Part::warnings(&self.warnings));
        if let Some(counter) = &self.mmap_miss {
            let accesses = self.accesses(&record);
            parts.extend(along::counter(counter, accesses));
        }
        if let Some(map) = self.map.as_ref().filter(|map| map.is_sound()) {
            parts.push(Part::Heading("Pages".to_string()));
            parts.push(Part::Plot(pictures::map(map, self.page_bytes())));
            parts.extend(along::map(map));
        }
        if !self.is_of_tables() {
            parts.extend(Remedies::parts(self.remedies.as_ref(), &self.job, self.page_bytes()));
            let of_model = "The times of what was tried are predicted by the model.".to_string();
            parts.push(Part::Paragraph(elapsed_note(&record).unwrap_or(of_model)));
        }
        let json = to_json(self);
        Report {
            parts,
            rows: causes::as_csv(self),
            footer: self.footer.footer(),
            record_json: json,
        }
    }

    /// Accesses of the first run.
    fn accesses(&self, record: &Record) -> u64 {
        let counted = record.runs.first().and_then(|run| run.counters.accesses);
        match &self.history {
            Some(Courses::OneFile(history)) => history.accesses,
            _ => counted.unwrap_or(0),
        }
    }
}
