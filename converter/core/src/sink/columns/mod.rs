//! Parquet files: one file of requests, or a folder with one file per table.

mod column;
mod table;
mod whole;
pub mod writes;

use std::io;
use std::path::{Path, PathBuf};

pub use self::table::Contents;
use self::table::{Cell, Complete, Table};
pub use self::whole::is_damaged;
use super::{Group, Mark, RunFacts, Sink};
use crate::error::{Error, Result};
use crate::losses::Losses;
use crate::names::Names;
use crate::output::part::{self, CreatedFolders, PartFolder};
use crate::output::path::{folder, follow, refuse_foreign_links, resolve};
use crate::rows::file_op::FileOp;
use crate::rows::{Bio, Call, Commit, Phase, Request, Row, Value, WaitInterval, WriteWait, columns};

fn table<R: Row>(folder: &Path, contents: &Contents) -> Result<Table> {
    let table = Table::of_rows::<R>(&table_path(folder, R::TABLE), contents)?;
    Ok(if contents.has(R::TABLE) { table } else { table.without_rows() })
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
        Ok(Self { table: Some(Table::create(path, Request::COLUMNS, false)?) })
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

/// The fact that says `no` if no sync can be in the inputs. Then what belongs to no sync is not known to be background writeback.
const SYNCS_RECORDED: &str = "syncs_recorded";
/// Metadata of each table of a folder: the checksums of the rows of all of them. Tables with other checksums are of another conversion.
const CHECKSUMS: &str = "checksums";

/// Writes every table as a Parquet file of one folder.
pub struct TablesFolder {
    /// `None` once they are complete.
    tables: Option<Tables>,
    is_temporary: bool,
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
    write_wait: Table,
    file_op: Table,
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
    pub fn create(path: &Path, contents: &Contents) -> Result<Self> {
        refuse_foreign_links(path)?;
        let path = &follow(path)?;
        let (place, above) = if path.exists() {
            part::remove_dead(path);
            (Place::Existing { folder: path.to_owned() }, None)
        } else {
            let above = CreatedFolders::create(folder(path))?;
            part::remove_dead(folder(path));
            let part = PartFolder::create(path)?;
            (Place::New { part, folder: path.to_owned() }, Some(above))
        };
        let at = place.folder();
        let tables = Tables {
            // Whoever reads the tables counts the requests.
            sync: Table::of_rows::<Request>(&table_path(at, Request::TABLE), contents)?,
            bio: table::<Bio>(at, contents)?,
            call: table::<Call>(at, contents)?,
            wait: table::<WaitInterval>(at, contents)?,
            phase: table::<Phase>(at, contents)?,
            commit: table::<Commit>(at, contents)?,
            write_wait: table::<WriteWait>(at, contents)?,
            file_op: table::<FileOp>(at, contents)?,
        };
        Ok(Self { tables: Some(tables), is_temporary: contents.is_temporary, place: Some(place), above })
    }
}

fn loss_table(folder: &Path, losses: &Losses) -> Result<Table> {
    let mut table = Table::create(&table_path(folder, "syncline_loss"), columns::LOSS, false)?;
    for (reason, tally) in losses.iter() {
        table.push_cells(&[
            Cell::Text(Some(reason.name())),
            Cell::Text(Some(reason.severity().name())),
            Cell::Value(Value::Int(tally.count as i64)),
            Cell::Value(Value::int(tally.first_ts)),
            Cell::Value(Value::int(tally.last_ts)),
            Cell::Text(tally.example.as_deref()),
            Cell::Text(Some(reason.meaning())),
        ])?;
    }
    Ok(table)
}

fn mark_table(folder: &Path, marks: &[Mark]) -> Result<Table> {
    let mut table = Table::create(&table_path(folder, "syncline_mark"), columns::MARK, false)?;
    for (i, mark) in marks.iter().enumerate() {
        table.push_cells(&[
            Cell::Value(Value::Int(i as i64 + 1)),
            Cell::Value(Value::Int(mark.ts)),
            Cell::Value(Value::int(mark.dur)),
            Cell::Text(Some(&mark.name)),
        ])?;
    }
    Ok(table)
}

fn meta_table(folder: &Path, meta: &[(String, String)]) -> Result<Table> {
    let mut table = Table::create(&table_path(folder, "syncline_meta"), columns::META, false)?;
    for (key, value) in meta {
        table.push_cells(&[Cell::Text(Some(key)), Cell::Text(Some(value))])?;
    }
    Ok(table)
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

    fn write_wait(&mut self, wait: &WriteWait, names: &Names) -> Result<()> {
        let Some(tables) = &mut self.tables else { return Ok(()) };
        tables.write_wait.push(wait, names)
    }

    fn wants_file_ops(&self) -> bool {
        // Also where their table is not needed: the facts of a run, such as its first time, must not depend on what will be read.
        true
    }

    fn file_op(&mut self, op: &FileOp, names: &Names) -> Result<()> {
        let Some(tables) = &mut self.tables else { return Ok(()) };
        tables.file_op.push(op, names)
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, _: &Names) -> Result<()> {
        let (Some(tables), Some(place)) = (self.tables.take(), self.place.take()) else { return Ok(()) };
        let at = place.folder();
        let Tables { sync, mut bio, call, wait, phase, commit, write_wait, file_op } = tables;
        if facts.meta.iter().any(|(key, value)| key == SYNCS_RECORDED && value == "no") {
            bio = bio.without_values::<Bio>("origin", self.is_temporary)?;
        }
        let mut tables = vec![
            sync,
            bio,
            call,
            wait,
            phase,
            commit,
            write_wait,
            file_op,
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
