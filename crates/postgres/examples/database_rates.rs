//! Rates of the catalog's core over PostgreSQL, as those of the other engines are measured.
//!
//!     database_rates ADDRESS COUNT BATCH     a new catalog in an empty database
//!
//! See the example of byname-catalog.

#[allow(dead_code)]
#[path = "../../catalog/examples/rates.rs"]
mod catalog;

use byname_postgres::PostgresEngine;

fn main() -> catalog::Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [address, count, batch] => catalog::core(PostgresEngine::open(address)?, count, batch),
        _ => Err("usage: database_rates ADDRESS COUNT BATCH".into()),
    }
}
