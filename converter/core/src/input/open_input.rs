//! One input, opened, with its format.

use crate::error::{Error, Result};
use crate::input::head::HeadEvents;
use crate::input_file::Input;
use crate::source::{self, InputTraits, Source};

/// An input with its format, before anything but its head has been read.
pub struct OpenInput {
    pub input: Input,
    pub source: &'static dyn Source,
    pub traits: InputTraits,
    /// Its place among the inputs of the command, from 0.
    pub given: usize,
    /// What its head says about its events. Empty where nobody has asked: with one input.
    pub head_events: HeadEvents,
}

impl OpenInput {
    pub fn new(input: Input, source: &'static dyn Source) -> Self {
        let traits = source.describe(&input);
        Self { input, source, traits, given: 0, head_events: HeadEvents::default() }
    }

    /// Finds the source of an input: the one with this name, or the first one that recognizes the input.
    pub fn with_format(input: Input, sources: &[&'static dyn Source], name: Option<&str>) -> Result<Self> {
        let source = match name {
            Some(name) => {
                let source = source::by_name(sources, name)?;
                if input.head().is_empty() {
                    return Err(Error::Empty { path: input.path });
                }
                source
            }
            None => source::detect(sources, &input.path, input.head())?,
        };
        Ok(Self::new(input, source))
    }
}
