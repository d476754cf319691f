//! Summary of cells: how many are judged and hold, how many are not judged and why.

use filemap_report::Part;
use serde::{Deserialize, Serialize};

use super::cell::{Cell, FITTED, MODEL_ONLY, NEAR, OFF};
use super::data::Series;

/// Number of cells of a series by kind of verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CellSummary {
    pub series: String,
    /// Judged cells; `hold` counts those that hold.
    pub judged: usize,
    pub hold: usize,
    /// Cells that an assumption was fitted to.
    pub fitted: usize,
    /// Published figures not judged for other reasons; `near` and `off` count those compared.
    pub unjudged: usize,
    pub near: usize,
    pub off: usize,
    /// Figures of the model without a published one.
    pub model_only: usize,
}

impl CellSummary {
    /// Counts the `cells` of one series.
    pub fn from_cells(cells: &[Cell]) -> CellSummary {
        let count = |is_counted: &dyn Fn(&Cell) -> bool| {
            cells.iter().filter(|cell| is_counted(cell)).count()
        };
        let with = |verdict: &str| count(&|cell| cell.verdict == verdict);
        let judged = count(&|cell| cell.ok.is_some());
        let [fitted, near, off, model_only] = [FITTED, NEAR, OFF, MODEL_ONLY].map(with);
        CellSummary {
            series: cells.first().map(|cell| cell.series.clone()).unwrap_or_default(),
            judged,
            hold: count(&|cell| cell.ok == Some(true)),
            fitted,
            unjudged: cells.len() - judged - fitted - model_only,
            near,
            off,
            model_only,
        }
    }

    /// The summary in a few sentences.
    pub fn sentences(&self) -> String {
        let series = Series::find(&self.series);
        let why = |field: fn(&Series) -> &Option<String>| {
            series.and_then(|series| field(series).as_ref()).map(|why| format!(" ({why})"))
        };
        let fitted = why(|series| &series.fitted_as);
        let unjudged = why(|series| &series.unjudged_as).unwrap_or_default();
        let mut sentences = vec![self.held_text()];
        match (self.fitted, fitted) {
            (0, None) => {}
            (0, Some(why)) => sentences.push(format!("One parameter is fitted{why}.")),
            (count, why) => {
                sentences
                    .push(format!("Fitted, so not judged: {count}{}.", why.unwrap_or_default()));
            }
        }
        if self.unjudged > 0 {
            let compared = match (self.near, self.off) {
                (0, 0) => String::new(),
                (near, off) => format!(", of which {near} are near and {off} off"),
            };
            sentences.push(format!("Not judged: {}{compared}{unjudged}.", self.unjudged));
        }
        if self.model_only > 0 {
            sentences.push(format!("{} are the model's alone.", self.model_only));
        }
        sentences.join(" ")
    }

    fn held_text(&self) -> String {
        match self.judged {
            0 => "No cell is judged.".to_string(),
            judged => format!("{} of {judged} judged cells hold.", self.hold),
        }
    }
}

/// Summary of several series: of all cells together, then of each series.
pub fn summary_parts(all: &[&[Cell]]) -> Vec<Part> {
    let summaries: Vec<CellSummary> =
        all.iter().map(|cells| CellSummary::from_cells(cells)).collect();
    let sum = |field: fn(&CellSummary) -> usize| summaries.iter().map(field).sum::<usize>();
    let lead = format!(
        "{} of {} judged cells hold. A cell that holds is neither above nor below what is \
         tolerated. {} are fitted and {} not judged, and decide nothing; of these {} are near and \
         {} off. {} are the model's alone.",
        sum(|own| own.hold),
        sum(|own| own.judged),
        sum(|own| own.fitted),
        sum(|own| own.unjudged),
        sum(|own| own.near),
        sum(|own| own.off),
        sum(|own| own.model_only),
    );
    let each = summaries
        .iter()
        .map(|summary| format!("{}: {}", summary.series, summary.sentences()))
        .collect();
    vec![Part::Lead(lead), Part::List(each)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::published::cell::NOT_COMPARED;

    #[test]
    fn every_cell_is_counted_once() {
        let cell = || Cell::new("vma-retry", json!({}));
        let cells = [
            cell().with_judgement(Some(true), ""),
            cell().with_judgement(Some(false), ""),
            cell().with_judgement(None, FITTED),
            cell().with_comparison(Some(true), ""),
            cell().with_comparison(Some(false), ""),
            cell().with_judgement(None, NOT_COMPARED),
            cell(),
        ];
        let summary = CellSummary::from_cells(&cells);
        let counts = (
            summary.judged,
            summary.hold,
            summary.fitted,
            summary.unjudged,
            summary.near,
            summary.off,
            summary.model_only,
        );
        assert_eq!(counts, (2, 1, 1, 3, 1, 1, 1));
        let sentences = summary.sentences();
        for words in [
            "1 of 2 judged cells hold. Fitted, so not judged: 1 (the readahead",
            "Not judged: 3, of which 1 are near and 1 off (drops",
        ] {
            assert!(sentences.contains(words), "{sentences}");
        }
    }
}
