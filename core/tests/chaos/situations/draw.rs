//! What a seed decides: names, ids, sizes and shapes.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

/// Chance for one case. The same seed makes the same case.
pub struct Draw {
    rng: fastrand::Rng,
    seed: u64,
    used: HashSet<String>,
}

impl Draw {
    /// Situations of one seed have nothing in common but that seed.
    pub fn new(situation: &str, seed: u64) -> Self {
        let salt = situation.bytes().fold(seed, |salt, byte| salt.wrapping_mul(31).wrapping_add(byte.into()));
        Self { rng: fastrand::Rng::with_seed(salt), seed: salt, used: HashSet::new() }
    }

    /// The seed of whatever else has to do with chance.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn number(&mut self, range: impl std::ops::RangeBounds<usize>) -> usize {
        self.rng.usize(range)
    }

    pub fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    pub fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(..choices.len())].clone()
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.rng.shuffle(items);
    }

    /// A name that was not drawn before, in any spelling: some are capitalised, have dots, or are not ASCII.
    pub fn name(&mut self) -> String {
        loop {
            let length = self.rng.usize(2..10);
            let mut name: String = (0..length).map(|_| self.rng.lowercase()).collect();
            match self.rng.u8(..8) {
                0 => write!(name, ".{}", self.rng.u8(..9)).unwrap(),
                1 => write!(name, "-{}", self.rng.lowercase()).unwrap(),
                2 => name.push('ß'),
                3 => name = name[..1].to_uppercase() + &name[1..],
                4 => name = format!("{}{name}", self.rng.u16(1..999)),
                _ => {}
            }
            if self.used.insert(name.to_lowercase()) {
                return name;
            }
        }
    }

    pub fn names(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.name()).collect()
    }

    /// The name of a collection.
    pub fn plural(&mut self) -> String {
        let choices = ["items", "shops", "users", "issues", "jobs", "hosts", "zones", "flows"];
        let free: Vec<&str> = choices.into_iter().filter(|name| !self.used.contains(*name)).collect();
        let name = self.one_of(&free).to_owned();
        self.used.insert(name.clone());
        name
    }

    /// An id as a server or its user may choose it.
    pub fn id(&mut self) -> String {
        loop {
            let id = match self.rng.u8(..3) {
                0 => self.rng.u32(1..1_000_000).to_string(),
                1 => format!("{:08x}-{:04x}-4000", self.rng.u32(..), self.rng.u16(..)),
                _ => format!("k{}", self.rng.u16(..)),
            };
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }

    /// How the server makes ids.
    pub fn ids(&mut self) -> IdStyle {
        self.one_of(&[IdStyle::Short, IdStyle::Number, IdStyle::Uuid])
    }

    /// `base` with some further members, whose names nothing else uses.
    pub fn body(&mut self, mut base: Value) -> Value {
        for index in 0..self.rng.usize(..4) {
            base[format!("x{index}")] = match self.rng.u8(..5) {
                0 => json!(self.rng.u16(..)),
                1 => json!(self.rng.bool()),
                2 => json!([self.rng.u8(..), self.rng.u8(..)]),
                3 => json!({"deep": {"er": self.rng.u8(..)}}),
                _ => json!("text ".repeat(self.rng.usize(..20))),
            };
        }
        base
    }
}

/// How ids of the server look.
#[derive(Clone, Copy, Debug)]
pub enum IdStyle {
    Short,
    Number,
    Uuid,
}

impl IdStyle {
    /// The id of the resource with this number, as it is in an address and as a payload shows it.
    pub fn id(self, number: usize) -> (String, Value) {
        match self {
            Self::Short => (format!("n{number}"), json!(format!("n{number}"))),
            Self::Number => (number.to_string(), json!(number)),
            Self::Uuid => {
                let id = format!("{number:08x}-aaaa-4bbb-8ccc-{number:012x}");
                (id.clone(), json!(id))
            }
        }
    }
}
