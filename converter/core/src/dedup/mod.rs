//! Several logs of one run record the same facts. This stage keeps one record of each.

pub mod authority;
