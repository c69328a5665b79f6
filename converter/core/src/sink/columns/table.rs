//! One Parquet file, written in Arrow record batches.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::error::{Error, Result};
use crate::names::Names;
use crate::output_path::resolve;
use crate::part::{Access, Part};
use crate::rows::{Row, Type, Value};

/// Rows of a record batch: enough for dictionary encoding to pay off, few enough to take only some MB.
const BATCH_ROWS: usize = 1 << 15;
const ROW_GROUP_ROWS: usize = 1 << 18;

enum Builder {
    Int(Int64Builder),
    UInt(UInt64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
}

/// What is written of the columns of a folder of tables.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The files are removed soon, so they are not compressed.
    pub is_temporary: bool,
    /// The tables and columns that are needed, by name; `None` for all. Other tables are empty, other columns null.
    pub needed: Option<HashSet<String>>,
}

impl Contents {
    /// Whether a table, or a column of it, is needed.
    pub(super) fn has(&self, name: &str) -> bool {
        self.needed.as_ref().is_none_or(|needed| needed.contains(name))
    }
}

fn data_type(kind: Type) -> DataType {
    match kind {
        Type::Int => DataType::Int64,
        Type::UInt => DataType::UInt64,
        Type::Bool => DataType::Boolean,
        Type::Text => DataType::Utf8,
    }
}

/// How the columns are encoded. Most numbers differ in each row: a dictionary of them would take time and no less room than their differences.
fn properties(columns: &[(&'static str, Type)], is_temporary: bool) -> WriterProperties {
    let compression = if is_temporary { Compression::UNCOMPRESSED } else { Compression::ZSTD(ZstdLevel::default()) };
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
    for (name, _) in columns.iter().filter(|(_, kind)| matches!(kind, Type::Int | Type::UInt)) {
        properties = properties
            .set_column_dictionary_enabled(ColumnPath::from(*name), false)
            .set_column_encoding(ColumnPath::from(*name), Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

impl Builder {
    fn new(kind: Type) -> Self {
        match kind {
            Type::Int => Self::Int(Int64Builder::new()),
            Type::UInt => Self::UInt(UInt64Builder::new()),
            Type::Bool => Self::Bool(BooleanBuilder::new()),
            Type::Text => Self::Text(StringBuilder::new()),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Int(b) => Arc::new(b.finish()),
            Self::UInt(b) => Arc::new(b.finish()),
            Self::Bool(b) => Arc::new(b.finish()),
            Self::Text(b) => Arc::new(b.finish()),
        }
    }

    fn text(&mut self, text: Option<&str>) {
        if let Self::Text(b) = self {
            b.append_option(text);
        }
    }

    fn push(&mut self, value: Value, names: &Names) {
        match (self, value) {
            (Self::Int(b), Value::Int(v)) => b.append_value(v),
            (Self::UInt(b), Value::UInt(v)) => b.append_value(v),
            (Self::Bool(b), Value::Bool(v)) => b.append_value(v),
            (Self::Text(b), Value::Name(v)) => b.append_value(names.text(v)),
            (Self::Text(b), Value::Word(v)) => b.append_value(v),
            (Self::Text(b), Value::Address(v)) => b.append_value(format!("0x{v:x}")),
            (Self::Text(b), Value::Dev(v)) => b.append_value(v.to_string()),
            (Self::Int(b), _) => b.append_null(),
            (Self::UInt(b), _) => b.append_null(),
            (Self::Bool(b), _) => b.append_null(),
            (Self::Text(b), _) => b.append_null(),
        }
    }
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
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
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
    schema: SchemaRef,
    /// `None` for a column that is not needed.
    builders: Vec<Option<Builder>>,
    /// Whether it gets rows.
    has_rows: bool,
    /// Number of rows in the builders.
    waiting: usize,
    writer: ArrowWriter<Summed>,
}

impl Table {
    pub(super) fn create(path: &Path, columns: &[(&'static str, Type)], contents: &Contents) -> Result<Self> {
        let fields: Vec<Field> = columns.iter().map(|&(name, kind)| Field::new(name, data_type(kind), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = properties(columns, contents.is_temporary);
        let path = &resolve(path)?;
        if path.metadata().is_ok_and(|meta| !meta.is_file()) {
            return Err(Error::Encode { path: path.clone(), message: "Parquet needs a plain file".into() });
        }
        let file =
            Part::create(path, Access::Usual).map_err(|source| Error::Write { path: path.to_owned(), source })?;
        let file = Summed { file, crc: flate2::Crc::new() };
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).map_err(|e| encode(path, &e))?;
        let builder = |&(name, kind): &(&str, Type)| contents.has(name).then(|| Builder::new(kind));
        let builders = columns.iter().map(builder).collect();
        Ok(Self { path: path.to_owned(), schema, builders, has_rows: true, waiting: 0, writer })
    }

    /// Returns the table as one that stays empty.
    pub(super) fn without_rows(self) -> Self {
        Self { has_rows: false, ..self }
    }

    pub(super) fn push<R: Row>(&mut self, row: &R, names: &Names) -> Result<()> {
        if !self.has_rows {
            return Ok(());
        }
        let mut builders = self.builders.iter_mut();
        row.visit(&mut |_, value| {
            if let Some(Some(builder)) = builders.next() {
                builder.push(value, names);
            }
        });
        self.end_row()
    }

    /// Adds a row of a table that has all its columns.
    pub(super) fn push_cells(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        let none = Names::default();
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            match (builder, cell) {
                (Some(builder), Cell::Value(value)) => builder.push(*value, &none),
                (Some(builder), Cell::Text(text)) => builder.text(*text),
                (None, _) => {}
            }
        }
        self.end_row()
    }

    /// Ends a row, for which each builder got one value.
    fn end_row(&mut self) -> Result<()> {
        self.waiting += 1;
        if self.waiting == BATCH_ROWS { self.write_batch() } else { Ok(()) }
    }

    fn write_batch(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        let columns = self.builders.iter_mut().zip(self.schema.fields()).map(|(builder, field)| match builder {
            Some(builder) => builder.finish(),
            None => new_null_array(field.data_type(), rows),
        });
        let columns = columns.collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(|e| encode(&self.path, &e))?;
        self.writer.write(&batch).map_err(|e| encode(&self.path, &e))
    }

    /// Writes the remaining rows and returns the checksum of all of them.
    pub(super) fn end_rows(&mut self) -> Result<u32> {
        self.write_batch()?;
        self.writer.flush().map_err(|e| encode(&self.path, &e))?;
        self.writer.sync().map_err(|source| Error::Write { path: self.path.clone(), source })?;
        Ok(self.writer.inner().crc.sum())
    }

    /// Writes the metadata, which end a Parquet file.
    pub(super) fn complete<'a>(mut self, meta: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Complete> {
        self.write_batch()?;
        for (key, value) in meta {
            self.writer.append_key_value_metadata(KeyValue::new(format!("syncline.{key}"), value.to_owned()));
        }
        let summed = self.writer.into_inner().map_err(|e| encode(&self.path, &e))?;
        Ok(Complete { file: summed.file, path: self.path })
    }
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
