//! The memory that decoded values need.

use std::cell::Cell;

use super::Value;
use super::error::TOO_HEAVY;

/// The most memory that one decoded payload may need, in bytes. Without a limit, 32 MiB of `[0,0,…]` would become 512
/// MiB of values, and 32 MiB of small objects several GiB.
pub const MAX_WEIGHT: usize = 256 << 20;

/// A value in an array that grows, without its content.
const ITEM: usize = 48;
/// A member of an object, without its content: a part of a node of a B-tree.
const MEMBER: usize = 112;
/// The first node of an object.
const OBJECT: usize = 512;

/// Counts the memory of a document while it is decoded.
#[derive(Debug)]
pub(super) struct Meter {
    used: Cell<usize>,
    limit: usize,
}

impl Meter {
    pub const fn new(limit: usize) -> Self {
        Self { used: Cell::new(0), limit }
    }

    /// Adds a scalar with a text of this length.
    pub fn scalar(&self, length: usize) -> Result<(), &'static str> {
        self.add(ITEM + length)
    }

    /// Adds a member of an object in addition to its value.
    pub fn member(&self, key: usize) -> Result<(), &'static str> {
        self.add(MEMBER + key)
    }

    pub fn array(&self) -> Result<(), &'static str> {
        self.add(ITEM)
    }

    pub fn object(&self) -> Result<(), &'static str> {
        self.add(ITEM + OBJECT)
    }

    pub fn add(&self, bytes: usize) -> Result<(), &'static str> {
        let used = self.used.get().saturating_add(bytes);
        self.used.set(used);
        if used > self.limit { Err(TOO_HEAVY) } else { Ok(()) }
    }
}

impl Value {
    /// Returns the approximate memory of this value in bytes, as the decoders count it.
    pub fn weight(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Unsigned(_) | Self::Float(_) => ITEM,
            Self::String(text) => ITEM + text.len(),
            Self::Bytes(bytes) => ITEM + bytes.len(),
            Self::Array(items) => items.iter().map(Self::weight).sum::<usize>() + ITEM,
            Self::Object(members) => {
                let members = members.iter().map(|(key, member)| MEMBER + key.len() + member.weight());
                members.sum::<usize>() + ITEM + OBJECT
            }
        }
    }
}
