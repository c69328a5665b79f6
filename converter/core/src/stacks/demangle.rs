//! Names of functions as people read them.

use std::fmt::{self, Write as _};

/// Deeper and longer than what compilers write. A name in a log may be anything, and a short one stand for gigabytes.
const DEPTH: u32 = 128;
const LENGTH: usize = 1 << 16;

/// The name of a frame, fit for every format of stacks: C++ and Rust symbols are demangled, `;` is `:`, and what would move
/// a cursor, or is not allowed in XML, is escaped.
pub fn readable(name: &str) -> String {
    plain(&demangled(name).unwrap_or_else(|| name.to_owned()))
}

/// Text on one line, without the `;` that parts frames; never empty.
pub fn plain(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.trim().chars() {
        match c {
            ';' => text.push(':'),
            '\u{fffe}' | '\u{ffff}' => _ = write!(text, "{}", c.escape_unicode()),
            c if c.is_control() => _ = write!(text, "\\x{:02x}", c as u32),
            c => text.push(c),
        }
    }
    if text.is_empty() { "[no name]".to_owned() } else { text }
}

fn demangled(name: &str) -> Option<String> {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // Without the hash, which differs from build to build.
        return Some(format!("{rust:#}"));
    }
    if name.starts_with("_Z") || name.starts_with("__Z") {
        let parsing = cpp_demangle::ParseOptions::default().recursion_limit(DEPTH);
        let writing = cpp_demangle::DemangleOptions::default().recursion_limit(DEPTH);
        let symbol = cpp_demangle::Symbol::new_with_options(name, &parsing).ok()?;
        let mut short = Short(String::new());
        return symbol.structured_demangle(&mut short, &writing).ok().map(|()| short.0);
    }
    half_demangled(name)
}

/// Text that cannot grow without end.
struct Short(String);

impl cpp_demangle::DemangleWrite for Short {
    fn write_string(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LENGTH {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Rust's older names taken for C++, as bpftrace does: `a::b$u20$c::h0123456789abcdef`. Mangled again they can be read.
fn half_demangled(name: &str) -> Option<String> {
    let (_, hash) = name.rsplit_once("::h")?;
    if hash.len() != 16 || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut mangled = String::from("_ZN");
    for part in name.split("::") {
        let _ = write!(mangled, "{}{part}", part.len());
    }
    mangled.push('E');
    rustc_demangle::try_demangle(&mangled).ok().map(|rust| format!("{rust:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_names() {
        // The right sides are c++filt's, and rustfilt's.
        for (mangled, want) in [
            ("fdatasync", "fdatasync"),
            ("0x7ffff7e5a8bb", "0x7ffff7e5a8bb"),
            ("_Z3fooi", "foo(int)"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)"),
            ("_ZN7rocksdb6DBImpl8WriteWALEv.cold", "rocksdb::DBImpl::WriteWAL() [clone .cold]"),
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"),
            (
                "_ZN48_$LT$std..fs..File$u20$as$u20$std..io..Write$GT$5flush17h0123456789abcdefE",
                "<std::fs::File as std::io::Write>::flush",
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("core::ptr::drop_in_place::h0123456789abcdef", "core::ptr::drop_in_place"),
            (
                "_$LT$std..fs..File$u20$as$u20$std..io..Write$GT$::flush::h0123456789abcdef",
                "<std::fs::File as std::io::Write>::flush",
            ),
            // An array's `;`.
            ("_RINvCs1234_7mycrate3fooAhj8_E", "mycrate::foo::<[u8: 8]>"),
            // Nothing of a compiler's.
            ("_Z", "_Z"),
            ("_ZN3foo", "_ZN3foo"),
            ("x::h0123", "x::h0123"),
        ] {
            assert_eq!(readable(mangled), want, "{mangled}");
        }
    }

    #[test]
    fn a_short_name_that_stands_for_a_long_one_stays_as_it_is() {
        // A pair of a and a, a pair of two such pairs, and so on: twice as long with each.
        let mut name = "_Z1f1a".to_owned();
        for level in 0..16_u32 {
            // Each pair is a substitution, and its name without arguments another.
            let number = (2 * level).checked_sub(1).map(|n| char::from_digit(n, 36).unwrap().to_ascii_uppercase());
            let before = number.map_or("S_".to_owned(), |digit| format!("S{digit}_"));
            let _ = write!(name, "St4pairI{before}{before}E");
            if level == 3 {
                assert_eq!(readable(&name).matches("std::pair<").count(), 1 + 3 + 7 + 15);
            }
        }
        assert_eq!(readable(&name), name);
    }

    #[test]
    fn odd_names_stay_on_a_line() {
        assert_eq!(readable(" a;b\n\u{1b}[31m\u{ffff} "), "a:b\\x0a\\x1b[31m\\u{ffff}");
        assert_eq!(readable(" "), "[no name]");
    }
}
