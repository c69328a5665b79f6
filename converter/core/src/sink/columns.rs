//! Parquet files, written in Arrow record batches: one file of requests, or a folder with one file per table.

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
use crate::output::{create_temporary, persist, resolve};
use crate::rows::{Bio, Call, Request, Row, Type, Value, WaitInterval, columns};

/// Rows of a record batch: enough for dictionary encoding to pay off, few enough to take only some MB.
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

/// One Parquet file. It has a temporary name in the same folder until `commit`.
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
        let file = create_temporary(path).map_err(|source| Error::Write { path: path.to_owned(), source })?;
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
        self.end_row()
    }

    /// Ends a row, for which each builder got one value.
    fn end_row(&mut self) -> Result<()> {
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

/// Writes the high-level log as one Parquet file. Facts and losses are key-value metadata: `syncline.KEY`, `syncline.loss.REASON`.
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

/// Writes every table as a Parquet file of one folder.
pub struct TablesFolder {
    folder: PathBuf,
    sync: Table,
    bio: Table,
    call: Table,
    wait: Table,
    /// The last field, because fields drop in order: unfinished tables must remove their files before the folder can go.
    _created: CreatedFolder,
}

/// The folder, if it did not exist before. It is removed again when no table was finished.
struct CreatedFolder(Option<PathBuf>);

impl CreatedFolder {
    fn create(folder: &Path) -> Result<Self> {
        let created = (!folder.exists()).then(|| folder.to_owned());
        std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        Ok(Self(created))
    }
}

impl Drop for CreatedFolder {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            // Fails if a table is in it.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

impl TablesFolder {
    /// Creates the folder if it does not exist. Replaces its table files. Other files stay unchanged.
    pub fn create(folder: &Path) -> Result<Self> {
        let created = CreatedFolder::create(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            sync: Table::of::<Request>(folder)?,
            bio: Table::of::<Bio>(folder)?,
            call: Table::of::<Call>(folder)?,
            wait: Table::of::<WaitInterval>(folder)?,
            _created: created,
        })
    }

    fn loss_table(&self, losses: &Losses) -> Result<Table> {
        let mut table = Table::create(&table_path(&self.folder, "syncline_loss"), columns::LOSS)?;
        for (reason, tally) in losses.iter() {
            push_loss(&mut table, reason, tally)?;
        }
        Ok(table)
    }

    fn mark_table(&self, marks: &[Mark]) -> Result<Table> {
        let mut table = Table::create(&table_path(&self.folder, "syncline_mark"), columns::MARK)?;
        let none = Names::default();
        for (i, mark) in marks.iter().enumerate() {
            table.builders[0].push(Value::Int(i as i64 + 1), &none);
            table.builders[1].push(Value::Int(mark.ts), &none);
            table.builders[2].push(mark.dur.map_or(Value::Null, Value::Int), &none);
            table.builders[3].text(Some(&mark.name));
            table.end_row()?;
        }
        Ok(table)
    }

    fn meta_table(&self, meta: &[(String, String)]) -> Result<Table> {
        let mut table = Table::create(&table_path(&self.folder, "syncline_meta"), columns::META)?;
        for (key, value) in meta {
            table.builders[0].text(Some(key));
            table.builders[1].text(Some(value));
            table.end_row()?;
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
    table.end_row()
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
            r.request.waits.iter().try_for_each(|wait| self.wait.push(wait, names))?;
        }
        Ok(())
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, _: &Names) -> Result<()> {
        let mut rest = [self.loss_table(losses)?, self.mark_table(&facts.marks)?, self.meta_table(&facts.meta)?];
        for table in [&mut self.sync, &mut self.bio, &mut self.call, &mut self.wait].into_iter().chain(&mut rest) {
            table.commit(&facts.meta)?;
        }
        Ok(())
    }
}
