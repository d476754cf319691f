//! The record of operations over folios.

use filemap_job::FolioOpsRecord;
use maud::html;

use super::{Shown, read};
use crate::error::Error;
use crate::folio_ops;

/// The page of it.
pub(super) fn page(json: &str) -> Result<Shown, Error> {
    let record: FolioOpsRecord = read(json)?;
    let compared = folio_ops::compared(&record);
    let body = html! {
        (filemap_report::html::all(&folio_ops::before(&record)))
        h2 { "Figures" }
        (filemap_report::html::all(&folio_ops::figures(&record, &compared, false)))
    };
    Ok(Shown { title: folio_ops::title(&record), body })
}
