//! A column of a Parquet file. Values wait until there are some thousands, and then as encoded pages until their group of rows is complete.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use foldhash::HashMap;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl, get_column_writer, get_typed_column_writer};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::names::{NameId, Names};
use crate::rows::{Type, Value};

/// The definition levels of Parquet for a column that may be null.
const NULL: i16 = 0;
const PRESENT: i16 = 1;

pub(super) enum Column {
    /// `Type::Int`, and `Type::UInt` with the same bits.
    Int(Typed<Int64Type>),
    Bool(Typed<BoolType>),
    /// With the names that the values since the last call of `encode` have.
    Text(Typed<ByteArrayType>, HashMap<NameId, ByteArray>),
}

impl Column {
    pub(super) fn new(kind: Type, description: ColumnDescPtr, properties: WriterPropertiesPtr) -> Self {
        match kind {
            Type::Int | Type::UInt => Self::Int(Typed::new(description, properties)),
            Type::Bool => Self::Bool(Typed::new(description, properties)),
            Type::Text => Self::Text(Typed::new(description, properties), HashMap::default()),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, value: Value, names: &Names) {
        match (self, value) {
            (Self::Int(column), Value::Int(v)) => column.push(v),
            (Self::Int(column), Value::UInt(v)) => column.push(v.cast_signed()),
            (Self::Bool(column), Value::Bool(v)) => column.push(v),
            (Self::Text(column, known), Value::Name(id)) => {
                let text = known.entry(id).or_insert_with(|| names.text(id).into_owned().into_bytes().into());
                column.push(text.clone());
            }
            (Self::Text(column, _), Value::Word(v)) => column.push(Bytes::from_static(v.as_bytes()).into()),
            (Self::Text(column, _), Value::Address(v)) => column.push(format!("0x{v:x}").into_bytes().into()),
            (Self::Text(column, _), Value::Dev(v)) => column.push(v.to_string().into_bytes().into()),
            (Self::Int(column), _) => column.levels.push(NULL),
            (Self::Bool(column), _) => column.levels.push(NULL),
            (Self::Text(column, _), _) => column.levels.push(NULL),
        }
    }

    pub(super) fn push_text(&mut self, text: Option<&str>) {
        match (self, text) {
            (Self::Text(column, _), Some(text)) => column.push(text.into()),
            (Self::Text(column, _), None) => column.levels.push(NULL),
            _ => {}
        }
    }

    /// Encodes the values of this many rows. Rows that got no value are null.
    pub(super) fn encode(&mut self, rows: usize) -> Result<()> {
        match self {
            Self::Int(column) => column.encode(rows),
            Self::Bool(column) => column.encode(rows),
            Self::Text(column, known) => {
                known.clear();
                column.encode(rows)
            }
        }
    }

    /// Ends the current group of rows. Returns the column's encoded pages in it, with their metadata; `None` if the group has no rows.
    pub(super) fn take_pages(&mut self) -> Result<Option<(Bytes, ColumnCloseResult)>> {
        match self {
            Self::Int(column) => column.take_pages(),
            Self::Bool(column) => column.take_pages(),
            Self::Text(column, _) => column.take_pages(),
        }
    }
}

/// A column of one physical type.
pub(super) struct Typed<T: DataType> {
    values: Vec<T::T>,
    /// One for each row, null or present.
    levels: Vec<i16>,
    description: ColumnDescPtr,
    properties: WriterPropertiesPtr,
    /// `None` at the beginning of a group of rows.
    encoder: Option<Encoder<T>>,
}

struct Encoder<T: DataType> {
    writer: ColumnWriterImpl<'static, T>,
    pages: SharedBytes,
}

impl<T: DataType> Typed<T> {
    fn new(description: ColumnDescPtr, properties: WriterPropertiesPtr) -> Self {
        Self { values: Vec::new(), levels: Vec::new(), description, properties, encoder: None }
    }

    fn push(&mut self, value: T::T) {
        self.values.push(value);
        self.levels.push(PRESENT);
    }

    fn encode(&mut self, rows: usize) -> Result<()> {
        self.levels.resize(rows, NULL);
        let encoder = self.encoder.get_or_insert_with(|| {
            let pages = SharedBytes::default();
            let writer = Box::new(Pages(TrackedWrite::new(pages.clone())));
            let writer = get_column_writer(Arc::clone(&self.description), Arc::clone(&self.properties), writer);
            Encoder { writer: get_typed_column_writer(writer), pages }
        });
        encoder.writer.write_batch(&self.values, Some(&self.levels), None)?;
        self.values.clear();
        self.levels.clear();
        Ok(())
    }

    fn take_pages(&mut self) -> Result<Option<(Bytes, ColumnCloseResult)>> {
        let Some(Encoder { writer, pages }) = self.encoder.take() else { return Ok(None) };
        let closed = writer.close()?;
        Ok(Some((pages.take(), closed)))
    }
}

/// Encoded pages of a column. Parquet writes the columns of a group of rows one after another, but rows have all of them.
struct Pages(TrackedWrite<SharedBytes>);

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        SerializedPageWriter::new(&mut self.0).write_page(page)
    }

    fn close(&mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}

#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl SharedBytes {
    fn take(&self) -> Bytes {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
