//! The modules of the library are layers: they import in one direction.

#[path = "support/layers/mod.rs"]
mod layers;

use std::path::Path;

#[test]
fn the_modules_of_the_library_are_layers() {
    let found = layers::violations(Path::new("src/lib.rs")).unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn circles_and_wrong_directions_are_reported() {
    let found = layers::violations(Path::new("tests/fixtures/layers/lib.rs")).unwrap();
    insta::assert_snapshot!(found.join("\n"), @r"
    tests/fixtures/layers/stock.rs:6 imports `crate::report::text`, but `report` comes after `stock`
    tests/fixtures/layers/stock.rs:10 imports `crate::till::Receipt`, but `till` comes after `stock`
    the order of the modules lacks `unlisted`
    `absent` in the order is not a module
    circle in `crate::till`: clerk -> drawer -> clerk
        tests/fixtures/layers/till/clerk.rs:4 imports `super::drawer`
        tests/fixtures/layers/till/drawer.rs:3 imports `super::Clerk`
    circle in `crate::till`: payment -> receipt -> payment
        tests/fixtures/layers/till/payment/cash.rs:5 imports `super::super::Receipt`
        tests/fixtures/layers/till/receipt.rs:3 imports `super::payment::card::Card`
    ");
}
