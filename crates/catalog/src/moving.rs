//! A catalog taken from one engine to another, row by row, as it is.
//!
//! The row that says which site this is goes last, and goes away first: a copy that was interrupted
//! is no catalog, and a catalog that was moved is none any more. What is there already is compared,
//! so a copy that is begun again goes on.
//!
//! Both engines are nobody else's meanwhile.

use crate::engine::{Engine, EngineError, Rows, Span, Table, Writes};
use crate::record::{COUNTERS_KEY, LEASE_KEY, SITE_KEY, Site};
use crate::view::read;

/// Takes the rows of an engine one by one: table, key, value.
pub type TakeRow<'a> = dyn FnMut(Table, &[u8], &[u8]) + 'a;

/// Rows of one transaction, at most.
const PAGE_ROWS: usize = 2048;

/// Makes the rows of an engine those of another, but for the one that says which site it is.
/// `progress` hears how many of them there are so far.
///
/// # Errors
/// [`EngineError`]; what was copied stays.
pub fn copy_rows(
    from: &dyn Engine,
    to: &dyn Engine,
    progress: &mut dyn FnMut(u64),
) -> Result<(), EngineError> {
    for table in Table::ALL {
        remove_others(table, from, to)?;
    }
    let mut count = 0;
    for table in Table::ALL {
        pages(from, table, &mut |page| {
            count += page.rows.len() as u64;
            copy_page(table, page, to)?;
            progress(count);
            Ok(())
        })?;
    }
    Ok(())
}

/// Calls for every row, in the order of tables and keys, but for the one that says which site it
/// is.
///
/// # Errors
/// [`EngineError`].
pub fn each_row_but_site(engine: &dyn Engine, take: &mut TakeRow<'_>) -> Result<(), EngineError> {
    for table in Table::ALL {
        pages(engine, table, &mut |page| {
            page.rows.iter().for_each(|(key, value)| take(table, key, value));
            Ok(())
        })?;
    }
    Ok(())
}

/// The name of an engine's site; none if there is no site in it.
///
/// # Errors
/// [`EngineError`].
pub fn site_of(engine: &dyn Engine) -> Result<Option<Vec<u8>>, EngineError> {
    let site: Option<Site> = read(&*engine.snapshot()?, SITE_KEY)?;
    Ok(site.map(|site| site.name))
}

/// Makes an engine the catalog of the site that another one is of.
///
/// # Errors
/// [`EngineError`].
pub fn adopt_site(from: &dyn Engine, to: &dyn Engine) -> Result<(), EngineError> {
    let Some(value) = from.snapshot()?.get(Table::Meta, SITE_KEY)? else { return Ok(()) };
    let mut writes = Writes::default();
    writes.put(Table::Meta, SITE_KEY.to_vec(), value);
    to.begin()?.commit(&writes)
}

/// Who led last in an engine, and how far it was: what a head changes before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing([Option<Vec<u8>>; 2]);

impl Standing {
    /// As it is now.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn of(engine: &dyn Engine) -> Result<Self, EngineError> {
        Self::in_rows(&*engine.snapshot()?)
    }

    fn in_rows<R: Rows + ?Sized>(rows: &R) -> Result<Self, EngineError> {
        let of = |key: &[u8]| rows.get(Table::Meta, key);
        Ok(Self([of(LEASE_KEY)?, of(COUNTERS_KEY)?]))
    }
}

/// Makes an engine no site's any more; its rows stay. False, with nothing done, if a head has led
/// there since the standing: what it was told would be lost. That nobody else has an engine is
/// known by a connection, which can break.
///
/// # Errors
/// [`EngineError`].
pub fn give_up_site(engine: &dyn Engine, since: &Standing) -> Result<bool, EngineError> {
    let transaction = engine.begin()?;
    if Standing::in_rows(&*transaction)? != *since {
        return Ok(false);
    }
    let mut writes = Writes::default();
    writes.delete(Table::Meta, SITE_KEY.to_vec());
    transaction.commit(&writes).map(|()| true)
}

/// Rows that follow one another: all that are in a span.
struct Page {
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    from: Vec<u8>,
    until: Option<Vec<u8>>,
}

/// Calls for all rows of a table in turn.
fn pages(
    engine: &dyn Engine,
    table: Table,
    take: &mut dyn FnMut(Page) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut next = Some(Vec::new());
    while let Some(from) = next {
        let span = Span { from: &from, until: None };
        let mut rows = engine.snapshot()?.range(table, span, PAGE_ROWS)?;
        let is_last = rows.len() < PAGE_ROWS;
        let after = rows.last().map(|(key, _)| [key.as_slice(), &[0]].concat());
        next = after.filter(|_| !is_last);
        rows.retain(|(key, _)| table != Table::Meta || key != SITE_KEY);
        take(Page { rows, from, until: next.clone() })?;
    }
    Ok(())
}

/// Removes what the other engine does not have.
fn remove_others(table: Table, from: &dyn Engine, to: &dyn Engine) -> Result<(), EngineError> {
    pages(to, table, &mut |page| {
        let rows = from.snapshot()?;
        let mut writes = Writes::default();
        for (key, _) in page.rows {
            if rows.get(table, &key)?.is_none() {
                writes.delete(table, key);
            }
        }
        drop(rows);
        apply(to, &writes)
    })
}

fn copy_page(table: Table, page: Page, to: &dyn Engine) -> Result<(), EngineError> {
    let Page { rows, from, until } = page;
    let span = Span { from: &from, until: until.as_deref() };
    // There is nothing that the page does not have, but for the site's row.
    let there = to.snapshot()?.range(table, span, PAGE_ROWS + 1)?;
    let mut there = there.into_iter().peekable();
    let mut writes = Writes::default();
    for (key, value) in rows {
        while there.next_if(|(other, _)| *other < key).is_some() {}
        if there.next_if(|(other, same)| *other == key && *same == value).is_none() {
            writes.put(table, key, value);
        }
    }
    apply(to, &writes)
}

fn apply(to: &dyn Engine, writes: &Writes) -> Result<(), EngineError> {
    if writes.is_empty() { Ok(()) } else { to.begin()?.commit(writes) }
}
