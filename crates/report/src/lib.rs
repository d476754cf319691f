//! Reports: their parts, and a renderer for each form.
//!
//! A [`Report`] is a title, a lead sentence, facts, tables, plots, notes and a footer. A column of
//! a table is declared once, as a [`Column`], for all forms. The crate is independent of the
//! subject of reports.
#![forbid(unsafe_code)]

mod axis;
mod bars;
mod column;
mod comparison;
mod csv;
mod dots;
mod html;
mod letter;
mod markdown;
pub mod plot;
mod report;
mod spread_plot;
mod table;
mod text;
pub mod units;

pub use axis::{Axis, CHARACTER_WIDTH, text_width, tick_text, ticks};
pub use bars::{Bar, BarTable};
pub use column::{
    Better, CellValue, Column, Unit, csv_column, csv_table, figure_column, fixed, text_column,
    text_table,
};
pub use comparison::{ComparisonTable, Figure, Sample, Variant};
pub use dots::{DotCell, DotColumn, DotTable, Mark, Scale};
pub use letter::{Letter, is_plain};
pub use plot::Plot;
pub use report::{Card, Details, Footer, Format, Part, Report};
pub use spread_plot::{SpreadRow, spread_plot};
pub use table::{Head, SOFT_HYPHEN, Table, count_row, fold_cell, single_line};
pub use text::{TEXT_COLUMNS, fits};
