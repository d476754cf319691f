//! Expansion of tables with a `count` into that many files or threads.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::error::ProgramError;
use super::names::{table_error, with_key_error};
use super::spec::{FileSpec, MappingSpec, OpenSpec, ThreadPhaseSpec, ThreadSpec};
use super::{JobSpec, SourceTables};
use crate::Error;
use crate::bounds::{MAX_FILES, MAX_THREAD_PHASES, MAX_THREADS};
use crate::limits::{out_of_range, within};
use crate::size::shorten;

/// A program with counts expanded, and the table that each expanded one came from.
pub(super) struct ExpandedSpec<'a> {
    pub(super) spec: Cow<'a, JobSpec>,
    pub(super) tables: SourceTables,
}

/// Counts of the repeated tables of one kind, by name.
type RepeatCounts<'a> = BTreeMap<&'a str, u64>;

impl JobSpec {
    /// Expands tables with a count: `x` with a count of 2 becomes `x-1` and `x-2`.
    pub(super) fn expand_counts(&self) -> Result<ExpandedSpec<'_>, Error> {
        if !self.is_counted() {
            let tables = SourceTables {
                files: (0..self.file.len()).collect(),
                opens: (0..self.open.len()).collect(),
                mappings: (0..self.mapping.len()).collect(),
                threads: (0..self.thread.len()).collect(),
            };
            return Ok(ExpandedSpec { spec: Cow::Borrowed(self), tables });
        }
        self.check_counts()?;
        let (mut files, mut opens, mut mappings) =
            (RepeatCounts::new(), RepeatCounts::new(), RepeatCounts::new());
        for file in &self.file {
            if let Some(count) = file.valid_count()? {
                files.insert(&file.name, count);
            }
        }
        for open in &self.open {
            files.get(open.file.as_str()).map(|count| opens.insert(&open.name, *count));
        }
        for mapping in &self.mapping {
            opens.get(mapping.open.as_str()).map(|count| mappings.insert(&mapping.name, *count));
        }
        let file = |file_spec: &FileSpec, name| FileSpec { name, count: None, ..file_spec.clone() };
        let open = |open_spec: &OpenSpec, name, number| {
            let file = copy_name(&files, &open_spec.file, Some(number));
            OpenSpec { name, file, ..open_spec.clone() }
        };
        let mapping = |mapping_spec: &MappingSpec, name, number| {
            let open = copy_name(&opens, &mapping_spec.open, Some(number));
            MappingSpec { name, open, ..mapping_spec.clone() }
        };
        let (files_of, all_files) = expand_tables(
            &self.file,
            |open| files.get(open.name.as_str()),
            |open, number| file(open, numbered_name(&open.name, number)),
        );
        let (opens_of, all_opens) = expand_tables(
            &self.open,
            |spec| opens.get(spec.name.as_str()),
            |spec, number| open(spec, numbered_name(&spec.name, number), number.unwrap_or(0)),
        );
        let (mappings_of, all_mappings) = expand_tables(
            &self.mapping,
            |spec| mappings.get(spec.name.as_str()),
            |spec, number| mapping(spec, numbered_name(&spec.name, number), number.unwrap_or(0)),
        );
        let (mut threads_of, mut threads) = (Vec::new(), Vec::new());
        for (at, thread) in self.thread.iter().enumerate() {
            let name = thread.called(at);
            let copy = |number| thread.copy(&name, number, (&opens, &mappings));
            let numbers: Vec<Option<u64>> = match thread.valid_count(&name)? {
                None => vec![None],
                Some(count) => (1..=count).map(Some).collect(),
            };
            for number in numbers {
                threads.push(copy(number).map_err(|error| table_error("thread", &name, error))?);
                threads_of.push(at);
            }
        }
        let spec = JobSpec {
            file: all_files,
            open: all_opens,
            mapping: all_mappings,
            thread: threads,
            ..self.clone()
        };
        let tables = SourceTables {
            files: files_of,
            opens: opens_of,
            mappings: mappings_of,
            threads: threads_of,
        };
        Ok(ExpandedSpec { spec: Cow::Owned(spec), tables })
    }

    /// Whether any table has a count.
    pub(crate) fn is_counted(&self) -> bool {
        self.file.iter().any(|file| file.count.is_some())
            || self.thread.iter().any(|thread| thread.count.is_some())
    }

    /// Rejects counts that exceed the maximum number of files, threads or phases in total.
    fn check_counts(&self) -> Result<(), Error> {
        let files = self.file.iter().map(|file| file.count.unwrap_or(1));
        let threads = self.thread.iter().map(|thread| thread.count.unwrap_or(1));
        let phases = self
            .thread
            .iter()
            .filter_map(|thread| Some(thread.count?.saturating_mul(thread.phase.len() as u64)));
        for (tables, count, most) in [
            ("files", files.fold(0, u64::saturating_add), MAX_FILES),
            ("threads", threads.fold(0, u64::saturating_add), MAX_THREADS),
            ("phases of one table", phases.max().unwrap_or(0), MAX_THREAD_PHASES),
        ] {
            if count > most as u64 {
                let value = format!("a number of {count} {tables} by their 'count'");
                return Err(out_of_range(value, 1, most));
            }
        }
        Ok(())
    }
}

impl FileSpec {
    fn valid_count(&self) -> Result<Option<u64>, Error> {
        let Some(count) = self.count else { return Ok(None) };
        let of_this = |error| table_error("file", &self.name, error);
        if self.path.is_some() {
            let remedy = "give a size for files that are there several times";
            let error = Error::KeyConflict { key: "count", other: "'path'", remedy };
            return Err(of_this(error));
        }
        within("count", count, 1, MAX_FILES as u64).map(Some).map_err(of_this)
    }
}

impl ThreadSpec {
    fn valid_count(&self, name: &str) -> Result<Option<u64>, Error> {
        let valid = self.count.map(|count| within("count", count, 1, MAX_THREADS as u64));
        valid.transpose().map_err(|error| table_error("thread", name, with_key_error(error)))
    }

    /// Copy `number` of this thread, called `name`; `None`: the thread has no count.
    fn copy(
        &self,
        name: &str,
        number: Option<u64>,
        (opens, mappings): (&RepeatCounts<'_>, &RepeatCounts<'_>),
    ) -> Result<ThreadSpec, Error> {
        let own = |counts: &RepeatCounts<'_>, name: &Option<String>| {
            let Some(name) = name else { return Ok(None) };
            match counts.get(name.as_str()) {
                Some(count) if self.count != Some(*count) => Err(ProgramError::OtherCount {
                    name: shorten(name),
                    count: *count,
                    threads: self.count.map_or("none".to_string(), |count| count.to_string()),
                }),
                _ => Ok(Some(copy_name(counts, name, number))),
            }
        };
        let phase = |phase: &ThreadPhaseSpec| {
            Ok(ThreadPhaseSpec {
                map: own(mappings, &phase.map)?,
                unmap: own(mappings, &phase.unmap)?,
                mapping: own(mappings, &phase.mapping)?,
                open: own(opens, &phase.open)?,
                ..phase.clone()
            })
        };
        let phase = self.phase.iter().map(phase).collect::<Result<_, ProgramError>>()?;
        let name = Some(numbered_name(name, number));
        Ok(ThreadSpec { name, count: None, phase, ..self.clone() })
    }
}

/// Expands `tables`, and returns for each copy the index of its table.
fn expand_tables<'c, T>(
    tables: &[T],
    count: impl Fn(&T) -> Option<&'c u64>,
    make: impl Fn(&T, Option<u64>) -> T,
) -> (Vec<usize>, Vec<T>) {
    let numbers = |table: &T| match count(table) {
        None => vec![None],
        Some(count) => (1..=*count).map(Some).collect(),
    };
    let all = tables
        .iter()
        .enumerate()
        .flat_map(|(at, table)| numbers(table).into_iter().map(move |number| (at, table, number)));
    all.map(|(at, table, number)| (at, make(table, number))).unzip()
}

/// The name of copy `number`, if tables called `name` have a count.
fn copy_name(counts: &RepeatCounts<'_>, name: &str, number: Option<u64>) -> String {
    numbered_name(name, number.filter(|_| counts.contains_key(name)))
}

fn numbered_name(name: &str, number: Option<u64>) -> String {
    // An empty name is rejected later.
    let number = number.filter(|_| !name.trim().is_empty());
    number.map_or(name.to_string(), |number| format!("{name}-{number}"))
}
