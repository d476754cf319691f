//! Permutation tests on ranks: the probability that chance alone separates the samples this much.

/// Significance level: a larger p-value shows no difference.
pub const SIGNIFICANCE_LEVEL: f64 = 0.05;

/// Maximum number of samples whose rank sums are enumerated. Beyond it the normal approximation of
/// the rank sum is accurate enough.
const MAX_EXACT_SAMPLES: usize = 120;

/// Two-sided p-value of the rank-sum test: the share of all partitions of the figures whose rank
/// sum is at least as far from its mean.
///
/// Makes no assumption about the distribution. 1 if one of the samples is empty.
pub fn p_value(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let ranks = doubled_ranks(&[a, b].concat());
    let (count, total) = (a.len(), ranks.iter().sum::<usize>());
    let own: usize = ranks[..count].iter().sum();
    // Twice the rank sum, times the number of samples, so that the middle is a whole number.
    let distance = |sum: usize| (sum * ranks.len()).abs_diff(total * count);
    if ranks.len() > MAX_EXACT_SAMPLES {
        return normal_p(&ranks, count, distance(own) as f64 / ranks.len() as f64);
    }
    let ways = ways_to_sum(&ranks, count);
    let all: f64 = ways.iter().sum();
    let far = (0..ways.len()).filter(|&sum| distance(sum) >= distance(own));
    far.map(|sum| ways[sum]).sum::<f64>() / all
}

/// Smallest value that [`p_value`] can take for samples of these sizes.
pub fn least_p_value(a: usize, b: usize) -> f64 {
    let ranks: Vec<f64> = (0..a + b).map(|rank| rank as f64).collect();
    p_value(&ranks[..a], &ranks[a..])
}

/// Two-sided p-value of the signed-rank test on `changes`, one for each pair: the share of all sign
/// assignments whose sum of signed ranks is at least as far from 0.
///
/// Pairs without a change are left out. 1 if nothing changed.
pub fn paired_p_value(changes: &[f64]) -> f64 {
    let moved: Vec<f64> = changes.iter().copied().filter(|&change| change != 0.0).collect();
    let sizes: Vec<f64> = moved.iter().map(|change| change.abs()).collect();
    let ranks = doubled_ranks(&sizes);
    let total: usize = ranks.iter().sum();
    let up = moved.iter().zip(&ranks).filter(|(change, _)| **change > 0.0);
    let own: usize = up.map(|(_, rank)| rank).sum();
    let distance = |sum: usize| (2 * sum).abs_diff(total);
    if ranks.is_empty() {
        return 1.0;
    }
    if ranks.len() > MAX_EXACT_SAMPLES {
        let squares: f64 = ranks.iter().map(|&rank| (rank as f64).powi(2)).sum();
        return both_tails(distance(own) as f64 / squares.sqrt());
    }
    let shares = shares_of_sums(&ranks);
    let far = (0..shares.len()).filter(|&sum| distance(sum) >= distance(own));
    far.map(|sum| shares[sum]).sum()
}

/// Smallest value that `paired_p_value` can take for this number of pairs.
pub fn least_paired_p_value(pairs: usize) -> f64 {
    paired_p_value(&vec![1.0; pairs])
}

/// For each sum, the share of all subsets of `ranks` that add up to it.
fn shares_of_sums(ranks: &[usize]) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    let mut shares = vec![0.0; total + 1];
    shares[0] = 1.0;
    for &rank in ranks {
        for sum in (0..=total).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = f64::midpoint(shares[sum], with);
        }
    }
    shares
}

/// Twice the rank of each figure, so that the mean rank of ties is an integer.
fn doubled_ranks(all: &[f64]) -> Vec<usize> {
    let mut sorted = all.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |figure: &f64| {
        let below = sorted.partition_point(|other| other < figure);
        let up_to = sorted.partition_point(|other| other <= figure);
        below + up_to + 1
    };
    all.iter().map(rank).collect()
}

/// For each sum, the number of subsets of `count` ranks that add up to it.
fn ways_to_sum(ranks: &[usize], count: usize) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0; total + 1]; count + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        for taken in (0..count).rev() {
            let (less, more) = ways.split_at_mut(taken + 1);
            let sums = less[taken].iter().zip(&mut more[0][rank..]);
            sums.for_each(|(from, to)| *to += from);
        }
    }
    ways.swap_remove(count)
}

/// Two-sided tail of a normal distribution beyond `distance`, with the variance of the sum of
/// `count` of the ranks.
fn normal_p(ranks: &[usize], count: usize, distance: f64) -> f64 {
    let n = ranks.len() as f64;
    let mean = ranks.iter().sum::<usize>() as f64 / n;
    let squares: f64 = ranks.iter().map(|&rank| (rank as f64 - mean).powi(2)).sum();
    let variance = squares * count as f64 * (n - count as f64) / (n * (n - 1.0));
    if variance == 0.0 {
        return 1.0;
    }
    both_tails(distance / variance.sqrt())
}

/// Two-sided tail of the standard normal distribution beyond `z`.
fn both_tails(z: f64) -> f64 {
    // Abramowitz and Stegun 26.2.17, absolute error below 7.5e-8.
    let t = 1.0 / (1.0 + 0.2316419 * z);
    let terms = [0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429];
    let series = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    2.0 * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: two of the 252 partitions of ten ranks separate them completely.
    #[test]
    fn few_samples_are_counted_out() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        assert_eq!(p_value(&low, &high), 2.0 / 252.0);
        assert_eq!(p_value(&high, &low), 2.0 / 252.0);
        assert_eq!(p_value(&low[..3], &high[..3]), 2.0 / 20.0);
        assert_eq!(p_value(&[7.0; 4], &[7.0; 4]), 1.0);
        assert_eq!(p_value(&[], &[1.0]), 1.0);
        assert_eq!(least_p_value(5, 5), 2.0 / 252.0);
    }

    /// By hand: of the 16 sign assignments of four ranks, two agree in all signs, two in all but
    /// the first.
    #[test]
    fn changes_of_pairs_are_counted_out() {
        assert_eq!(paired_p_value(&[-1.0, -2.0, -3.0, -4.0]), 2.0 / 16.0);
        assert_eq!(paired_p_value(&[1.0, -2.0, -3.0, -4.0]), 4.0 / 16.0);
        assert_eq!(paired_p_value(&[1.0, -1.0]), 1.0);
        assert_eq!(paired_p_value(&[0.0, -2.0, 0.0, -3.0]), 2.0 / 4.0);
        assert_eq!(paired_p_value(&[0.0; 9]), 1.0);
        assert_eq!(paired_p_value(&[]), 1.0);
        assert_eq!(least_paired_p_value(9), 2.0 / 512.0);
        assert!(
            least_paired_p_value(5) > SIGNIFICANCE_LEVEL
                && least_paired_p_value(6) < SIGNIFICANCE_LEVEL
        );
    }

    #[test]
    fn many_pairs_go_over_into_the_normal_distribution() {
        let change = |i: i32| f64::from(i * 7 % 121 - 48);
        let p = |pairs: i32| paired_p_value(&(0..pairs).map(change).collect::<Vec<_>>());
        let (exact, normal) = (p(120), p(121));
        assert!((exact - normal).abs() < 0.005 && exact < SIGNIFICANCE_LEVEL, "{exact}, {normal}");
    }

    /// Against enumeration of all partitions.
    #[test]
    fn sums_of_ranks_are_those_of_all_ways() {
        let (a, b) = ([3.0, 9.0, 9.0, 14.0], [1.0, 9.0, 20.0]);
        let ranks = doubled_ranks(&[&a[..], &b[..]].concat());
        let total: usize = ranks.iter().sum();
        let distance = |sum: usize| (sum * 7).abs_diff(total * 4);
        let own: usize = ranks[..4].iter().sum();
        let (mut far, mut all) = (0, 0);
        for chosen in 0u32..1 << 7 {
            if chosen.count_ones() == 4 {
                let sum = (0..7).filter(|bit| chosen >> bit & 1 == 1).map(|bit| ranks[bit]).sum();
                all += 1;
                far += u32::from(distance(sum) >= distance(own));
            }
        }
        assert_eq!(p_value(&a, &b), f64::from(far) / f64::from(all));
    }

    #[test]
    fn many_samples_go_over_into_the_normal_distribution() {
        let a: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 61)).collect();
        let b: Vec<f64> = a.iter().map(|one| one + 9.0).collect();
        let exact = p_value(&a, &b);
        let ranks = doubled_ranks(&[&a[..], &b[..]].concat());
        let (own, total) = (ranks[..60].iter().sum::<usize>(), ranks.iter().sum::<usize>());
        let normal = normal_p(&ranks, 60, (own as f64 - total as f64 / 2.0).abs());
        assert!((exact - normal).abs() < 0.002, "{exact}, {normal}");
        assert!(exact < SIGNIFICANCE_LEVEL);
    }
}
