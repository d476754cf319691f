//! The report on folios that several processes map.

use filemap_job::record::SCHEMA;
use serde::Serialize;

use super::FolioMaps;
use crate::footer::Footer;
use crate::json::to_json;
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    folios: &'a [FolioMaps],
}

/// The report on `folios`, each with the same mappings.
pub fn report(folios: &[FolioMaps], footer: Footer) -> Report {
    let mut parts = vec![
        Part::Heading("What is told of a folio that several processes map".to_string()),
        Part::Paragraph(
            "With counts of pages, mm-owner and page-mapcount tell what is mapped exactly. \
             Without them, no-page-mapcount and precise-owners count a folio as mapped whole, each \
             of its pages as mapped as often as they are on average, and all of them as private \
             only if one mm is known to map the folio."
                .to_string(),
        ),
    ];
    for maps in folios {
        parts.push(Part::Table(maps.table()));
        parts.push(Part::Table(owners(maps)));
    }
    parts.push(Part::Paragraph(
        "Whether an mm is known to be alone decides if a write of it reuses the page or copies it. \
         Two slots know the first two mms; page-mapcount knows none, and copies."
            .to_string(),
    ));
    let json = to_json(&Json { schema: SCHEMA, footer: &footer, folios });
    Report { parts, rows: rows(folios), footer: footer.footer(), json }
}

/// Who is known to be alone, once the others have left.
fn owners(maps: &FolioMaps) -> Table {
    let said = |known: bool| if known { "known" } else { "not known" }.to_string();
    let rows = maps.owners.iter().zip(&maps.mapped).enumerate();
    let rows = rows.map(|(mm, (owner, mapped))| {
        vec![format!("mm {}", mm + 1), mapped.clone(), said(owner.two_slots), said(owner.precise)]
    });
    Table {
        title: "Who is known to be alone when all others have left in their order".to_string(),
        columns: ["", "maps", "two slots", "precise-owners"].map(Head::left).to_vec(),
        rows: rows.collect(),
    }
}

/// One row for each figure.
fn rows(folios: &[FolioMaps]) -> Table {
    let names = ["folio_bytes", "mm", "mapped", "counters", "figure", "pages"];
    let mut rows = Vec::new();
    for maps in folios {
        let size = maps.folio_bytes.to_string();
        for told in &maps.told {
            let mut add = |mm: String, mapped: &str, figure: &str, value: String| {
                let words = [size.clone(), mm, mapped.to_string(), told.counters.clone()];
                rows.push(words.into_iter().chain([figure.to_string(), value]).collect());
            };
            add(String::new(), "", "mapped_pages", told.mapped_pages.to_string());
            for (mm, (used, mapped)) in told.mms.iter().zip(&maps.mapped).enumerate() {
                let mm = (mm + 1).to_string();
                add(mm.clone(), mapped, "rss", used.rss.to_string());
                add(mm.clone(), mapped, "pss", used.pss.to_string());
                add(mm, mapped, "uss", used.uss.to_string());
            }
        }
    }
    Table { title: String::new(), columns: names.map(Head::left).to_vec(), rows }
}
