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

pub use axis::{Axis, CHARACTER, text_width, tick_text, ticks};
pub use bars::{Bar, Bars};
pub use column::{Better, Column, Unit, Value, csv, digits, figures, raw, table, words};
pub use comparison::{ComparedTable, Figure, Sample, Variant};
pub use dots::{DotCell, DotColumn, Dots, Mark, Scale};
pub use letter::{Letter, is_plain};
pub use plot::Plot;
pub use report::{Card, Details, Footer, Format, Part, Report};
pub use spread_plot::{Outcomes, spread};
pub use table::{Head, SOFT_HYPHEN, Table, counted, folded, in_one_line};
pub use text::{TEXT_COLUMNS, fits};
