//! Readable names of functions: demangled, on one line.

use std::fmt::{self, Write as _};

/// Limits for demangling, above what compilers produce. A name in a log can be anything, and a short one can expand to gigabytes.
const MAX_DEPTH: u32 = 128;
const MAX_LENGTH: usize = 1 << 16;

/// Returns the name of a frame in a form that every stack format accepts: C++ and Rust symbols are demangled, `;` becomes `:`, and control
/// characters and those that XML forbids are escaped.
pub fn readable(name: &str) -> String {
    one_line(&demangled(name).unwrap_or_else(|| name.to_owned()))
}

/// Returns text on one line without `;`, which separates frames. The result is never empty.
pub fn one_line(name: &str) -> String {
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
        let parsing = cpp_demangle::ParseOptions::default().recursion_limit(MAX_DEPTH);
        let writing = cpp_demangle::DemangleOptions::default().recursion_limit(MAX_DEPTH);
        let symbol = cpp_demangle::Symbol::new_with_options(name, &parsing).ok()?;
        let mut text = LimitedText(String::new());
        return symbol.structured_demangle(&mut text, &writing).ok().map(|()| text.0);
    }
    half_demangled_rust(name)
}

/// Text of at most `MAX_LENGTH` bytes. Writing more is an error.
struct LimitedText(String);

impl cpp_demangle::DemangleWrite for LimitedText {
    fn write_string(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_LENGTH {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Demangles a legacy Rust name that was demangled as C++, as bpftrace does: `a::b$u20$c::h0123456789abcdef`. Mangling it again makes it
/// a Rust symbol.
fn half_demangled_rust(name: &str) -> Option<String> {
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
    fn names_of_compilers() {
        // Expected values are the output of c++filt and rustfilt.
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
            // The `;` of an array type.
            ("_RINvCs1234_7mycrate3fooAhj8_E", "mycrate::foo::<[u8: 8]>"),
            // Not mangled names.
            ("_Z", "_Z"),
            ("_ZN3foo", "_ZN3foo"),
            ("x::h0123", "x::h0123"),
        ] {
            assert_eq!(readable(mangled), want, "{mangled}");
        }
    }

    #[test]
    fn a_name_that_expands_beyond_the_limit_stays_mangled() {
        // A pair of `a` and `a`, a pair of two such pairs, and so on: each level doubles the length.
        let mut name = "_Z1f1a".to_owned();
        for level in 0..16_u32 {
            // Each pair is one substitution, its name without arguments another.
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
    fn control_characters_and_separators_are_replaced() {
        assert_eq!(readable(" a;b\n\u{1b}[31m\u{ffff} "), "a:b\\x0a\\x1b[31m\\u{ffff}");
        assert_eq!(readable(" "), "[no name]");
    }
}
