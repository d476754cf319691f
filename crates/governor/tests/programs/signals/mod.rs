//! Programs that use SIGTRAP or SIGSEGV themselves, in each way that there is.

use std::fs::File;

mod blocked;
mod calls;
mod handled;
mod others;
mod waits;

use crate::support::bench::Bench;
use crate::support::draws::{Digest, Draws};
use crate::support::mapping::Mapping;
use calls::{disposition, mask_text, use_segv};

type Program = (&'static str, fn(&mut Looks));

const PROGRAMS: [Program; 33] = [
    ("sigaction", handled::with_sigaction),
    ("signal", handled::with_signal),
    ("ignored", handled::ignored),
    ("ignored, then an instruction", handled::ignored_instruction),
    ("ignored while it waits", waits::ignored_while_it_waits),
    ("default", handled::default),
    ("default, by an instruction", handled::default_instruction),
    ("blocked and taken", blocked::blocked_and_taken),
    ("waited for", blocked::waited_for),
    ("read from a descriptor", blocked::from_a_descriptor),
    ("blocked, then not", blocked::blocked_then_not),
    ("blocked, with a handler", blocked::blocked_with_a_handler),
    ("blocked, then an instruction", blocked::blocked_instruction),
    ("handled once", handled::handled_once),
    ("nested", handled::nested),
    ("not nested", handled::not_nested),
    ("on a stack of its own", handled::on_its_stack),
    ("not on a stack of its own", handled::not_on_its_stack),
    ("masks", blocked::masks),
    ("masks of a handler", handled::masks_of_a_handler),
    ("with a value", blocked::with_a_value),
    ("suspended", waits::suspended),
    ("polled", waits::polled),
    ("from a timer", handled::from_a_timer),
    ("in another thread", others::in_another_thread),
    ("blocked for a thread that begins", others::blocked_for_a_thread),
    ("interrupts a call", waits::interrupts_a_call),
    ("restarts a call", waits::restarts_a_call),
    ("in a child", others::in_a_child),
    ("left to the next program, ignored", others::exec_ignored),
    ("left to the next program, blocked", others::exec_blocked),
    ("left to a shell, blocked", others::system_blocked),
    ("left to a shell with a pipe, blocked", others::popen_blocked),
];

pub fn own_signals(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let signals: &[&str] = if bench.records() { &["SEGV", "TRAP"] } else { &["TRAP"] };
    for signal in signals {
        for (name, _) in PROGRAMS {
            let command = || {
                let mut command = bench.own("signals", &[name, path]);
                command.env(USED, signal);
                command
            };
            let both = bench.both(1 << 20, &[&data], command);
            both.alike_but(without_refusal).governs(&data);
        }
    }
}

/// What is printed, but that a program is not recorded that began with the signal ignored.
fn without_refusal(text: &[u8]) -> Vec<u8> {
    let is_kept = |line: &&[u8]| !line.starts_with(b"filemap: nothing is recorded: SIGTRAP");
    text.split_inclusive(|byte| *byte == b'\n').filter(is_kept).flatten().copied().collect()
}

/// The variable that says which signal the programs use.
const USED: &str = "FILEMAP_TEST_SIGNAL";

/// The mapping that each program looks at, between what it does.
struct Looks {
    mapping: Mapping,
    draws: Draws,
    path: String,
}

impl Looks {
    fn look(&mut self) {
        let mut digest = Digest::NEW;
        for _ in 0..50 {
            digest.add(self.mapping.word(self.draws.below(self.mapping.pages())));
        }
        println!("looked: {:x}", digest.0);
    }
}

/// The program itself.
pub fn program(arguments: &[String]) {
    let [name, path] = arguments else { panic!("a name and a path are needed") };
    if std::env::var(USED).is_ok_and(|name| name == "SEGV") {
        use_segv();
    }
    if name == "what is left" {
        println!("{} {}", disposition(), mask_text());
        return;
    }
    let (_, program) = PROGRAMS.iter().find(|(of, _)| of == name).expect("a program of that name");
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    let mut looks = Looks { mapping, draws: Draws::new(3), path: path.clone() };
    looks.look();
    program(&mut looks);
    looks.look();
}
