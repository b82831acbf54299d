//! The data types of programs, and the data of an evaluation.

use jaq_core::Lut;
use jaq_core::data::{DataT, HasLut};
use jaq_json::Val;

use super::meter::Meter;

/// The data types that programs are compiled for.
pub(super) struct Machine;

impl DataT for Machine {
    type V<'a> = Val;
    type Data<'a> = Run<'a>;
}

/// The data of the evaluation that native functions can access.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) lut: &'a Lut<Machine>,
    pub(super) meter: &'a Meter<'a>,
}

impl<'a> HasLut<'a, Machine> for Run<'a> {
    fn lut(&self) -> &'a Lut<Machine> {
        self.lut
    }
}
