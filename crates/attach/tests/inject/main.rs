//! Threads of other processes advise, and do not notice.
//!
//! The binary has a main of its own because victims and injectors run it again.

#[cfg(target_arch = "x86_64")]
mod calm;
#[cfg(target_arch = "x86_64")]
mod kills;
#[cfg(target_arch = "x86_64")]
mod process;
#[path = "../../../kernel/tests/support/session.rs"]
mod session;
#[cfg(target_arch = "x86_64")]
mod victim;

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("skipped: inject: threads are made to advise on x86-64 only");
}

#[cfg(target_arch = "x86_64")]
type Test = (&'static str, fn(&process::Bench));

#[cfg(target_arch = "x86_64")]
const TESTS: [Test; 13] = [
    ("advice is in force and is taken back", calm::in_force),
    ("registers stay", calm::registers_stay),
    ("waits do not end early", calm::waits_stay),
    ("transfers do not end early", calm::transfers_stay),
    ("signals are not lost", calm::signals_stay),
    ("threads begin and end", calm::threads_end),
    ("programs are started with vfork", calm::vforks),
    ("a thread in a system call is left alone", calm::blocked),
    ("a stopped process stays stopped", calm::job_control),
    ("what is not the mapping meant is left alone", calm::changed),
    ("a traced thread is left alone", calm::traced),
    ("a filter is asked", calm::filtered),
    ("injectors are killed at random moments", kills::kills),
];

#[cfg(target_arch = "x86_64")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments[1..].iter().map(String::as_str).collect();
    match words[..] {
        ["__victim", name, file] => victim::run(name, file),
        ["__injector", pid, file] => kills::inject_for_ever(pid.parse().expect("a pid"), file),
        ["__measure", pid, file, count] => {
            calm::measure(pid.parse().expect("a pid"), file, count.parse().expect("a count"))
        }
        _ => {}
    }
    let bench = process::Bench::new();
    let filter = words.iter().find(|word| !word.starts_with("--")).copied().unwrap_or("");
    if words.contains(&"--list") {
        return TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
    }
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(filter)) {
        let begin = std::time::Instant::now();
        test(&bench);
        println!("test {name} ... ok ({:.1} s)", begin.elapsed().as_secs_f64());
    }
}
