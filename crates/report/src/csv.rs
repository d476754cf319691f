//! Tables as CSV: RFC 4180, but lines end in LF.

use ::csv::Writer;

use crate::table::Table;

impl Table {
    pub(crate) fn csv(&self) -> String {
        let mut writer = Writer::from_writer(Vec::new());
        let names = self.columns.iter().map(|head| head.name.as_str());
        let rows = self.rows.iter().map(|row| row.iter().map(String::as_str).collect());
        for record in std::iter::once(names.collect::<Vec<_>>()).chain(rows) {
            writer.write_record(record).expect("rows are as long as the heading");
        }
        let bytes = writer.into_inner().expect("memory can be written to");
        String::from_utf8(bytes).expect("texts are UTF-8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Head;

    #[test]
    fn quotes_cells() {
        let rows = [["a", "1"], ["b|\"c,", "12345"]].map(|row| row.map(String::from).to_vec());
        let columns = vec![Head::text("name"), Head::number("N")];
        let table = Table { title: String::new(), columns, rows: rows.to_vec() };
        assert_eq!(table.csv(), "name,N\na,1\n\"b|\"\"c,\",12345\n");
    }
}
