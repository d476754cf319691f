//! A cell of a published table beside the model's: what is compared, what was published, what came
//! out and whether that holds. Everything that a report shows comes from its cells.

use std::collections::BTreeMap;

use filemap_job::JobSpec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A cell. Keys that not every series has are left out where they say nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// `mmap-miss`, `vma-bound`, `exec-order`, `vma-retry` or `mm-owner`.
    pub series: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_gib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ram_gib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folio_kib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead_kb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touched_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touched_gib: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The published figure in `unit`; null where none was published.
    pub published: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_elapsed_s: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_rerun: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_ms: Option<BTreeMap<String, f64>>,
    /// What came out here.
    pub figures: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<Map<String, Value>>,
    /// Of the figure against the published one, in `error_unit`.
    pub error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_mib: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<String>,
    /// Whether it holds; null where nothing is judged. The command fails where one does not.
    pub ok: Option<bool>,
    /// `ok`, `fail`, `near` or `off` (inside what is tolerated or not, where that decides nothing),
    /// `fitted`, `model only`, `needs more seeds` or `not compared`.
    pub verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobSpec>,
}

/// The verdict on a cell that holds.
pub const HOLDS: &str = "ok";

/// The verdict on a cell that fails: of these the command fails.
pub const FAILS: &str = "fail";

/// The verdict on a cell that is outside what is tolerated, where that decides nothing.
pub const OFF: &str = "off";

/// The verdict on a cell that is inside what is tolerated, where that decides nothing.
pub const NEAR: &str = "near";

/// The verdict on a figure that what is assumed was chosen by: it tests nothing.
pub const FITTED: &str = "fitted";

/// The verdict on what was not published.
pub const MODEL_ONLY: &str = "model only";

/// The verdict on what too few seeds were run for.
pub const NEEDS_MORE_SEEDS: &str = "needs more seeds";

/// The verdict on what is published and not judged.
pub const NOT_COMPARED: &str = "not compared";

impl Cell {
    /// A cell that stands beside nothing. `figures` is an object.
    pub fn new(series: &str, figures: Value) -> Cell {
        let Value::Object(figures) = figures else { panic!("figures have names") };
        let (series, verdict) = (series.to_string(), MODEL_ONLY.to_string());
        Cell { series, figures, verdict, ..Cell::default() }
    }

    /// The same, judged; `otherwise` is the verdict where nothing is.
    pub fn judged(self, ok: Option<bool>, otherwise: &str) -> Cell {
        let verdict = match ok {
            Some(true) => HOLDS,
            Some(false) => FAILS,
            None => otherwise,
        };
        Cell { ok, verdict: verdict.to_string(), ..self }
    }

    /// The same, compared and not judged; `otherwise` is the verdict where it is not compared.
    pub fn compared(self, is_near: Option<bool>, otherwise: &str) -> Cell {
        let verdict = match is_near {
            Some(true) => NEAR,
            Some(false) => OFF,
            None => otherwise,
        };
        Cell { verdict: verdict.to_string(), ..self }
    }

    /// What names it.
    pub fn names(&self) -> Vec<(&'static str, String)> {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let names = [
            ("experiment", self.experiment.clone()),
            ("name", self.name.clone()),
            ("workload", self.workload.clone()),
            ("phase", self.phase.clone()),
            ("folio kib", number(self.folio_kib)),
            ("advice", self.advice.clone()),
            ("read ahead kb", number(self.read_ahead_kb)),
            ("variant", self.variant.clone()),
            ("touched pages", number(self.touched_pages)),
        ];
        names.into_iter().filter_map(|(key, text)| Some((key, text?))).collect()
    }

    pub fn joined_names(&self) -> String {
        let text = |(key, text): (&str, String)| match key {
            "folio kib" | "read ahead kb" => format!("{text} KiB"),
            _ => text,
        };
        self.names().into_iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// What is at `path` of its figures, as `counters/major_faults`.
    pub fn at(&self, path: &str) -> Option<&Value> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let first = self.figures.get(first)?;
        if rest.is_empty() { Some(first) } else { first.pointer(&format!("/{rest}")) }
    }

    /// The number at `path` of its figures.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.at(path)?.as_f64()
    }

    /// The count at `path` of its figures; 0 where nothing was counted.
    pub fn count(&self, path: &str) -> u64 {
        self.at(path).and_then(Value::as_u64).unwrap_or(0)
    }

    /// What is at `path` of its figures, where it is a `T`.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        T::deserialize(self.at(path)?).ok()
    }

    pub fn is_of(&self, experiment: &str) -> bool {
        self.experiment.as_deref() == Some(experiment)
    }

    pub fn variant(&self) -> &str {
        self.variant.as_deref().unwrap_or_default()
    }
}
