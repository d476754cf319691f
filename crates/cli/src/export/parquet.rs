//! A table of events as Apache Parquet.

use std::io;
use std::sync::Arc;

use filemap_recording::{EVENT_COLUMNS, EventCell, EventRow};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::RowSink;
use crate::error::Error;
use crate::output::OutputFile;

/// Rows of a row group, which are kept in memory until it is written.
const GROUP_ROWS: usize = 1 << 17;

/// Writes rows as a Parquet file.
pub struct ParquetSink {
    writer: SerializedFileWriter<OutputFile>,
    columns: Vec<Column>,
    rows: usize,
}

/// Values of a column, and for each row whether it has one.
enum Column {
    Numbers { values: Vec<i64>, levels: Vec<i16> },
    Texts { values: Vec<ByteArray>, levels: Vec<i16> },
}

impl ParquetSink {
    /// A table that is written to `target`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(target: OutputFile) -> Result<ParquetSink, Error> {
        let schema = schema().expect("its columns have names and types");
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(target, schema, Arc::new(properties));
        let writer = writer.map_err(|error| Error::Write {
            path: "the Parquet file".to_string(),
            reason: error.to_string(),
        })?;
        let columns = EVENT_COLUMNS.map(|(_, is_number)| Column::new(is_number));
        Ok(ParquetSink { writer, columns: columns.into(), rows: 0 })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let writer = group.next_column()?.expect("the schema has this column");
            column.write(writer)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// The error for `error` while writing.
    fn failed(&self, error: ParquetError) -> Error {
        let error = match error {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => *error,
                Err(error) => io::Error::other(error),
            },
            error => io::Error::other(error),
        };
        self.writer.inner().failed(&error)
    }
}

impl RowSink for ParquetSink {
    fn add(&mut self, row: &EventRow<'_>) -> Result<(), Error> {
        for (column, cell) in self.columns.iter_mut().zip(row.cells()) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows < GROUP_ROWS {
            return Ok(());
        }
        self.write_group().map_err(|error| self.failed(error))
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        if self.rows > 0 {
            self.write_group().map_err(|error| self.failed(error))?;
        }
        // Writes the end of the file.
        let target = self.writer.into_inner().map_err(|error| Error::Write {
            path: "the Parquet file".to_string(),
            reason: error.to_string(),
        })?;
        target.finish()
    }
}

impl Column {
    fn new(is_number: bool) -> Column {
        if is_number {
            Column::Numbers { values: Vec::new(), levels: Vec::new() }
        } else {
            Column::Texts { values: Vec::new(), levels: Vec::new() }
        }
    }

    fn push(&mut self, cell: EventCell<'_>) {
        match (self, cell) {
            (Column::Numbers { values, levels }, EventCell::Number(number)) => {
                levels.push(number.is_some().into());
                values.extend(number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)));
            }
            (Column::Texts { values, levels }, EventCell::Text(text)) => {
                levels.push(text.is_some().into());
                values.extend(text.map(ByteArray::from));
            }
            _ => unreachable!("cells have the kind of their column"),
        }
    }

    /// Writes the values, and removes them.
    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Column::Numbers { values, levels } => {
                writer.typed::<Int64Type>().write_batch(values, Some(levels), None)?;
                values.clear();
                levels.clear();
            }
            Column::Texts { values, levels } => {
                writer.typed::<ByteArrayType>().write_batch(values, Some(levels), None)?;
                values.clear();
                levels.clear();
            }
        }
        writer.close()
    }
}

/// The columns as optional integers and texts.
fn schema() -> Result<TypePtr, ParquetError> {
    let column = |(name, is_number): (&str, bool)| {
        let (physical, converted) = if is_number {
            (PhysicalType::INT64, ConvertedType::NONE)
        } else {
            (PhysicalType::BYTE_ARRAY, ConvertedType::UTF8)
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_converted_type(converted)
            .build()?;
        Ok(Arc::new(column))
    };
    let columns = EVENT_COLUMNS.into_iter().map(column).collect::<Result<_, ParquetError>>()?;
    Ok(Arc::new(Type::group_type_builder("events").with_fields(columns).build()?))
}
