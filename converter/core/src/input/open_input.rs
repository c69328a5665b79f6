//! One input, opened, with its format.

use crate::error::{Error, Result};
use crate::input::head::HeadEvents;
use crate::input_file::Input;
use crate::input_file::pasted::{Indent, Pasted, common_indent, without_indented};
use crate::source::{self, InputTraits, Source};

/// An input with its format, before anything but its head has been read.
pub struct OpenInput {
    pub input: Input,
    pub source: &'static dyn Source,
    pub traits: InputTraits,
    /// Its place among the inputs of the command, from 0.
    pub place_in_command: usize,
    /// The events in its head. Empty if it is the only input, because then nobody asks.
    pub head_events: HeadEvents,
}

impl OpenInput {
    pub fn new(mut input: Input, source: &'static dyn Source) -> Result<Self> {
        restore(&mut input, &[source])?;
        Ok(Self::of(input, source))
    }

    /// Finds the source of an input: the one with this name, or the first one that recognizes the input.
    pub fn with_format(mut input: Input, sources: &[&'static dyn Source], name: Option<&str>) -> Result<Self> {
        source::refuse_archive(&input.path, input.head())?;
        let Some(name) = name else {
            restore(&mut input, sources)?;
            let source = source::detect(sources, &input.path, input.head())?;
            return Ok(Self::of(input, source));
        };
        let source = source::by_name(sources, name)?;
        if input.head().is_empty() {
            return Err(Error::Empty { path: input.path });
        }
        Self::new(input, source)
    }

    fn of(input: Input, source: &'static dyn Source) -> Self {
        let traits = source.describe(&input);
        Self { input, source, traits, place_in_command: 0, head_events: HeadEvents::default() }
    }
}

/// Undoes what a terminal, a mail or a page has done to the lines of a text, which is of one of these sources.
fn restore(input: &mut Input, sources: &[&'static dyn Source]) -> Result<()> {
    let find = |head: &[u8]| source::recognize(sources, head);
    input.undo(Pasted::of_encoding(input.head()))?;
    if input.head().contains(&0) {
        return Ok(());
    }
    input.undo(Pasted::of_mail(input.head()))?;
    input.undo(Pasted::of_characters(input.head(), || find(input.head()).is_none()))?;
    input.undo(Pasted::of(input.head()))?;
    let prefixed = Pasted::of_prefix(input.head(), || find(input.head()).is_none());
    if prefixed.prefix.is_some() && find(&prefixed.undo(input.head())).is_some() {
        input.undo(prefixed)?;
    }
    // A log with stacks may begin most of its lines with blanks. The other lines are its events, so they are not foreign text.
    let is_among_text = || find(&without_indented(input.head())).is_none();
    let Indent { len: indent, is_quote } = common_indent(input.head(), is_among_text);
    if indent == 0 {
        return Ok(());
    }
    let indented = Pasted { indent, ..Pasted::default() };
    let found = source::sniff(sources, input.head());
    let is_own = !is_quote && found.is_some_and(|source| source.has_indent(input.head()));
    if !is_own && find(&indented.undo(input.head())).is_some() {
        input.undo(indented)?;
    }
    Ok(())
}
