//! Measured numbers, and how far they spread.

/// Numbers that were measured alike.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn add(&mut self, number: f64) {
        self.0.push(number);
    }

    pub fn median(&self) -> f64 {
        median(&self.0)
    }

    /// The median distance from the median.
    pub fn spread(&self) -> f64 {
        let median = self.median();
        median_of(self.0.iter().map(|number| (number - median).abs()).collect())
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Samples {
        Samples(numbers.into_iter().collect())
    }
}

fn median(numbers: &[f64]) -> f64 {
    median_of(numbers.to_vec())
}

fn median_of(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => numbers[middle],
        _ => f64::midpoint(numbers[middle - 1], numbers[middle]),
    }
}
