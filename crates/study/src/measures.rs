//! Figures over the runs of a record.

use std::borrow::Cow;
use std::collections::BTreeMap;

use filemap_job::{Job, Record};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::figures::{FIGURES, Figure, figure_inputs};
use crate::measure::Measurement;

/// Each of [`FIGURES`] over the runs of a record, by its JSON key; `None` if no run has the figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordMeasurements(Vec<Option<Measurement>>);

impl RecordMeasurements {
    /// Measures `record`; `job` is the job that it ran, if known.
    pub(crate) fn from_record(record: &Record, job: Option<&Job>) -> Self {
        let seen = figure_inputs(record, job);
        RecordMeasurements(
            FIGURES
                .iter()
                .map(|figure| Measurement::from_samples(figure.values_of_runs(&seen)))
                .collect(),
        )
    }

    /// The measures stored in `record`, or computed from its runs if it stores none.
    pub(crate) fn get_or_compute(&self, record: &Record) -> Cow<'_, Self> {
        if self.0.is_empty() {
            Cow::Owned(RecordMeasurements::from_record(record, None))
        } else {
            Cow::Borrowed(self)
        }
    }

    /// Each figure with its measure.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static Figure, Option<&Measurement>)> {
        FIGURES.iter().zip(self.0.iter().map(Option::as_ref))
    }
}

impl Serialize for RecordMeasurements {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(figure, measure)| (figure.key, measure)))
    }
}

impl<'de> Deserialize<'de> for RecordMeasurements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let by_key: BTreeMap<String, Option<Measurement>> = BTreeMap::deserialize(deserializer)?;
        let measure = |figure: &Figure| by_key.get(figure.key).copied().flatten();
        Ok(RecordMeasurements(FIGURES.iter().map(measure).collect()))
    }
}

impl JsonSchema for RecordMeasurements {
    fn schema_name() -> Cow<'static, str> {
        "Measures".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let measure = generator.subschema_for::<Option<Measurement>>();
        let properties = FIGURES.iter().map(|figure| {
            let mut own = measure.clone();
            own.insert("description".to_string(), format!("{}.", figure.name.trim()).into());
            (figure.key.to_string(), own.to_value())
        });
        let properties: Map<String, Value> = properties.collect();
        let required: Vec<&str> = FIGURES.iter().map(|figure| figure.key).collect();
        json_schema!({ "type": "object", "properties": properties, "required": required })
    }
}
