//! Evaluates a thread's seccomp filters for a system call.

use libc::sock_filter;

use super::tracee::Tracee;

/// `SECCOMP_RET_ALLOW`, `SECCOMP_RET_LOG` and the mask of the action.
const ALLOW: u32 = 0x7fff_0000;
const LOG: u32 = 0x7ffc_0000;
const ACTION: u32 = 0xffff_0000;

/// The system call to evaluate, as in `struct seccomp_data`.
#[derive(Clone, Copy, Debug)]
pub struct FilteredCall {
    pub number: u32,
    pub architecture: u32,
    /// Instruction pointer during the call: the address after the `syscall` instruction.
    pub instruction: u64,
    pub arguments: [u64; 3],
}

impl FilteredCall {
    /// Checks that every filter allows the call. The error names the obstacle.
    pub fn passes(&self, tracee: &Tracee) -> Result<(), &'static str> {
        for index in 0.. {
            let filter = tracee
                .seccomp_filter(index)
                .map_err(|_| "with seccomp, by a filter that only root can read")?;
            match filter {
                None => break,
                Some(filter) if self.passes_filter(&filter) => {}
                Some(_) => return Err("with seccomp, which does not allow this madvise(2)"),
            }
        }
        Ok(())
    }

    fn passes_filter(&self, filter: &[sock_filter]) -> bool {
        run(filter, &self.data()).is_some_and(|answer| matches!(answer & ACTION, ALLOW | LOG))
    }

    /// Serializes to `struct seccomp_data`.
    fn data(&self) -> [u8; 64] {
        let mut data = [0; 64];
        data[..4].copy_from_slice(&self.number.to_le_bytes());
        data[4..8].copy_from_slice(&self.architecture.to_le_bytes());
        data[8..16].copy_from_slice(&self.instruction.to_le_bytes());
        for (argument, bytes) in self.arguments.iter().zip(data[16..].chunks_exact_mut(8)) {
            bytes.copy_from_slice(&argument.to_le_bytes());
        }
        data
    }
}

/// Runs a classic BPF program with the instructions that seccomp accepts; `None` if it has others.
/// Terminates, since jumps only go forward.
fn run(program: &[sock_filter], data: &[u8; 64]) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0_u32, 0_u32, [0_u32; 16]);
    let mut at = 0;
    loop {
        let sock_filter { code, jt, jf, k } = *program.get(at)?;
        at += 1;
        let operand = if code & 0x08 == 0 { k } else { x };
        let slot = k as usize;
        match code {
            // Loads of data, data length, constants and scratch memory.
            0x20 => {
                let bytes = data.get(slot..slot.checked_add(4)?)?;
                a = u32::from_le_bytes(bytes.try_into().ok()?);
            }
            0x80 => a = data.len() as u32,
            0x81 => x = data.len() as u32,
            0x00 => a = k,
            0x01 => x = k,
            0x60 => a = *memory.get(slot)?,
            0x61 => x = *memory.get(slot)?,
            0x02 => *memory.get_mut(slot)? = a,
            0x03 => *memory.get_mut(slot)? = x,
            0x07 => x = a,
            0x87 => a = x,
            0x84 => a = a.wrapping_neg(),
            0x06 => return Some(k),
            0x16 => return Some(a),
            0x05 => at = at.checked_add(slot)?,
            _ if code & 0x07 == 0x04 => a = arithmetic(code & 0xf0, a, operand)?,
            _ if code & 0x07 == 0x05 => {
                let is_taken = match code & 0xf0 {
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    0x40 => a & operand != 0,
                    _ => return None,
                };
                at += usize::from(if is_taken { jt } else { jf });
            }
            _ => return None,
        }
    }
}

fn arithmetic(operation: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match operation {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        // The kernel ends a filter that divides by zero with 0 (SECCOMP_RET_KILL_THREAD); `None`
        // denies as well.
        0x30 => return a.checked_div(operand),
        0x40 => a | operand,
        0x50 => a & operand,
        0x60 => a.checked_shl(operand).unwrap_or(0),
        0x70 => a.checked_shr(operand).unwrap_or(0),
        0xa0 => a ^ operand,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: FilteredCall = FilteredCall {
        number: 28,
        architecture: 0xc000_003e,
        instruction: 0x7fff_0000_1002,
        arguments: [0x7f00_0000_0000, 0x1000, 1],
    };

    fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
        sock_filter { code, jt, jf, k }
    }

    /// Filter that allows the call if the word at `offset` is `value`.
    fn allows_if(offset: u32, value: u32) -> [sock_filter; 4] {
        [
            instruction(0x20, 0, 0, offset),
            instruction(0x15, 0, 1, value),
            instruction(0x06, 0, 0, ALLOW),
            instruction(0x06, 0, 0, 0x0005_0001),
        ]
    }

    #[test]
    fn filter_compares_argument_words() {
        let cases = [(0, 28), (4, 0xc000_003e), (8, 0x1002), (12, 0x7fff), (20, 0x7f00), (32, 1)];
        for (offset, value) in cases {
            assert!(CALL.passes_filter(&allows_if(offset, value)), "{offset}");
            assert!(!CALL.passes_filter(&allows_if(offset, value ^ 4)), "{offset}");
        }
    }

    #[test]
    fn unknown_instruction_denies() {
        assert!(!CALL.passes_filter(&[]));
        assert!(!CALL.passes_filter(&[instruction(0x20, 0, 0, 61)]));
        assert!(!CALL.passes_filter(&[instruction(0x05, 0, 0, 7)]));
        let divides = [instruction(0x34, 0, 0, 0), instruction(0x06, 0, 0, ALLOW)];
        assert!(!CALL.passes_filter(&divides));
    }

    #[test]
    fn executes_arithmetic_and_memory() {
        let program = [
            instruction(0x00, 0, 0, 5),
            instruction(0x02, 0, 0, 3),
            instruction(0x01, 0, 0, 2),
            instruction(0x2c, 0, 0, 0),
            instruction(0x61, 0, 0, 3),
            instruction(0x1c, 0, 0, 0),
            instruction(0x16, 0, 0, 0),
        ];
        assert_eq!(run(&program, &CALL.data()), Some(5));
    }
}
