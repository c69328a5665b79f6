//! The table of writes, one Parquet file that `syncline model` reads and removes.

use std::path::Path;

use super::table::Table;
use crate::error::Result;
use crate::names::Names;
use crate::output::part;
use crate::output::path::{folder, resolve};
use crate::rows::Row;
use crate::rows::write::WriteRow;
use crate::sink::WriteSink;

pub struct WritesParquet {
    /// `None` once it is complete.
    table: Option<Table>,
}

impl WritesParquet {
    pub fn create(path: &Path) -> Result<Self> {
        part::remove_dead(folder(&resolve(path)?));
        Ok(Self { table: Some(Table::create(path, WriteRow::COLUMNS, true)?) })
    }
}

impl WriteSink for WritesParquet {
    fn row(&mut self, row: &WriteRow, names: &Names) -> Result<()> {
        self.table.as_mut().map_or(Ok(()), |table| table.push(row, names))
    }

    fn finish(&mut self) -> Result<()> {
        self.table.take().map_or(Ok(()), |table| table.complete([])?.persist())
    }
}
