//! What every record says of where it comes from.

use std::sync::OnceLock;
use std::time::SystemTime;

use filemap_job::Ran;
use serde_json::{Map, Value};

use crate::input;

/// The commit that this program was built from; `None` for a build outside of a checkout.
const REVISION: Option<&str> = option_env!("FILEMAP_REVISION");

/// Adds the date, the kernel of this machine, this program's version and commit, and what ran the
/// job, `engine`, to `environment`.
pub fn stamp(environment: &mut Map<String, Value>, engine: &str) {
    let stated = [
        ("date", Value::from(began())),
        ("host_kernel", input::host_release().into()),
        ("filemap", env!("CARGO_PKG_VERSION").into()),
        ("revision", REVISION.into()),
        ("engine", engine.into()),
    ];
    environment.extend(stated.map(|(key, value)| (key.to_string(), value)));
}

/// Adds the same to the environment of `ran`.
pub fn stamped(mut ran: Ran) -> Ran {
    stamp(&mut ran.environment, ran.engine.name());
    ran
}

/// When this command began, in UTC: the same in all that it writes.
fn began() -> &'static str {
    static BEGAN: OnceLock<String> = OnceLock::new();
    BEGAN.get_or_init(|| humantime::format_rfc3339_seconds(SystemTime::now()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_one_command_have_one_date() {
        let [mut first, mut second] = [Map::new(), Map::new()];
        stamp(&mut first, "model");
        stamp(&mut second, "model");
        assert_eq!(first, second);
        let date = first["date"].as_str().unwrap();
        assert_eq!((date.len(), &date[10..11], &date[19..]), (20, "T", "Z"));
    }
}
