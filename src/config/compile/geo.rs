//! `[geo]`: opens and checks the databases, and reads the overrides.

use std::ops::Range;
use std::path::PathBuf;

use super::{CompileContext, RELATIVE_PATH};
use crate::config::{Spanned, file};
use crate::geo::{DatabaseUse, GeoLookup};

/// Opens the databases. `None` after errors.
pub fn geo(written: &file::GeoSettings, cx: &mut CompileContext<'_>) -> Option<GeoLookup> {
    let (asn, country) = (&written.asn_database, &written.country_database);
    let resolve = |path: &Option<Spanned<PathBuf>>| Some(cx.resolve(&path.as_ref()?.value));
    let (asn_path, country_path) = (resolve(asn), resolve(country));
    let overrides = written.overrides.iter();
    let overrides = overrides.map(|(net, location)| (net.value, *location));
    match GeoLookup::open(
        asn_path.as_deref(),
        country_path.as_deref(),
        overrides.collect(),
    ) {
        Ok(geo) => Some(match cx.previous {
            Some(snapshot) => geo.sharing(&snapshot.settings.geo),
            None => geo,
        }),
        Err(errors) => {
            for error in errors {
                let key = match error.wanted {
                    DatabaseUse::Asn => asn,
                    DatabaseUse::Country => country,
                };
                let is_relative = key.as_ref().is_some_and(|path| path.value.is_relative());
                let reported = cx.diagnostics.error(span(key), error.to_string());
                if is_relative && error.is_missing() {
                    reported.help(RELATIVE_PATH);
                }
            }
            None
        }
    }
}

fn span(key: &Option<Spanned<PathBuf>>) -> Range<usize> {
    key.as_ref().map_or(0..0, |path| path.span.clone())
}
