//! `filemap record --change-settings` sets fault-around to one page to record every first touch,
//! and restores it.

use std::fs;
use std::process::Output;

use filemap_recording::Event;

use crate::governed::Place;
use crate::recorded::{events, recorded, shown};
use crate::running::Running;
use crate::{skip, stderr};

/// Journals of runs that changed a setting.
fn journals(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.scratch.path("state")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".journal")).collect()
}

/// Whether fault-around could be set; otherwise prints that this part is skipped.
pub fn is_applied(output: &Output) -> bool {
    let is_refused = output.status.code() == Some(4);
    if is_refused {
        skip(stderr(output));
    }
    !is_refused
}

/// With one page per fault, the faults on a warm file are the touches seen on a cold file.
#[test]
fn a_warm_recording_has_the_touches_of_a_cold_one() {
    let place = Place::new("record_warm");
    let [lookups, data] = place.lookups();
    let steps = place.compiled("steps");
    for words in [&[&lookups[..], &data, "3000"][..], &[&steps, &data]] {
        let Some(cold) = recorded(&place, "cold", words) else { return };
        fs::read(&data).expect("it is there");
        let path = place.scratch.path("warm");
        let mut command = place.command("record", &format!("--change-settings --output {path} --"));
        let output = command.args(words).output().expect("the command starts");
        if !is_applied(&output) {
            return;
        }
        assert!(output.status.success(), "{}", stderr(&output));
        let shown = |events: &[Event]| events.iter().filter_map(shown).collect::<Vec<_>>();
        assert_eq!(shown(&events(&path)), shown(&cold), "{words:?}");
        assert!(journals(&place).is_empty(), "{:?}", journals(&place));
    }
}

/// Fault-around is restored however the command ends, if need be by the next command.
#[test]
fn fault_around_is_restored_on_every_exit() {
    let place = Place::new("record_restored");
    let [lookups, data] = place.lookups();
    for signal in ["INT", "TERM", "KILL"] {
        let path = place.scratch.path(signal);
        let mut command = place.command("record", &format!("--change-settings --output {path} --"));
        command.args([&lookups, &data, "200", "wait"]);
        let mut running = Running::start(&mut command);
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(running.stdout()));
        if !lines.any(|line| line.is_ok_and(|line| line == "ready")) {
            assert!(!is_applied(&running.output()), "it has not run");
            return;
        }
        assert_eq!(journals(&place).len(), 1, "{signal}");
        running.signal(signal);
        drop(running.output());
        if signal == "KILL" {
            let next = place.command("record", "--show /nowhere").output().unwrap();
            let message = stderr(&next);
            assert!(message.contains("fault_around_bytes' to '"), "{message}");
        }
        assert!(journals(&place).is_empty(), "{signal}: {:?}", journals(&place));
    }
}
