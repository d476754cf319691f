//! Random programs that are governed.

use filemap_job::program::ProgramSpec;

/// Numbers that follow from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }

    fn phase(&mut self) -> String {
        let workload = match self.below(7) {
            0 => "random".to_string(),
            1 => "reverse".to_string(),
            2 => format!("interleave:{}", 2 + self.below(20)),
            3 | 4 => format!("stride:{}", 2 + self.below(3000)),
            _ => "sequential".to_string(),
        };
        let (accesses, seed) = (1 + self.below(1500), 1 + self.below(1 << 30));
        format!(
            "[[thread.phase]]\nmapping = 'm'\nworkload = '{workload}'\naccesses = {accesses}\n\
             seed = {seed}\n"
        )
    }
}

/// A program of one thread that maps a file, or a part of one, and accesses its pages in one way
/// after the other.
pub fn program(seed: u64) -> ProgramSpec {
    let mut draws = Draws(seed);
    let len = 16 + draws.below(60);
    let offset = draws.below(3) * draws.below(1000) * 4096;
    let size = (len << 20) + offset + draws.below(2) * draws.below(2000) * 4096;
    let fs = ["ext4", "ext4", "xfs"][draws.below(3) as usize];
    let phases: String = (0..1 + draws.below(4)).map(|_| draws.phase()).collect();
    let text = format!(
        "governor = true\nfs = '{fs}'\n[[file]]\nname = 'f'\nsize = {size}\n[[open]]\nname = \
         'o'\nfile = 'f'\n[[mapping]]\nname = 'm'\nopen = 'o'\noffset = {offset}\nlen = \
         '{len}m'\n[[thread]]\n{phases}"
    );
    toml::from_str(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"))
}
