//! A cell of a published table: conditions, published figure, the model's figure and the verdict.
//! Reports are made from cells alone.

use std::collections::BTreeMap;

use filemap_job::JobSpec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A cell. Keys that only some series have are omitted if empty.
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
    /// Published figure in `unit`; null if none was published.
    pub published: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_elapsed_s: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_rerun: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_ms: Option<BTreeMap<String, f64>>,
    /// The model's figures.
    pub figures: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<Map<String, Value>>,
    /// Error of the model's figure against the published one, in `error_unit`.
    pub error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_mib: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<String>,
    /// Whether it holds; null if not judged. The command fails if any cell does not hold.
    pub ok: Option<bool>,
    /// `ok`, `fail`, `near` or `off` (within or outside the tolerance of an unjudged cell),
    /// `fitted`, `model only`, `needs more seeds` or `not compared`.
    pub verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobSpec>,
}

/// Verdict: judged, and holds.
pub const HOLDS: &str = "ok";

/// Verdict: judged, and does not hold.
pub const FAILS: &str = "fail";

/// Verdict: not judged, outside the tolerance.
pub const OFF: &str = "off";

/// Verdict: not judged, within the tolerance.
pub const NEAR: &str = "near";

/// Verdict: an assumption was fitted to this figure, so it tests nothing.
pub const FITTED: &str = "fitted";

/// Verdict: no figure was published.
pub const MODEL_ONLY: &str = "model only";

/// Verdict: too few seeds to judge.
pub const NEEDS_MORE_SEEDS: &str = "needs more seeds";

/// Verdict: published, but the model has nothing to compare.
pub const NOT_COMPARED: &str = "not compared";

impl Cell {
    /// A cell without a published figure. `figures` is a JSON object.
    pub fn new(series: &str, figures: Value) -> Cell {
        let Value::Object(figures) = figures else { panic!("figures have names") };
        let (series, verdict) = (series.to_string(), MODEL_ONLY.to_string());
        Cell { series, figures, verdict, ..Cell::default() }
    }

    /// Sets the verdict of a judged cell; `otherwise` is the verdict if `ok` is `None`.
    pub fn with_judgement(self, ok: Option<bool>, otherwise: &str) -> Cell {
        let verdict = match ok {
            Some(true) => HOLDS,
            Some(false) => FAILS,
            None => otherwise,
        };
        Cell { ok, verdict: verdict.to_string(), ..self }
    }

    /// Sets the verdict of an unjudged cell; `otherwise` is the verdict if it is not compared.
    pub fn with_comparison(self, is_near: Option<bool>, otherwise: &str) -> Cell {
        let verdict = match is_near {
            Some(true) => NEAR,
            Some(false) => OFF,
            None => otherwise,
        };
        Cell { verdict: verdict.to_string(), ..self }
    }

    /// The keys and values that identify it.
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

    /// The value at `path` of its figures, such as `counters/major_faults`.
    pub fn at(&self, path: &str) -> Option<&Value> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let first = self.figures.get(first)?;
        if rest.is_empty() { Some(first) } else { first.pointer(&format!("/{rest}")) }
    }

    /// The number at `path` of its figures.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.at(path)?.as_f64()
    }

    /// The count at `path` of its figures; 0 if absent.
    pub fn count(&self, path: &str) -> u64 {
        self.at(path).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Deserializes the value at `path` of its figures.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        T::deserialize(self.at(path)?).ok()
    }

    pub fn belongs_to(&self, experiment: &str) -> bool {
        self.experiment.as_deref() == Some(experiment)
    }

    pub fn variant(&self) -> &str {
        self.variant.as_deref().unwrap_or_default()
    }
}
