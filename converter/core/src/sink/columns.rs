//! Columns: Arrow batches in Parquet files. One file of requests, or a folder with a file a table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use tempfile::NamedTempFile;

use super::{Group, Mark, RunFacts, Sink};
use crate::error::{Error, Result};
use crate::losses::{LossCount, Losses, Reason};
use crate::names::Names;
use crate::output::{beside, persist, resolve};
use crate::rows::{Bio, Call, Request, Row, Type, Value, WaitInterval, columns};

/// Rows of a batch: large enough for the dictionary to pay, small enough to hold a few MB.
const BATCH_ROWS: usize = 1 << 15;
const ROW_GROUP_ROWS: usize = 1 << 18;

enum Builder {
    Int(Int64Builder),
    UInt(UInt64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
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

/// One Parquet file, written beside its place until it is done.
struct Table {
    path: PathBuf,
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
    writer: Option<ArrowWriter<NamedTempFile>>,
}

impl Table {
    fn create(path: &Path, columns: &[(&'static str, Type)]) -> Result<Self> {
        let fields: Vec<Field> = columns
            .iter()
            .map(|&(name, kind)| {
                let kind = match kind {
                    Type::Int => DataType::Int64,
                    Type::UInt => DataType::UInt64,
                    Type::Bool => DataType::Boolean,
                    Type::Text => DataType::Utf8,
                };
                Field::new(name, kind, true)
            })
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .build();
        let path = &resolve(path)?;
        if path.metadata().is_ok_and(|meta| !meta.is_file()) {
            return Err(Error::Encode { path: path.clone(), message: "Parquet needs a plain file".into() });
        }
        let file = beside(path).map_err(|source| Error::Write { path: path.to_owned(), source })?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).map_err(|e| encode(path, &e))?;
        let builders = columns.iter().map(|&(_, kind)| Builder::new(kind)).collect();
        Ok(Self { path: path.to_owned(), schema, builders, rows: 0, writer: Some(writer) })
    }

    fn of<R: Row>(folder: &Path) -> Result<Self> {
        Self::create(&table_path(folder, R::TABLE), R::COLUMNS)
    }

    fn push<R: Row>(&mut self, row: &R, names: &Names) -> Result<()> {
        let mut builders = self.builders.iter_mut();
        row.visit(&mut |_, value| {
            if let Some(builder) = builders.next() {
                builder.push(value, names);
            }
        });
        self.row_done()
    }

    fn row_done(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows.is_multiple_of(BATCH_ROWS) { self.write_batch() } else { Ok(()) }
    }

    fn write_batch(&mut self) -> Result<()> {
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(|e| encode(&self.path, &e))?;
        if let Some(writer) = &mut self.writer {
            writer.write(&batch).map_err(|e| encode(&self.path, &e))?;
        }
        Ok(())
    }

    fn commit(&mut self, meta: &[(String, String)]) -> Result<()> {
        self.write_batch()?;
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        for (key, value) in meta {
            writer.append_key_value_metadata(KeyValue::new(format!("syncline.{key}"), value.clone()));
        }
        let file = writer.into_inner().map_err(|e| encode(&self.path, &e))?;
        persist(file, &self.path)
    }
}

fn encode(path: &Path, error: &impl std::fmt::Display) -> Error {
    Error::Encode { path: path.to_owned(), message: error.to_string() }
}

fn table_path(folder: &Path, table: &str) -> PathBuf {
    folder.join(format!("{table}.parquet"))
}

/// The high-level log as one Parquet file; facts and losses are in its key-value metadata, as `syncline.KEY` and `syncline.loss.REASON`.
pub struct RequestsParquet {
    table: Table,
}

impl RequestsParquet {
    pub fn create(path: &Path) -> Result<Self> {
        Ok(Self { table: Table::create(path, Request::COLUMNS)? })
    }
}

impl Sink for RequestsParquet {
    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        group.requests.iter().try_for_each(|r| self.table.push(r.request, names))
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, _: &Names) -> Result<()> {
        let mut meta = facts.meta.clone();
        meta.extend(losses.iter().map(|(reason, tally)| (format!("loss.{}", reason.name()), tally.count.to_string())));
        self.table.commit(&meta)
    }
}

/// Every table as a Parquet file in one folder.
pub struct TablesFolder {
    folder: PathBuf,
    sync: Table,
    bio: Table,
    call: Table,
    wait: Table,
    /// Dropped after the tables, whose unfinished files lie in it.
    _made: MadeFolder,
}

/// A folder that is made for the tables, and taken away again where none of them was finished.
struct MadeFolder(Option<PathBuf>);

impl MadeFolder {
    fn make(folder: &Path) -> Result<Self> {
        let made = (!folder.exists()).then(|| folder.to_owned());
        std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        Ok(Self(made))
    }
}

impl Drop for MadeFolder {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            // With tables in it, it stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

impl TablesFolder {
    /// The folder is made if it is missing; its table files are replaced, others left alone.
    pub fn create(folder: &Path) -> Result<Self> {
        let made = MadeFolder::make(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            sync: Table::of::<Request>(folder)?,
            bio: Table::of::<Bio>(folder)?,
            call: Table::of::<Call>(folder)?,
            wait: Table::of::<WaitInterval>(folder)?,
            _made: made,
        })
    }

    fn losses(&self, losses: &Losses) -> Result<Table> {
        let mut table = Table::create(&table_path(&self.folder, "syncline_loss"), columns::LOSS)?;
        for (reason, tally) in losses.iter() {
            push_loss(&mut table, reason, tally)?;
        }
        Ok(table)
    }

    fn marks(&self, marks: &[Mark]) -> Result<Table> {
        let mut table = Table::create(&table_path(&self.folder, "syncline_mark"), columns::MARK)?;
        let none = Names::default();
        for (i, mark) in marks.iter().enumerate() {
            table.builders[0].push(Value::Int(i as i64 + 1), &none);
            table.builders[1].push(Value::Int(mark.ts), &none);
            table.builders[2].push(mark.dur.map_or(Value::Null, Value::Int), &none);
            table.builders[3].text(Some(&mark.name));
            table.row_done()?;
        }
        Ok(table)
    }
}

fn push_loss(table: &mut Table, reason: Reason, tally: &LossCount) -> Result<()> {
    let none = Names::default();
    table.builders[0].text(Some(reason.name()));
    table.builders[1].text(Some(reason.severity().name()));
    table.builders[2].push(Value::Int(tally.count as i64), &none);
    table.builders[3].push(tally.first_ts.map_or(Value::Null, Value::Int), &none);
    table.builders[4].push(tally.last_ts.map_or(Value::Null, Value::Int), &none);
    table.builders[5].text(tally.example.as_deref());
    table.builders[6].text(Some(reason.meaning()));
    table.row_done()
}

impl Sink for TablesFolder {
    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        self.bio.push(bio, names)
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        if let Some(call) = group.call {
            self.call.push(call, names)?;
        }
        for r in group.requests {
            self.sync.push(r.request, names)?;
            r.request.waits.iter().try_for_each(|waited| self.wait.push(waited, names))?;
        }
        Ok(())
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, _: &Names) -> Result<()> {
        let mut rest = [self.losses(losses)?, self.marks(&facts.marks)?, {
            let mut meta = Table::create(&table_path(&self.folder, "syncline_meta"), columns::META)?;
            for (key, value) in &facts.meta {
                meta.builders[0].text(Some(key));
                meta.builders[1].text(Some(value));
                meta.row_done()?;
            }
            meta
        }];
        for table in [&mut self.sync, &mut self.bio, &mut self.call, &mut self.wait].into_iter().chain(&mut rest) {
            table.commit(&facts.meta)?;
        }
        Ok(())
    }
}
