//! Parquet files, written in Arrow record batches: one file of requests, or a folder with one file per table.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::{Group, Mark, RunFacts, Sink};
use crate::error::{Error, Result};
use crate::losses::{LossCount, Losses, Reason};
use crate::names::Names;
use crate::output_path::{folder, refuse_foreign_links, resolve};
use crate::part::{self, Access, CreatedFolders, Part, PartFolder};
use crate::rows::{Bio, Call, Commit, Phase, Request, Row, Type, Value, WaitInterval, columns};

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
struct Table {
    path: PathBuf,
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
    writer: ArrowWriter<Summed>,
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
        let file =
            Part::create(path, Access::Usual).map_err(|source| Error::Write { path: path.to_owned(), source })?;
        let file = Summed { file, crc: flate2::Crc::new() };
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).map_err(|e| encode(path, &e))?;
        let builders = columns.iter().map(|&(_, kind)| Builder::new(kind)).collect();
        Ok(Self { path: path.to_owned(), schema, builders, rows: 0, writer })
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
        self.writer.write(&batch).map_err(|e| encode(&self.path, &e))
    }

    /// Writes the remaining rows and returns the checksum of all of them.
    fn end_rows(&mut self) -> Result<u32> {
        self.write_batch()?;
        self.writer.flush().map_err(|e| encode(&self.path, &e))?;
        self.writer.sync().map_err(|source| Error::Write { path: self.path.clone(), source })?;
        Ok(self.writer.inner().crc.sum())
    }

    /// Writes the metadata, which end a Parquet file.
    fn complete<'a>(mut self, meta: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Complete> {
        self.write_batch()?;
        for (key, value) in meta {
            self.writer.append_key_value_metadata(KeyValue::new(format!("syncline.{key}"), value.to_owned()));
        }
        let summed = self.writer.into_inner().map_err(|e| encode(&self.path, &e))?;
        Ok(Complete { file: summed.file, path: self.path })
    }
}

/// A complete table that still has its temporary name.
struct Complete {
    file: Part,
    path: PathBuf,
}

impl Complete {
    fn persist(self) -> Result<()> {
        self.file.persist(&self.path)
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
    /// `None` once it is complete.
    table: Option<Table>,
}

impl RequestsParquet {
    pub fn create(path: &Path) -> Result<Self> {
        part::remove_dead(folder(&resolve(path)?));
        Ok(Self { table: Some(Table::create(path, Request::COLUMNS)?) })
    }
}

impl Sink for RequestsParquet {
    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        let Some(table) = &mut self.table else { return Ok(()) };
        group.requests.iter().try_for_each(|r| table.push(r.request, names))
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, _: &Names) -> Result<()> {
        let Some(table) = self.table.take() else { return Ok(()) };
        let mut meta = facts.meta.clone();
        meta.extend(losses.iter().map(|(reason, tally)| (format!("loss.{}", reason.name()), tally.count.to_string())));
        table.complete(texts(&meta))?.persist()
    }
}

/// Metadata of each table of a folder: the checksums of the rows of all of them. Tables with other checksums are of another conversion.
const CHECKSUMS: &str = "checksums";

/// Writes every table as a Parquet file of one folder.
pub struct TablesFolder {
    /// `None` once they are complete.
    tables: Option<Tables>,
    place: Option<Place>,
    /// The last field, because fields drop in order: unfinished tables must remove their files before the folder can go.
    above: Option<CreatedFolders>,
}

struct Tables {
    sync: Table,
    bio: Table,
    call: Table,
    wait: Table,
    phase: Table,
    commit: Table,
}

/// Where the tables are written until they are complete.
enum Place {
    /// In a folder with a temporary name. It becomes `folder`, which does not exist.
    New { part: PartFolder, folder: PathBuf },
    /// In a folder that exists. It may hold other files, so it cannot be replaced as a whole.
    Existing { folder: PathBuf },
}

impl Place {
    fn folder(&self) -> &Path {
        match self {
            Self::New { part, .. } => part.path(),
            Self::Existing { folder } => folder,
        }
    }

    /// Gives all tables their names.
    ///
    /// In a folder that exists, the old table of requests is removed first and the new one comes last. Without it the folder is not a folder of
    /// tables. So one that a kill leaves with old and new tables is refused, not read.
    fn persist(self, sync: Complete, others: Vec<Complete>) -> Result<()> {
        if matches!(self, Self::Existing { .. }) {
            match std::fs::remove_file(&sync.path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::Write { path: sync.path, source });
                }
                _ => {}
            }
        }
        others.into_iter().try_for_each(Complete::persist)?;
        sync.persist()?;
        match self {
            Self::New { part, folder } => part.persist(&folder),
            Self::Existing { .. } => Ok(()),
        }
    }
}

impl TablesFolder {
    /// Creates the folder if it does not exist. Replaces its table files. Other files stay unchanged.
    pub fn create(path: &Path) -> Result<Self> {
        let fail = |source| Error::Write { path: path.to_owned(), source };
        refuse_foreign_links(path)?;
        let (place, above) = if path.exists() {
            part::remove_dead(path);
            (Place::Existing { folder: path.to_owned() }, None)
        } else {
            let above = CreatedFolders::create(folder(path)).map_err(fail)?;
            part::remove_dead(folder(path));
            let part = PartFolder::create(path).map_err(fail)?;
            (Place::New { part, folder: path.to_owned() }, Some(above))
        };
        let at = place.folder();
        let tables = Tables {
            sync: Table::of::<Request>(at)?,
            bio: Table::of::<Bio>(at)?,
            call: Table::of::<Call>(at)?,
            wait: Table::of::<WaitInterval>(at)?,
            phase: Table::of::<Phase>(at)?,
            commit: Table::of::<Commit>(at)?,
        };
        Ok(Self { tables: Some(tables), place: Some(place), above })
    }
}

fn loss_table(folder: &Path, losses: &Losses) -> Result<Table> {
    let mut table = Table::create(&table_path(folder, "syncline_loss"), columns::LOSS)?;
    for (reason, tally) in losses.iter() {
        push_loss(&mut table, reason, tally)?;
    }
    Ok(table)
}

fn mark_table(folder: &Path, marks: &[Mark]) -> Result<Table> {
    let mut table = Table::create(&table_path(folder, "syncline_mark"), columns::MARK)?;
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

fn meta_table(folder: &Path, meta: &[(String, String)]) -> Result<Table> {
    let mut table = Table::create(&table_path(folder, "syncline_meta"), columns::META)?;
    for (key, value) in meta {
        table.builders[0].text(Some(key));
        table.builders[1].text(Some(value));
        table.end_row()?;
    }
    Ok(table)
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

fn texts(meta: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    meta.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

impl Sink for TablesFolder {
    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        let Some(tables) = &mut self.tables else { return Ok(()) };
        tables.bio.push(bio, names)
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        let Some(tables) = &mut self.tables else { return Ok(()) };
        if let Some(call) = group.call {
            tables.call.push(call, names)?;
        }
        for r in group.requests {
            tables.sync.push(r.request, names)?;
            r.request.waits.iter().try_for_each(|wait| tables.wait.push(wait, names))?;
            r.request.phase_rows().try_for_each(|phase| tables.phase.push(&phase, names))?;
        }
        Ok(())
    }

    fn commit(&mut self, commit: &Commit, names: &Names) -> Result<()> {
        let Some(tables) = &mut self.tables else { return Ok(()) };
        tables.commit.push(commit, names)
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, _: &Names) -> Result<()> {
        let (Some(tables), Some(place)) = (self.tables.take(), self.place.take()) else { return Ok(()) };
        let at = place.folder();
        let Tables { sync, bio, call, wait, phase, commit } = tables;
        let mut tables = vec![
            sync,
            bio,
            call,
            wait,
            phase,
            commit,
            loss_table(at, losses)?,
            mark_table(at, &facts.marks)?,
            meta_table(at, &facts.meta)?,
        ];
        let sums = tables.iter_mut().map(Table::end_rows).collect::<Result<Vec<_>>>()?;
        let sums: Vec<_> = sums.iter().map(|sum| format!("{sum:08x}")).collect();
        let checksums = sums.join(" ");
        let meta = || texts(&facts.meta).chain([(CHECKSUMS, checksums.as_str())]);
        let mut complete = tables.into_iter().map(|table| table.complete(meta())).collect::<Result<Vec<_>>>()?;
        let sync = complete.remove(0);
        place.persist(sync, complete)?;
        self.above = None;
        Ok(())
    }
}
