//! Names of series and switches.

use filemap_core::series::{Series, Switch, UnknownSeries};

fn read(text: &str) -> Result<Series, UnknownSeries> {
    text.parse()
}

#[test]
fn names_are_read_and_written() {
    let p1 = Series::BASELINE.with(Switch::MissFaultAddress);
    let p2 = Series::BASELINE.with(Switch::MissNoRetry);
    let cases = [
        ("baseline", Series::BASELINE, "baseline"),
        ("miss-fault-address", p1, "miss-fault-address"),
        ("p1", p1, "miss-fault-address"),
        ("miss-no-retry", p2, "miss-no-retry"),
        ("p2", p2, "miss-no-retry"),
        ("mmap-miss", p1.union(p2), "miss-fault-address+miss-no-retry"),
        ("miss-no-retry+miss-fault-address", p1.union(p2), "miss-fault-address+miss-no-retry"),
        ("p1+p1", p1, "miss-fault-address"),
        ("baseline+p2", p2, "miss-no-retry"),
        ("baseline+baseline", Series::BASELINE, "baseline"),
    ];
    for (text, series, written) in cases {
        assert_eq!(read(text), Ok(series), "{text}");
        assert_eq!(series.to_string(), written, "{text}");
        assert_eq!(read(written), Ok(series), "{written}");
        assert_eq!(format!("{series:?}"), format!("Series({written})"));
    }
}

#[test]
fn unknown_names_are_refused_by_name() {
    for (text, name) in [("", ""), ("P1", "P1"), ("p1+", ""), ("p1+p9", "p9"), ("+p1", "")] {
        let error = read(text).expect_err(text);
        assert_eq!(error, UnknownSeries(name.into()), "{text}");
        let message = error.to_string();
        assert!(message.starts_with(&format!("unknown series '{name}'; known: ")), "{message}");
        for known in Series::names() {
            assert!(message.contains(known), "{message} does not name {known}");
        }
    }
}

#[test]
fn every_name_can_be_read() {
    let names: Vec<_> = Series::names().collect();
    for name in ["baseline", "mmap-miss", "p1", "p2", "miss-fault-address", "miss-no-retry"] {
        assert!(names.contains(&name), "{name}");
    }
    for name in names {
        assert!(read(name).is_ok(), "{name}");
    }
}

#[test]
fn sets_contain_inserted_switches() {
    for switch in Switch::ALL {
        let one = Series::BASELINE.with(switch);
        assert_eq!(one.switches().collect::<Vec<_>>(), [switch]);
        assert_eq!(one.with(switch), one);
        for other in Switch::ALL {
            assert_eq!(one.has(other), other == switch, "{other:?} in {one}");
            let both = one.union(Series::BASELINE.with(other));
            assert!(both.has(switch) && both.has(other));
            assert_eq!(both, one.with(other));
            assert_eq!(both.union(one), both);
        }
    }
    assert_eq!(Series::default(), Series::BASELINE);
    assert_eq!(Series::BASELINE.switches().count(), 0);
}
