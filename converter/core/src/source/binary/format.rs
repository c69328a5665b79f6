//! Parses event formats of tracefs (`events/SYSTEM/EVENT/format`), which describe where each field of a record is.

use std::collections::HashMap;
use std::io;

use super::Cursor;
use crate::source::dynamic_events::DynamicEvent;
use crate::source::tracepoints::Tracepoint;

/// The system of ftrace's own events: markers, prints, functions, stacks.
pub(in crate::source) const FTRACE: &str = "ftrace";

/// How a field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum Layout {
    /// A number of `size` bytes.
    Number { signed: bool },
    /// A device number in the kernel's encoding.
    Dev,
    /// Inline bytes, up to a NUL.
    Text,
    /// A u32: length << 16 | offset of the bytes in the record.
    DataLoc,
    /// The same, with the offset relative to the end of the field.
    RelLoc,
    /// Anything else; shown as bytes.
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source) struct Field {
    pub(in crate::source) name: String,
    pub(in crate::source) offset: usize,
    /// 0: it reaches to the end of the record.
    pub(in crate::source) size: usize,
    pub(in crate::source) layout: Layout,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source) struct Format {
    pub(in crate::source) system: String,
    pub(in crate::source) name: String,
    pub(in crate::source) id: u16,
    pub(in crate::source) fields: Vec<Field>,
    /// Symbolic names of values, by field, from `__print_symbolic` in its print format.
    pub(in crate::source) symbols: HashMap<String, Vec<(u64, String)>>,
}

impl Format {
    /// Whether it is the start of a sync of a file system.
    pub(in crate::source) fn is_of_requests(&self) -> bool {
        let name = self.name.as_bytes();
        let dynamic = DynamicEvent::from_name(name).map(Tracepoint::Dynamic);
        [Tracepoint::from_name(name), dynamic].into_iter().flatten().any(Tracepoint::starts_request)
    }

    /// Parses the text of a `format` file; `None` if it is not one.
    pub(in crate::source) fn parse(system: &str, text: &str) -> Option<Self> {
        let (mut name, mut id, mut fields, mut symbols) = (None, None, Vec::new(), HashMap::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                id = rest.trim().parse().ok();
            } else if let Some(rest) = line.trim_start().strip_prefix("field:") {
                fields.extend(parse_field(rest));
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                symbols = parse_symbols(print);
                break;
            }
        }
        Some(Self { system: system.to_owned(), name: name?, id: id?, fields, symbols })
    }

    pub(in crate::source) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Whether it is ftrace's own event of a printed text.
    pub(super) fn is_print(&self) -> bool {
        self.system == FTRACE && self.name == "print"
    }

    /// Returns the symbolic name of a value.
    pub(in crate::source) fn symbol(&self, field: &str, value: u64) -> Option<&str> {
        self.symbols.get(field)?.iter().find(|(number, _)| *number == value).map(|(_, name)| name.as_str())
    }
}

/// Parses the formats of all systems: their number, and for each its name, the number of its events, and the text of each format.
pub(in crate::source) fn parse_formats(cursor: &mut Cursor<'_>) -> io::Result<Vec<Format>> {
    let mut formats = Vec::new();
    for _ in 0..cursor.u32()? {
        let system = cursor.string()?;
        for _ in 0..cursor.u32()? {
            let text = String::from_utf8_lossy(cursor.sized(8)?);
            formats.extend(Format::parse(&system, &text));
        }
    }
    Ok(formats)
}

/// Parses `"...", __print_symbolic(REC->origin, { 0, "none" }, { 1, "sync" }), ...`.
fn parse_symbols(print: &str) -> HashMap<String, Vec<(u64, String)>> {
    let mut symbols = HashMap::new();
    for call in print.split("__print_symbolic(").skip(1) {
        let Some((field, rest)) = call.split_once(',') else { continue };
        let Some(field) = field.trim().strip_prefix("REC->") else { continue };
        let mut values = Vec::new();
        let mut rest = rest.trim_start();
        while let Some((value, after)) = rest.strip_prefix('{').and_then(|pair| pair.split_once('}')) {
            if let Some((number, name)) = value.split_once(',')
                && let Ok(number) = number.trim().parse()
            {
                values.push((number, name.trim().trim_matches('"').to_owned()));
            }
            rest = after.trim_start_matches([',', ' ', '\t']);
        }
        symbols.insert(field.to_owned(), values);
    }
    symbols
}

/// Parses `unsigned short common_type; offset:0; size:2; signed:0;`.
fn parse_field(text: &str) -> Option<Field> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let keys: HashMap<&str, &str> = parts.filter_map(|part| part.split_once(':')).collect();
    let number = |key: &str| keys.get(key).and_then(|value| value.trim().parse::<usize>().ok());
    let (offset, size) = (number("offset")?, number("size")?);
    let signed = number("signed").unwrap_or(0) != 0;

    let (declared, array) = match declaration.split_once('[') {
        // In `__data_loc char[] name` the brackets precede the name.
        Some((before, after)) => match after.split_once(']') {
            Some((_, name)) if !name.trim().is_empty() => (format!("{before} {}", name.trim()), true),
            _ => (before.to_owned(), true),
        },
        None => (declaration.to_owned(), false),
    };
    let (kind, name) = declared.trim().rsplit_once(|c: char| c.is_whitespace() || c == '*')?;
    // The kernel declares a field of any length as an array, as one element, or with brackets after its name.
    let array = array || size == 0;
    let layout = if kind.contains("__data_loc") {
        Layout::DataLoc
    } else if kind.contains("__rel_loc") {
        Layout::RelLoc
    } else if array && kind.split_whitespace().any(|word| word == "char" || word == "u8") {
        Layout::Text
    } else if !array && kind.trim() == "dev_t" && size == 4 {
        Layout::Dev
    } else if !array && matches!(size, 1 | 2 | 4 | 8) {
        Layout::Number { signed }
    } else {
        Layout::Bytes
    };
    Some(Field { name: name.to_owned(), offset, size, layout })
}

impl Field {
    /// Returns the bytes of a field that is stored in place; `None` if it extends beyond the record.
    pub(super) fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        match self.size {
            0 => record.get(self.offset..),
            size => record.get(self.offset..self.offset.checked_add(size)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: sync_start\nID: 642\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:u64 id;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:const char * name;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;\n\
        \tfield:unsigned long args[6];\toffset:40;\tsize:48;\tsigned:0;\n\
        \tfield:__data_loc char[] path;\toffset:88;\tsize:4;\tsigned:0;\n\
        \tfield:__rel_loc char[] rest;\toffset:92;\tsize:4;\tsigned:0;\n\
        \tfield:odd one;\toffset:?;\n\n\
        print fmt: \"id=%llu %s %s\", REC->id, __print_symbolic(REC->origin, { 0, \"none\" }, { 12, \"sync\" }), \
        __print_symbolic(REC->op, { -1, \"odd\" }, { 3, \"msync\" })\n\tfield:not a field;\n";

    #[test]
    fn fields_are_where_the_text_says() {
        let format = Format::parse("wb_tracer", TEXT).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sync_start", 642));
        let field = |name: &str| format.field(name).map(|f| (f.offset, f.size, f.layout)).unwrap();
        assert_eq!(field("common_pid"), (4, 4, Layout::Number { signed: true }));
        assert_eq!(field("id"), (8, 8, Layout::Number { signed: false }));
        assert_eq!(field("name"), (16, 8, Layout::Number { signed: false }));
        assert_eq!(field("comm"), (24, 16, Layout::Text));
        assert_eq!(field("args"), (40, 48, Layout::Bytes));
        assert_eq!(field("path"), (88, 4, Layout::DataLoc));
        assert_eq!(field("rest"), (92, 4, Layout::RelLoc));
        assert_eq!(format.fields.len(), 8);
        assert_eq!(format.symbol("origin", 12), Some("sync"));
        assert_eq!(format.symbol("op", 3), Some("msync"));
        for buf in ["char buf[]", "char buf"] {
            let text = format!("name: print\nID: 5\n\tfield:{buf};\toffset:16;\tsize:0;\tsigned:1;\n");
            let format = Format::parse("ftrace", &text).unwrap();
            let field = format.field("buf").unwrap();
            assert_eq!(
                (field.layout, field.bytes(b"0123456789abcdefhello\n\0")),
                (Layout::Text, Some(&b"hello\n\0"[..]))
            );
            assert_eq!(field.bytes(b"short"), None);
        }
        assert_eq!((format.symbol("op", 12), format.symbol("id", 0)), (None, None));
    }

    #[test]
    fn other_texts_are_not_formats() {
        assert_eq!(Format::parse("x", "name: a\nformat:\n"), None);
        assert_eq!(Format::parse("x", "name: a\nID: 70000\n"), None);
        assert_eq!(Format::parse("x", "ID: 7\n"), None);
    }
}
