//! The input and the results of runs: values, and pure decisions about them. Nothing here does I/O.

mod absence;
mod action;
mod call;
mod error;
mod failure;
mod identity;
mod knowledge;
mod options;
mod progress;
mod reason;
mod recurrence;
mod report;
mod resource;
mod selection;
mod session;
mod stop;
mod written;

pub use self::{
    absence::*, action::*, error::*, failure::*, identity::*, knowledge::*, options::*, progress::*,
    reason::*, recurrence::*, report::*, resource::*, selection::*, session::*, stop::*, written::*,
};
pub(super) use call::*;
