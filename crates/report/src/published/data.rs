//! The published figures as data.

use std::sync::LazyLock;

use serde::Deserialize;

/// The published figures.
pub static PUBLISHED: LazyLock<Published> = LazyLock::new(|| {
    let text = include_str!("../../../../data/published.toml");
    toml::from_str(text).expect("data/published.toml is of the form that is declared here")
});

/// All that is published and compared.
#[derive(Debug, Deserialize)]
pub struct Published {
    /// `mm/filemap: tighten mmap_miss hit accounting`.
    pub mmap_miss: MmapMiss,
}

/// The figures of the mmap-miss series.
#[derive(Debug, Deserialize)]
pub struct MmapMiss {
    /// Title, version and date of the series.
    pub title: String,
    /// What was measured, on what.
    pub setup: String,
    /// One table for each size of the file.
    pub case: Vec<Case>,
}

/// The table of one size of the file.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Size of the file in GiB.
    pub file_gib: u64,
    /// RAM of the guest in GiB.
    pub ram_gib: u64,
    /// The table.
    pub rows: Vec<Row>,
    /// Rows that were published a second time.
    pub rerun: Vec<Row>,
}

/// One row.
#[derive(Debug, Deserialize)]
pub struct Row {
    /// `random`, `sequential`, or a stride as `stride1021`.
    pub workload: String,
    /// `baseline`, `p1`, `p2` or `p1+p2`.
    pub variant: String,
    /// GiB read.
    pub gib: f64,
    /// Seconds that the accesses took.
    pub s: f64,
}

impl Case {
    /// The published row of a cell, if it was published.
    pub fn row(&self, workload: &str, variant: &str) -> Option<&Row> {
        find(&self.rows, workload, variant)
    }

    /// The second measurement of a row, if there is one.
    pub fn rerun(&self, workload: &str, variant: &str) -> Option<&Row> {
        find(&self.rerun, workload, variant)
    }
}

fn find<'a>(rows: &'a [Row], workload: &str, variant: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.workload == workload && row.variant == variant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_whole() {
        let cases = &PUBLISHED.mmap_miss.case;
        let sizes: Vec<_> = cases.iter().map(|case| (case.file_gib, case.rows.len())).collect();
        assert_eq!(sizes, [(20, 16), (4, 10)]);
        assert!(cases.iter().all(|case| case.rerun.len() == 5 && case.ram_gib == 8));
        assert_eq!(cases[0].row("stride2053", "p2").unwrap().gib, 15.722);
        assert!(cases[1].row("stride2053", "p2").is_none());
    }
}
