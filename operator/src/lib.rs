//! The DeclaREST operator: its resource kinds and everything that works on them.

pub mod crd;
