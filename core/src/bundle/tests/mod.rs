//! Tests of bundles: their files, their sources and their cache.

mod archive;
mod fixtures;
mod local;
mod manifest;
mod reference;
mod registry;
mod server;
mod web;
