//! Figures in readable units, formatted alike in all reports.

/// Units of bytes, from the largest.
const BYTE_UNITS: [(&str, f64); 6] = [
    ("EiB", (1u64 << 60) as f64),
    ("PiB", (1u64 << 50) as f64),
    ("TiB", (1u64 << 40) as f64),
    ("GiB", (1u64 << 30) as f64),
    ("MiB", (1u64 << 20) as f64),
    ("KiB", 1024.0),
];

/// Units of time in nanoseconds, from the largest.
const TIME_UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// Minimum number of digits that are grouped.
const DIGITS_APART: usize = 5;

/// A count, with grouped digits from 10 000 on; medians may be halves.
pub fn number(value: f64) -> String {
    let whole = format!("{:.0}", value.trunc());
    let mut text = String::new();
    for (position, digit) in whole.chars().enumerate() {
        let apart = whole.len() >= DIGITS_APART && (whole.len() - position).is_multiple_of(3);
        if position > 0 && apart {
            text.push(' ');
        }
        text.push(digit);
    }
    if value.fract() != 0.0 { text + ".5" } else { text }
}

/// Bytes in the largest unit that is at most the value: `223.6 GiB`, `4 KiB`, `100 bytes`.
pub fn bytes(value: f64) -> String {
    let (name, unit) = byte_unit(value);
    format!("{} {name}", digits(value / unit))
}

/// A range of bytes in the unit of the larger value: `0.98 to 223.6 GiB`.
pub fn bytes_range(from: f64, to: f64) -> String {
    join_units(from, "to", to)
}

/// Two values of bytes in one unit: `13.5 instead of 766.7 MiB`.
pub fn bytes_instead(own: f64, other: f64) -> String {
    join_units(own, "instead of", other)
}

/// Two figures in the unit of the larger one, unless the smaller one would be nearly 0.
fn join_units(one: f64, words: &str, other: f64) -> String {
    let (name, unit) = byte_unit(one.max(other));
    let least = one.min(other) / unit;
    if least != 0.0 && least < 0.01 {
        return format!("{} {words} {}", bytes(one), bytes(other));
    }
    format!("{} {words} {} {name}", digits(one / unit), digits(other / unit))
}

/// A range of times in the unit of the longer one: `0.20 to 0.80 s`.
pub fn time_range(from_ns: f64, to_ns: f64) -> String {
    let (name, unit) = time_unit(to_ns);
    let least = from_ns / unit;
    if least != 0.0 && least < 0.01 {
        format!("{} to {}", time(from_ns), time(to_ns))
    } else {
        format!("{} to {} {name}", digits(least), digits(to_ns / unit))
    }
}

/// The largest unit that is at most `value`, with its bytes.
pub fn byte_unit(value: f64) -> (&'static str, f64) {
    BYTE_UNITS.into_iter().find(|(_, unit)| value >= *unit).unwrap_or(("bytes", 1.0))
}

/// A time: `186.8 s`, `12.3 ms`, `700 ns`.
pub fn time(ns: f64) -> String {
    let (name, unit) = time_unit(ns);
    format!("{} {name}", digits(ns / unit))
}

/// The largest unit that is at most `ns`, with its nanoseconds.
pub fn time_unit(ns: f64) -> (&'static str, f64) {
    TIME_UNITS.into_iter().find(|(_, unit)| ns >= *unit).unwrap_or(("ns", 1.0))
}

/// A figure with about four digits.
pub fn figure(value: f64) -> String {
    let text = match value.abs() {
        0.0 => "0".to_string(),
        large if large >= 10_000.0 => number(value.round()),
        large if large >= 1000.0 => format!("{value:.0}"),
        large if large >= 100.0 => format!("{value:.1}"),
        large if large >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

/// A factor: `x 100.2`.
pub fn factor(value: f64) -> String {
    format!("x {}", digits(value))
}

/// The deviation of `value` from `reference` in percent; `None` for a reference of 0.
pub fn percent(value: f64, reference: f64) -> Option<f64> {
    (reference != 0.0).then(|| (value - reference) / reference * 100.0)
}

/// A change in percent, or as a factor if it is large.
pub fn change(before: f64, after: f64) -> String {
    match percent(after, before) {
        Some(0.0) => "=".to_string(),
        None if after == 0.0 => "=".to_string(),
        None => "new".to_string(),
        Some(percent) if percent >= 900.0 => factor(percent / 100.0 + 1.0),
        Some(percent) if percent.abs() < 0.005 => "0.00 %".to_string(),
        Some(percent) if percent.abs() < 0.05 => format!("{percent:+.2} %"),
        Some(percent) => format!("{percent:+.1} %"),
    }
}

/// Whole figures without decimals, others with one, small ones with two.
fn digits(value: f64) -> String {
    let text = match value {
        small if small < 9.995 => format!("{small:.2}"),
        large => format!("{large:.1}"),
    };
    match text.split_once('.') {
        Some((whole, "0" | "00")) => whole.to_string(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_thousands_apart() {
        for (value, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (4096.0, "4096"),
            (10000.0, "10 000"),
            (1234567.0, "1 234 567"),
            (2.5, "2.5"),
            (10000.5, "10 000.5"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn bytes_are_in_the_largest_unit() {
        for (value, text) in [
            (0.0, "0 bytes"),
            (1023.0, "1023 bytes"),
            (4096.0, "4 KiB"),
            (1.5 * 1048576.0, "1.50 MiB"),
            (240_050_000_000.0, "223.6 GiB"),
            (20.0 * (1u64 << 30) as f64, "20 GiB"),
            ((1u64 << 60) as f64, "1 EiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }

    #[test]
    fn two_figures_share_a_unit() {
        let gib = |value: f64| value * (1u64 << 30) as f64;
        assert_eq!(bytes_range(gib(0.976), gib(223.61)), "0.98 to 223.6 GiB");
        assert_eq!(bytes_range(4096.0, gib(3.0)), "4 KiB to 3 GiB");
        assert_eq!(bytes_range(0.0, gib(3.0)), "0 to 3 GiB");
        let mib = |value: f64| value * 1048576.0;
        assert_eq!(bytes_instead(mib(13.5), mib(766.7)), "13.5 instead of 766.7 MiB");
    }

    #[test]
    fn times_and_factors() {
        assert_eq!(time(186_849_361_170.0), "186.8 s");
        assert_eq!(time(54_000.0), "54 us");
        assert_eq!(time(700.0), "700 ns");
        assert_eq!(time(1_234_567.0), "1.23 ms");
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(factor(100.2), "x 100.2");
        assert_eq!(factor(1.0), "x 1");
    }

    #[test]
    fn changes() {
        assert_eq!(change(100.0, 100.0), "=");
        assert_eq!(change(0.0, 0.0), "=");
        assert_eq!(change(0.0, 5.0), "new");
        assert_eq!(change(1.0, 4096.0), "x 4096");
        assert_eq!(change(200.0, 197.0), "-1.5 %");
        assert_eq!(change(100_000.0, 100_010.0), "+0.01 %");
        assert_eq!(change(1_000_000.0, 999_999.0), "0.00 %");
        assert_eq!(change(200.0, 0.0), "-100.0 %");
    }
}
