//! Tables of which some columns are drawn: dots, rings, ranges and bars on the scale of the column.

use crate::axis::{Axis, ticks};
use crate::column::Unit;
use crate::table::Head;
use crate::units::{byte_unit, figure, time_unit};

/// Width of a drawn column, and the margin at both sides of its scale, in units of the picture.
pub(crate) const WIDTH: f64 = 240.0;
pub(crate) const MARGIN: f64 = 10.0;

/// From such a ratio of the largest figure to the smallest on a scale is logarithmic.
const MOST_LINEAR: f64 = 30.0;

/// A table whose rows have as many cells as there are columns.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Dots {
    pub title: String,
    /// How to read it; may be empty.
    pub note: String,
    /// What classes of marks mean; may be empty.
    pub legend: Vec<(String, String)>,
    pub columns: Vec<DotColumn>,
    pub rows: Vec<Vec<DotCell>>,
}

#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum DotColumn {
    Text(Head),
    /// One scale for all rows, which stands in the heading.
    Drawn(Scale),
}

#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum DotCell {
    /// What the row is about.
    Name(String),
    Text(String),
    /// A text of a class, and what is said where it is pointed at.
    Verdict {
        text: String,
        class: Option<&'static str>,
        more: Option<String>,
    },
    /// Marks in the order in which they are drawn, and what they show in words.
    Drawn {
        marks: Vec<Mark>,
        told: String,
    },
}

/// A mark. A class is that of its colour.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Mark {
    Ring(f64),
    Dot(f64, &'static str),
    Range(f64, f64, &'static str),
    /// From 0. It has a tip where it goes on beyond its scale.
    Bar(f64, &'static str),
}

/// The scale of a drawn column. It begins at 0, or is logarithmic.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// What stands over it; may be empty.
    pub name: String,
    /// Where every row has a dashed line.
    pub threshold: Option<f64>,
    axis: Axis,
    is_logarithmic: bool,
    unit: Unit,
    /// What a value is divided by.
    divisor: f64,
}

impl Scale {
    /// A scale that `values` lie on. It is logarithmic where they are far apart, but not of bytes,
    /// which bars stand for.
    pub fn of(name: &str, unit: Unit, values: impl Iterator<Item = f64>) -> Scale {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_far = least > 0.0 && most / least > MOST_LINEAR && unit != Unit::Bytes;
        let (in_unit, divisor) = match unit {
            Unit::Bytes => byte_unit(most),
            Unit::Nanoseconds if !is_far => time_unit(most),
            _ => ("", 1.0),
        };
        let (first, last) = if is_far {
            (least.log10().floor(), most.log10().ceil())
        } else {
            (least.min(0.0) / divisor, most.max(0.0) / divisor)
        };
        let last = if last > first { last } else { first + 1.0 };
        let name = match in_unit {
            "" => name.to_string(),
            in_unit => format!("{name} ({in_unit})"),
        };
        let axis = Axis { left: MARGIN, width: WIDTH - 2.0 * MARGIN, first, last };
        Scale { name, threshold: None, axis, is_logarithmic: is_far, unit, divisor }
    }

    /// Where a value lies; beyond the picture where it is not on the scale.
    pub(crate) fn at(&self, value: f64) -> f64 {
        if self.is_logarithmic {
            self.axis.at(value.max(f64::MIN_POSITIVE).log10().max(self.axis.first))
        } else {
            self.axis.at(value / self.divisor)
        }
    }

    /// Places with their texts.
    pub(crate) fn marks(&self) -> Vec<(f64, String)> {
        let Axis { first, last, .. } = self.axis;
        if !self.is_logarithmic {
            let marks = ticks(first, last, 3.0, 1e-3).into_iter();
            return marks.map(|value| (self.axis.at(value), figure(value))).collect();
        }
        let step = ((last - first) / 3.0).ceil().max(1.0);
        let count = ((last - first) / step).floor() as usize;
        let powers = (0..=count).map(|number| first + number as f64 * step);
        let text = |value: f64| match self.unit {
            Unit::Nanoseconds => self.unit.text(value),
            _ => figure(value),
        };
        powers.map(|power| (self.axis.at(power), text(10_f64.powf(power)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<String> {
        scale.marks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_scale_begins_at_0_or_is_logarithmic() {
        let near = Scale::of("change", Unit::Percent, [-12.0, 30.0].into_iter());
        assert_eq!(texts(&near), ["0", "20"]);
        assert_eq!(near.at(30.0), WIDTH - MARGIN);
        let far = Scale::of("time", Unit::Nanoseconds, [1000.0, 2e9].into_iter());
        assert_eq!((far.name.as_str(), far.at(1000.0)), ("time", MARGIN));
        assert_eq!(texts(&far), ["1 us", "1 ms", "1 s"]);
        let read = Scale::of("read", Unit::Bytes, [1024.0, 4e9].into_iter());
        assert_eq!((read.name.as_str(), read.at(0.0)), ("read (GiB)", MARGIN));
        let none = Scale::of("none", Unit::Count, std::iter::empty());
        assert!(none.at(0.5).is_finite());
    }
}
