//! The limit on losses, `--max-loss`: its syntax and its check.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::losses::{Losses, Severity};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxLoss {
    Count(u64),
    /// Percentage of events and losses together.
    Percent(f64),
}

impl FromStr for MaxLoss {
    type Err = Error;

    /// Parses `N` or `N%`.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::InvalidMaxLoss { text: text.to_owned() };
        match text.trim().strip_suffix('%') {
            Some(percent) => {
                let percent = percent.trim().parse().map_err(|_| bad())?;
                if (0.0..=100.0).contains(&percent) { Ok(Self::Percent(percent)) } else { Err(bad()) }
            }
            None => text.trim().parse().map(Self::Count).map_err(|_| bad()),
        }
    }
}

impl fmt::Display for MaxLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl MaxLoss {
    /// Returns whether the limit allows this number of losses. `events` are the events that were not lost.
    pub fn allows(self, lost: u64, events: u64) -> bool {
        match self {
            Self::Count(count) => lost <= count,
            Self::Percent(percent) => 100.0 * lost as f64 <= percent * events.saturating_add(lost) as f64,
        }
    }

    /// # Errors
    /// `Error::TooMuchLoss`, with the reasons of the losses.
    pub fn check(self, losses: &Losses, events: u64) -> Result<()> {
        let lost = losses.total();
        if self.allows(lost, events) {
            return Ok(());
        }
        let reasons: Vec<String> = losses
            .iter()
            .filter(|(reason, _)| reason.severity() == Severity::Loss)
            .map(|(reason, loss)| format!("{} {}", loss.count, reason.name()))
            .collect();
        let total = events.saturating_add(lost);
        Err(Error::TooMuchLoss { lost, total, limit: self.to_string(), reasons: reasons.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_count_or_a_percentage() {
        assert_eq!("15".parse::<MaxLoss>().unwrap(), MaxLoss::Count(15));
        assert_eq!(" 0.1 % ".parse::<MaxLoss>().unwrap(), MaxLoss::Percent(0.1));
        for text in ["", "%", "-1", "101%", "-0.1%", "NaN%", "much", "1.5", "99999999999999999999"] {
            text.parse::<MaxLoss>().unwrap_err();
        }
        assert_eq!("0.1%".parse::<MaxLoss>().unwrap().to_string(), "0.1%");
    }

    #[test]
    fn a_percentage_is_of_events_and_losses() {
        assert!(MaxLoss::Percent(1.0).allows(1, 99));
        assert!(!MaxLoss::Percent(1.0).allows(1, 98));
        assert!(MaxLoss::Percent(0.0).allows(0, 0));
        assert!(MaxLoss::Count(1).allows(1, 0) && !MaxLoss::Count(1).allows(2, 1000));
    }
}
