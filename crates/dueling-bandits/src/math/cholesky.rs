//! The covariance of correlated normal numbers, from the inverse of their covariance.

/// A covariance `C`, kept as a lower triangular `M` with `C = Mᵀ M`.
#[derive(Debug, Clone, PartialEq)]
pub struct Covariance {
    size: usize,
    /// Row by row, without the zeros above the diagonal.
    lower: Vec<f64>,
}

impl Covariance {
    /// The inverse of `precision`, which is symmetric, positive definite and row-major with `size`
    /// rows. `M` is the inverse of its Cholesky factor. O(size³).
    pub fn inverse_of(mut precision: Vec<f64>, size: usize) -> Self {
        // the factor L, in the lower triangle
        for i in 0..size {
            for j in 0..=i {
                let (above, below) = precision.split_at(i * size);
                let (row_i, row_j) = (
                    &below[..j],
                    if j == i { &below[..j] } else { &above[j * size..j * size + j] },
                );
                let rest = precision[i * size + j] - dot(row_i, row_j);
                precision[i * size + j] = if i == j {
                    rest.max(f64::MIN_POSITIVE).sqrt()
                } else {
                    rest / precision[j * size + j]
                };
            }
        }
        // row i of its inverse, from the rows before it
        let mut lower: Vec<f64> = Vec::with_capacity(size * (size + 1) / 2);
        for i in 0..size {
            let diagonal = precision[i * size + i];
            let mut row = vec![0.0; i + 1];
            row[i] = 1.0 / diagonal;
            for k in 0..i {
                let factor = precision[i * size + k] / diagonal;
                let earlier = &lower[k * (k + 1) / 2..][..=k];
                row.iter_mut().zip(earlier).for_each(|(sum, value)| *sum -= factor * value);
            }
            lower.extend(row);
        }
        Self { size, lower }
    }

    /// The variance of the difference of two of the numbers.
    pub fn of_difference(&self, i: usize, j: usize) -> f64 {
        let (low, high) = (i.min(j), i.max(j));
        (low..self.size)
            .map(|row| {
                let values = &self.lower[row * (row + 1) / 2..][..=row];
                values[low] - values.get(high).copied().unwrap_or(0.0)
            })
            .map(|difference| difference * difference)
            .sum()
    }

    /// Numbers with this covariance, from as many independent standard normal ones.
    pub fn correlate(&self, independent: &[f64]) -> Vec<f64> {
        let mut correlated = vec![0.0; self.size];
        for (row, normal) in independent.iter().enumerate() {
            let values = &self.lower[row * (row + 1) / 2..][..=row];
            correlated.iter_mut().zip(values).for_each(|(sum, value)| *sum += normal * value);
        }
        correlated
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}
