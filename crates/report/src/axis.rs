//! Axes of plots, and the widths of their labels.

/// Width of a character as a part of the font size, an upper bound for digits and most letters of
/// common sans-serif fonts.
pub const CHARACTER_WIDTH: f64 = 0.62;

/// The horizontal axis of a plot: `first` at `left`, `last` at `left + width`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Coordinate of the left end.
    pub left: f64,
    /// Length.
    pub width: f64,
    /// Value at the left end.
    pub first: f64,
    /// Value at the right end, larger than the first.
    pub last: f64,
}

impl Axis {
    /// The coordinate of a value.
    pub fn position(&self, value: f64) -> f64 {
        self.left + (value - self.first) / (self.last - self.first) * self.width
    }
}

/// An upper bound for the width of a text.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * CHARACTER_WIDTH
}

/// Round values from `first` to `last` in about `count` steps of at least `least`.
pub fn ticks(first: f64, last: f64, count: f64, least: f64) -> Vec<f64> {
    let wanted = ((last - first) / count).max(least);
    let power = 10f64.powf(wanted.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= wanted * 0.999);
    let step = factor.unwrap_or(10.0) * power;
    let begin = (first / step).ceil();
    let mut values = Vec::new();
    while (begin + values.len() as f64) * step <= last + step * 1e-6 {
        values.push((begin + values.len() as f64) * step);
    }
    values
}

/// A label without trailing zeros.
pub fn tick_text(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_no_trailing_zeros() {
        let texts = [0.0, 0.6000000000000001, 20.0, 2.5].map(tick_text);
        assert_eq!(texts, ["0", "0.6", "20", "2.5"]);
    }

    #[test]
    fn ticks_are_round_and_in_range() {
        assert_eq!(ticks(0.0, 100.0, 5.0, 1.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(0.0, 3.0, 5.0, 1.0), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(0.0, 1.0, 5.0, 0.1), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks(4096.0, 4099.0, 5.0, 1.0), [4096.0, 4097.0, 4098.0, 4099.0]);
        assert_eq!(ticks(0.0, 0.0, 5.0, 1.0), [0.0]);
        let far = ticks(137438953456.0, 137438953727.0, 4.0, 1.0);
        assert_eq!(far, [137438953500.0, 137438953600.0, 137438953700.0]);
    }
}
