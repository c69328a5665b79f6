//! Which threads made page cache dirty, by file. The recorder writes the table next to its log, one JSON object a line: a file and a thread.

use std::collections::BTreeMap;

use crate::event::Dev;
use crate::recorder_tables::threads::ThreadTable;
use crate::recorder_tables::{Row, each_row};

/// How many names a text has at most.
const MAX_NAMES: usize = 3;

#[derive(Clone, Debug)]
struct Writer {
    tid: u32,
    comm: String,
    folios: u64,
}

#[derive(Clone, Debug, Default)]
pub struct WriterTable {
    /// In an order that does not change between runs, because outputs number names as they come.
    by_file: BTreeMap<(Dev, u64), Vec<Writer>>,
}

impl WriterTable {
    /// Adds the lines of a table. Fails with the number of the first line that is not one of a file and a thread, and the reason.
    pub fn add(&mut self, text: &[u8]) -> Result<(), (usize, String)> {
        each_row(text, |row| self.add_row(row))
    }

    fn add_row(&mut self, row: &Row) -> Result<(), String> {
        let comm = row.text("comm").ok_or("it has no text `comm`")?;
        let (ino, tid, folios) = (row.number("ino")?, row.number_32("tid")?, row.number("folios")?);
        // The recorder does not know the file system of every file.
        if row.has("dev") {
            let dev = Dev(row.number_32("dev")?);
            self.by_file.entry((dev, ino)).or_default().push(Writer { tid, comm, folios });
        }
        Ok(())
    }

    /// Returns who made each file dirty, as text: the name of the process, or `several (a, b)`, who wrote most first. The name is that of the
    /// thread where its process is not known. The second text are their control groups; `None` if that of one of them is not known.
    pub fn texts(&self, threads: &ThreadTable) -> impl Iterator<Item = ((Dev, u64), (String, Option<String>))> {
        let processes: BTreeMap<u32, &str> = threads.process_names().collect();
        let cgroups: BTreeMap<u32, &str> = threads.cgroups().collect();
        self.by_file.iter().map(move |(&file, writers)| {
            let writers = without_kernel(writers);
            let process = |writer: &Writer| threads.process_of(writer.tid);
            let names = writers
                .iter()
                .map(|&writer| (processes.get(&process(writer)).copied().unwrap_or(&writer.comm), writer.folios));
            let groups: Option<Vec<_>> =
                writers.iter().map(|&writer| Some((cgroups.get(&process(writer)).copied()?, writer.folios))).collect();
            (file, (text_of(names), groups.map(text_of)))
        })
    }
}

/// Leaves out the workers of the kernel, unless nobody else made the file dirty: they make pages dirty again that they could not write now, as f2fs
/// does, and these hold what somebody else wrote.
fn without_kernel(writers: &[Writer]) -> Vec<&Writer> {
    let others: Vec<_> = writers.iter().filter(|writer| !writer.comm.starts_with("kworker/")).collect();
    if others.is_empty() { writers.iter().collect() } else { others }
}

/// Returns the only name, or `several (a, b)`: that of the most folios first.
fn text_of<'a>(names: impl IntoIterator<Item = (&'a str, u64)>) -> String {
    let mut folios: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, number) in names {
        let sum = folios.entry(name).or_default();
        *sum = sum.saturating_add(number);
    }
    let mut names: Vec<_> = folios.into_iter().collect();
    names.sort_by_key(|&(_, folios)| std::cmp::Reverse(folios));
    if let [(name, _)] = names[..] {
        return name.to_owned();
    }
    let first: Vec<&str> = names.iter().take(MAX_NAMES).map(|&(name, _)| name).collect();
    match names.len().saturating_sub(MAX_NAMES) {
        0 => format!("several ({})", first.join(", ")),
        more => format!("several ({} and {more} more)", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, threads: &ThreadTable) -> Vec<(u64, String)> {
        let mut table = WriterTable::default();
        table.add(text.as_bytes()).unwrap();
        table.texts(threads).map(|((_, ino), (names, _))| (ino, names)).collect()
    }

    fn line(ino: u64, tid: u32, comm: &str, folios: u64) -> String {
        format!("{{\"dev\":266338320,\"ino\":{ino},\"tid\":{tid},\"comm\":\"{comm}\",\"folios\":{folios}}}\n")
    }

    #[test]
    fn one_writer_is_named_and_several_are_listed_by_what_they_wrote() {
        let text = [line(7, 1, "cp", 3), line(8, 1, "cp", 3), line(8, 2, "dd", 9), line(8, 1, "cp", 7)].concat();
        let found = texts(&text, &ThreadTable::default());
        assert_eq!(found, [(7, "cp".to_owned()), (8, "several (cp, dd)".to_owned())]);
        let many: String = [1, 2, 3, 4, 5].map(|n| line(9, n, &format!("w{n}"), u64::from(n))).concat();
        assert_eq!(texts(&many, &ThreadTable::default()), [(9, "several (w5, w4, w3 and 2 more)".to_owned())]);
    }

    #[test]
    fn a_worker_of_the_kernel_is_a_writer_only_where_nobody_else_is() {
        let text = [line(7, 1, "dd", 3), line(7, 2, "kworker/u4:3", 9), line(8, 2, "kworker/u4:3", 9)].concat();
        let found = texts(&text, &ThreadTable::default());
        assert_eq!(found, [(7, "dd".to_owned()), (8, "kworker/u4:3".to_owned())]);
    }

    #[test]
    fn threads_of_a_process_are_one_writer() {
        let names = BTreeMap::from([(10, "mysqld".to_owned())]);
        let threads = ThreadTable::new([(11, 10), (12, 10), (20, 20)], names, BTreeMap::new());
        let text = [line(7, 11, "ib_pg_flush-1", 5), line(7, 12, "ib_pg_flush-2", 5), line(8, 20, "cp", 1)].concat();
        assert_eq!(texts(&text, &threads), [(7, "mysqld".to_owned()), (8, "cp".to_owned())]);
    }

    #[test]
    fn control_groups_are_known_only_if_those_of_all_writers_are() {
        let groups = [(10, "/a"), (20, "/b"), (30, "/a")].map(|(pid, name)| (pid, name.to_owned()));
        let processes = [(10, 10), (20, 20), (30, 30), (40, 40)];
        let threads = ThreadTable::new(processes, BTreeMap::new(), BTreeMap::from(groups));
        let groups_of = |tids: &[u32]| {
            let mut table = WriterTable::default();
            for &tid in tids {
                table.add(line(7, tid, "cp", u64::from(tid)).as_bytes()).unwrap();
            }
            table.texts(&threads).next().unwrap().1.1
        };
        assert_eq!(groups_of(&[10, 30]).as_deref(), Some("/a"));
        assert_eq!(groups_of(&[10, 20]).as_deref(), Some("several (/b, /a)"));
        assert_eq!(groups_of(&[10, 20, 30]).as_deref(), Some("several (/a, /b)"));
        assert_eq!(groups_of(&[10, 40]), None);
    }

    #[test]
    fn a_file_without_a_known_file_system_is_left_out() {
        let text = "{\"bdi\":\"8:0\",\"ino\":7,\"tid\":1,\"comm\":\"cp\",\"folios\":1,\"reason\":\"x\"}\n\n";
        assert!(texts(text, &ThreadTable::default()).is_empty());
    }

    #[test]
    fn a_damaged_line_is_named() {
        for (text, line, why) in [
            ("\n{\"dev\":1,\"ino\":2,\"tid\":3,\"folios\":4}", 2, "it has no text `comm`"),
            ("{\"dev\":1,\"tid\":3,\"comm\":\"a\",\"folios\":4}", 1, "it has no number `ino`"),
            ("{\"dev\":1,\"ino\":2,\"tid\":3,\"comm\":\"a\"}", 1, "it has no number `folios`"),
            ("{\"dev\":\"1\",\"ino\":2,\"tid\":3,\"comm\":\"a\",\"folios\":4}", 1, "it has no number `dev`"),
            ("{\"dev\":1,\"ino\":2,\"tid\":4294967296,\"comm\":\"a\",\"folios\":4}", 1, "`tid` is out of range"),
        ] {
            assert_eq!(WriterTable::default().add(text.as_bytes()), Err((line, why.to_owned())), "{text}");
        }
    }
}
