//! Removes the gateway's cookies from `Cookie` headers. An origin server must not see them: it could log them, and a
//! reader of the log could send them.

use std::borrow::Cow;

use crate::credential::is_own_cookie;

/// Returns the cookies of a header line that are not the gateway's. `None` if all cookies are the gateway's.
pub(super) fn without_own_cookies(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !cookies(line).any(is_own) {
        return Some(Cow::Borrowed(line));
    }
    let rest: Vec<&[u8]> = cookies(line).filter(|cookie| !is_own(cookie)).collect();
    (!rest.is_empty()).then(|| Cow::Owned(rest.join(&b"; "[..])))
}

fn cookies(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let pieces = line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    pieces.filter(|cookie| !cookie.is_empty())
}

fn is_own(cookie: &[u8]) -> bool {
    let name = cookie.split(|byte| *byte == b'=').next();
    name.is_some_and(|name| is_own_cookie(name.trim_ascii()))
}
