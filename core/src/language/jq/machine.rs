//! The data types of programs, and the data of an evaluation.

use jaq_core::box_iter::box_once;
use jaq_core::data::{DataT, HasLut};
use jaq_core::{Exn, Lut, ValXs};
use jaq_json::Val;

use super::meter::{Ended, Meter};

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

/// Ends the evaluation: unlike an error, a halt cannot be caught.
pub(super) fn end<'a>(_: &Ended) -> ValXs<'a, Val> {
    box_once(Err(Exn::halt(0)))
}

impl<'a> HasLut<'a, Machine> for Run<'a> {
    fn lut(&self) -> &'a Lut<Machine> {
        self.lut
    }
}
