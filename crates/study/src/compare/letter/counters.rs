//! The kernel counter behind each row of a letter.

use filemap_report::{Figure, Part};

use crate::compare::Variants;
use crate::figures::FIGURES;
use filemap_job::EngineKind;

/// The kernel counters behind the figures in `shown`; empty if only the model ran.
pub(super) fn parts<'a>(
    jobs: &[Variants],
    shown: impl IntoIterator<Item = &'a Figure>,
) -> Vec<Part> {
    let is_kernel = |variants: &Variants| {
        variants.cells.iter().any(|cell| cell.engine == EngineKind::Kernel.name())
    };
    if !jobs.iter().any(is_kernel) {
        return Vec::new();
    }
    let mut items: Vec<String> = Vec::new();
    for figure in shown {
        let figure_of_table = FIGURES.iter().find(|known| known.name == figure.name);
        let counter = figure_of_table.and_then(|known| known.counter);
        let item = counter.map(|counter| format!("{}: {counter}", figure.name.trim()));
        items.extend(item.filter(|item| !items.contains(item)));
    }
    vec![Part::Paragraph("Where a kernel counts them:".to_string()), Part::List(items)]
}
