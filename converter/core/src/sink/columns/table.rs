//! One Parquet file. Rows come one at a time, and are written in groups.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type as SchemaType, TypePtr};

use super::column::Column;
use super::whole;
use crate::error::{Error, Result};
use crate::names::Names;
use crate::output::part::{Access, Part};
use crate::output::path::resolve;
use crate::rows::{Row, Type, Value};

/// Rows that are encoded at once: few enough to take only some MB.
const BATCH_ROWS: usize = 1 << 13;
/// Multiples of `BATCH_ROWS`.
const PAGE_ROWS: usize = 1 << 15;
const ROW_GROUP_ROWS: usize = 1 << 18;

/// The columns of a folder of tables that are written.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The files are removed soon, so they are not compressed.
    pub is_temporary: bool,
    /// The tables and columns that are needed: `TABLE`, `TABLE.COLUMN`, and `TABLE.*` for all its columns. `None` for everything. Other tables are empty, other columns
    /// null.
    pub needed: Option<HashSet<String>>,
}

impl Contents {
    fn has_column(&self, table: &str, column: &str) -> bool {
        self.has(&format!("{table}.*")) || self.has(&format!("{table}.{column}"))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.needed.as_ref().is_none_or(|needed| needed.contains(name))
    }
}

/// The schema of a file: a list of columns. Each of them may be null.
fn schema(columns: &[(&'static str, Type)]) -> ParquetResult<TypePtr> {
    let fields = columns.iter().map(|&(name, kind)| {
        let (physical, logical) = match kind {
            Type::Int => (PhysicalType::INT64, None),
            Type::UInt => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            Type::Bool => (PhysicalType::BOOLEAN, None),
            Type::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = SchemaType::primitive_type_builder(name, physical).with_logical_type(logical);
        Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?))
    });
    let fields = fields.collect::<ParquetResult<_>>()?;
    Ok(Arc::new(SchemaType::group_type_builder("schema").with_fields(fields).build()?))
}

/// How the columns are encoded. Most numbers differ in each row: a dictionary of them would take time and no less room than their differences.
fn properties(columns: &[(&'static str, Type)], is_temporary: bool) -> WriterProperties {
    let compression = if is_temporary { Compression::UNCOMPRESSED } else { Compression::ZSTD(ZstdLevel::default()) };
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_write_batch_size(BATCH_ROWS)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for &(name, kind) in columns {
        let column = ColumnPath::from(name);
        properties = match kind {
            Type::Int | Type::UInt => properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED),
            Type::Text => properties.set_column_statistics_enabled(column, EnabledStatistics::None),
            Type::Bool => properties,
        };
    }
    properties.build()
}

/// A value of a table that is no `Row`.
pub(super) enum Cell<'a> {
    Value(Value),
    Text(Option<&'a str>),
}

/// A file with the checksum of what was written to it.
struct Summed {
    file: Part,
    crc: flate2::Crc,
    /// The metadata at the end of the file, once they begin: they hold the checksum, so they are written last.
    metadata: Option<Vec<u8>>,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(metadata) = &mut self.metadata {
            return metadata.write(bytes);
        }
        let written = self.file.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// One Parquet file. It has a temporary name until it is complete.
pub(super) struct Table {
    path: PathBuf,
    columns: Vec<Column>,
    /// Which of the columns get values. The others are null.
    is_needed: Vec<bool>,
    /// Whether it gets rows.
    has_rows: bool,
    /// Whether it gets a checksum of the whole file.
    is_summed: bool,
    /// Number of rows that are not encoded.
    waiting: usize,
    /// Number of encoded rows of the current group.
    encoded: usize,
    writer: SerializedFileWriter<Summed>,
}

impl Table {
    /// Creates the file of a table of rows, which may have parts only.
    pub(super) fn of_rows<R: Row>(path: &Path, contents: &Contents) -> Result<Self> {
        let mut table = Self::create(path, R::COLUMNS, contents.is_temporary)?;
        for (is_needed, (column, _)) in table.is_needed.iter_mut().zip(R::COLUMNS) {
            *is_needed = contents.has_column(R::TABLE, column);
        }
        Ok(table)
    }

    pub(super) fn create(path: &Path, columns: &[(&'static str, Type)], is_temporary: bool) -> Result<Self> {
        let path = &resolve(path)?;
        if path.metadata().is_ok_and(|meta| !meta.is_file()) {
            return Err(Error::Encode { path: path.clone(), message: "Parquet needs a plain file".into() });
        }
        let file = Part::create(path, Access::Usual)?;
        let file = Summed { file, crc: flate2::Crc::new(), metadata: None };
        let properties = Arc::new(properties(columns, is_temporary));
        let writer =
            schema(columns).and_then(|schema| SerializedFileWriter::new(file, schema, Arc::clone(&properties)));
        let writer = writer.map_err(|e| encode(path, &e))?;
        let is_needed = vec![true; columns.len()];
        let descriptions = writer.schema_descr().columns();
        let column = |(&(_, kind), description): (&(&str, Type), _)| {
            Column::new(kind, Arc::clone(description), Arc::clone(&properties))
        };
        let columns = columns.iter().zip(descriptions).map(column).collect();
        Ok(Self {
            path: path.to_owned(),
            columns,
            is_needed,
            has_rows: true,
            is_summed: !is_temporary,
            waiting: 0,
            encoded: 0,
            writer,
        })
    }

    /// Returns the table as one that stays empty.
    pub(super) fn without_rows(self) -> Self {
        Self { has_rows: false, ..self }
    }

    pub(super) fn push<R: Row>(&mut self, row: &R, names: &Names) -> Result<()> {
        if !self.has_rows {
            return Ok(());
        }
        let mut columns = self.columns.iter_mut().zip(&self.is_needed);
        row.visit(&mut |_, value| {
            if let Some((column, true)) = columns.next() {
                column.push(value, names);
            }
        });
        self.end_row()
    }

    /// Adds a row of a table that has all its columns.
    pub(super) fn push_cells(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        let none = Names::default();
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match cell {
                Cell::Value(value) => column.push(*value, &none),
                Cell::Text(text) => column.push_text(*text),
            }
        }
        self.end_row()
    }

    /// Ends a row, for which each needed column got one value.
    fn end_row(&mut self) -> Result<()> {
        self.waiting += 1;
        if self.waiting < BATCH_ROWS {
            return Ok(());
        }
        self.encode_rows()?;
        if self.encoded < ROW_GROUP_ROWS { Ok(()) } else { self.write_group() }
    }

    fn encode_rows(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        self.encoded += rows;
        self.columns.iter_mut().try_for_each(|column| column.encode(rows)).map_err(|e| encode(&self.path, &e))
    }

    fn write_group(&mut self) -> Result<()> {
        self.encoded = 0;
        write_group(&mut self.columns, &mut self.writer).map_err(|e| encode(&self.path, &e))
    }

    /// Writes the remaining rows and returns the checksum of all of them.
    pub(super) fn end_rows(&mut self) -> Result<u32> {
        if self.waiting > 0 {
            self.encode_rows()?;
        }
        if self.encoded > 0 {
            self.write_group()?;
        }
        self.writer.flush().map_err(|source| Error::Write { path: self.path.clone(), source })?;
        Ok(self.writer.inner().crc.sum())
    }

    /// Writes the rows again, with null in one column: what its values say has turned out not to be known.
    pub(super) fn without_values<R: Row>(mut self, name: &str, is_temporary: bool) -> Result<Self> {
        self.end_rows()?;
        let from = self.writer.inner().file.path();
        let file = File::open(&from).map_err(|source| Error::Read { path: from.display().to_string(), source })?;
        let mut table = Self::create(&self.path, R::COLUMNS, is_temporary)?;
        for group in self.writer.flushed_row_groups() {
            table.copy_group(group, &file, name).map_err(|e| encode(&self.path, &e))?;
        }
        Ok(table)
    }

    /// Copies a group of rows from another file, without the values of a column.
    fn copy_group(&mut self, group: &RowGroupMetaData, file: &File, without: &str) -> ParquetResult<()> {
        let rows = group.num_rows() as usize;
        let mut writer = self.writer.next_row_group()?;
        for (column, chunk) in self.columns.iter_mut().zip(group.columns()) {
            if chunk.column_descr().name() != without {
                let closed = ColumnCloseResult {
                    bytes_written: chunk.compressed_size() as u64,
                    rows_written: rows as u64,
                    metadata: chunk.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                writer.append_column(file, closed)?;
                continue;
            }
            column.encode(rows)?;
            if let Some((pages, closed)) = column.take_pages()? {
                writer.append_column(&pages, closed)?;
            }
        }
        writer.close()?;
        Ok(())
    }

    /// Writes the metadata, which end a Parquet file.
    pub(super) fn complete<'a>(mut self, meta: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Complete> {
        self.end_rows()?;
        for (key, value) in meta {
            self.writer.append_key_value_metadata(KeyValue::new(format!("syncline.{key}"), value.to_owned()));
        }
        if self.is_summed {
            self.writer.append_key_value_metadata(whole::placeholder());
        }
        self.writer.inner_mut().metadata = Some(Vec::new());
        let Summed { mut file, crc, metadata } = self.writer.into_inner().map_err(|e| encode(&self.path, &e))?;
        let mut metadata = metadata.unwrap_or_default();
        whole::seal(crc, &mut metadata);
        file.write_all(&metadata).map_err(|source| Error::Write { path: self.path.clone(), source })?;
        Ok(Complete { file, path: self.path })
    }
}

/// Writes the encoded pages of all columns, one column after another.
fn write_group(columns: &mut [Column], writer: &mut SerializedFileWriter<Summed>) -> ParquetResult<()> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        if let Some((pages, closed)) = column.take_pages()? {
            group.append_column(&pages, closed)?;
        }
    }
    group.close()?;
    Ok(())
}

/// A complete table that still has its temporary name.
pub(super) struct Complete {
    file: Part,
    pub(super) path: PathBuf,
}

impl Complete {
    pub(super) fn persist(self) -> Result<()> {
        self.file.persist(&self.path)
    }
}

fn encode(path: &Path, error: &impl std::fmt::Display) -> Error {
    Error::Encode { path: path.to_owned(), message: error.to_string() }
}
