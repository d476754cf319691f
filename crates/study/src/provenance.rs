//! Provenance of records: date, kernel, version.

use std::sync::OnceLock;
use std::time::SystemTime;

use filemap_job::JobRuns;
use filemap_model::profile::Date;
use serde_json::{Map, Value};

use crate::input;

/// Commit of this build; `None` outside of a checkout.
const REVISION: Option<&str> = option_env!("FILEMAP_REVISION");

/// Adds date, host kernel, version, commit and the name of the `engine` to `environment`.
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

/// Stamps the environment of `ran`.
pub fn stamped(mut ran: JobRuns) -> JobRuns {
    stamp(&mut ran.environment, ran.engine.name());
    ran
}

/// Date of the start of this command, in UTC.
pub(crate) fn today() -> Date {
    let date = began().split('T').next().unwrap_or_default();
    Date::try_from(date.to_string()).expect("RFC 3339 begins with a date")
}

/// Start of this command in UTC (RFC 3339), identical in everything that it writes.
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
