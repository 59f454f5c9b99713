//! The file that counters are saved in. It is only looked at: a gateway whose counters cannot be
//! saved runs all the same.

use std::path::{Path, PathBuf};

use super::Context;
use crate::config::Spanned;

/// Warns of a path at which no file can be written.
pub(super) fn check(file: &Spanned<Option<PathBuf>>, cx: &mut Context<'_>) {
    let Some(path) = file.value.as_ref().map(|path| cx.resolve(path)) else {
        return;
    };
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let (shown, span) = (path.display(), file.span.clone());
    if path.is_dir() {
        let message = format!("counters cannot be saved here: `{shown}` is a folder");
        let wrong = cx.diagnostics.warning(span, message);
        wrong.help(format!("name a file in it, such as `{shown}/counters`"));
    } else if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        let message = format!("counters cannot be saved here: there is no folder `{folder}`");
        let wrong = cx.diagnostics.warning(span, message);
        wrong.help(format!("make it: `mkdir -p {folder}`"));
    }
}
