//! The simplex method for programs with few rows.

/// A coefficient or a reduced cost below this is rounding.
const ROUNDING: f64 = 1e-10;
/// Smallest coefficient that a step divides by. Those that are not 0 are well above it.
const PIVOT_MIN: f64 = 1e-8;
/// Columns that one search for an entering column looks at together.
const BLOCK: usize = 128;
/// Steps after which a program counts as unsolved. Of 146,000 random ones of ten positions none
/// did. Programs whose steps were counted took at most 332.
const STEPS_MAX: usize = 5_000;

/// Maximize `gain · x`, where `rows · x = right_hand` and no `x` is negative.
pub(super) struct Program {
    /// Coefficients, by row and column.
    pub rows: Vec<Vec<f64>>,
    /// By row; not negative.
    pub right_hand: Vec<f64>,
    /// By column.
    pub gain: Vec<f64>,
}

impl Program {
    /// The columns that may be positive in an optimum, with their values; at most one for each row.
    /// `None` if no `x` fulfils the rows.
    pub fn solve(&self) -> Option<Vec<(usize, f64)>> {
        let mut basis = Basis::artificial(self);
        for _ in 0..STEPS_MAX {
            match basis.entering() {
                Some(column) => basis.exchange(column)?,
                None => return basis.values(),
            }
        }
        None
    }

    fn column(&self, column: usize) -> impl Iterator<Item = f64> {
        self.rows.iter().map(move |row| row[column])
    }
}

/// A basis, and the inverse of its matrix.
struct Basis<'a> {
    program: &'a Program,
    /// The basic column of each row; `None` is the row's artificial variable, which must become 0.
    columns: Vec<Option<usize>>,
    /// By row: the value of its basic variable, then its row of the inverse.
    table: Vec<Vec<f64>>,
    /// The block of columns that the search for an entering one begins with.
    block: usize,
    /// The artificial variables that each row's dual makes less, and the gain that it makes less.
    duals: [Vec<f64>; 2],
    /// By row: the decrease of its basic variable for each unit of the entering column.
    direction: Vec<f64>,
}

impl<'a> Basis<'a> {
    fn artificial(program: &'a Program) -> Self {
        let size = program.rows.len();
        let row = |(at, &value): (usize, &f64)| {
            let mut row = vec![0.0; size + 1];
            (row[0], row[at + 1]) = (value, 1.0);
            row
        };
        Self {
            program,
            columns: vec![None; size],
            table: program.right_hand.iter().enumerate().map(row).collect(),
            block: 0,
            duals: [vec![0.0; size], vec![0.0; size]],
            direction: vec![0.0; size],
        }
    }

    /// A column that improves: the sum of the artificial variables first, then the gain. It is the
    /// best one of the first block that has any. The search begins where the last one ended.
    fn entering(&mut self) -> Option<usize> {
        let is_artificial = self.columns.contains(&None);
        self.set_duals();
        let columns = self.program.gain.len();
        let blocks = columns.div_ceil(BLOCK);
        for is_gain in [false, true] {
            if !is_gain && !is_artificial {
                continue;
            }
            for number in (self.block..blocks).chain(0..self.block) {
                let first = number * BLOCK;
                let mut costs = [0.0; BLOCK];
                let costs = &mut costs[..BLOCK.min(columns - first)];
                if is_artificial {
                    self.add_rows(costs, first, &self.duals[0]);
                }
                if is_gain {
                    // Artificial variables stay at 0. A row that the others imply keeps its own.
                    for (cost, gain) in costs.iter_mut().zip(&self.program.gain[first..]) {
                        *cost = if *cost < -PIVOT_MIN { f64::NEG_INFINITY } else { *gain };
                    }
                    self.add_rows(costs, first, &self.duals[1]);
                }
                let (column, most) = largest(costs);
                if most > ROUNDING {
                    self.block = number;
                    return Some(first + column);
                }
            }
        }
        None
    }

    fn set_duals(&mut self) {
        let [infeasible, gain] = &mut self.duals;
        infeasible.fill(0.0);
        gain.fill(0.0);
        for (column, row) in self.columns.iter().zip(&self.table) {
            let (duals, price) = match column {
                None => (&mut *infeasible, 1.0),
                Some(column) => (&mut *gain, -self.program.gain[*column]),
            };
            duals.iter_mut().zip(&row[1..]).for_each(|(dual, value)| *dual += price * value);
        }
    }

    /// Adds the rows of the program from column `first` on, weighted by `duals`.
    fn add_rows(&self, costs: &mut [f64], first: usize, duals: &[f64]) {
        for (row, dual) in self.program.rows.iter().zip(duals).filter(|(_, dual)| **dual != 0.0) {
            costs.iter_mut().zip(&row[first..]).for_each(|(cost, value)| *cost += dual * value);
        }
    }

    /// Takes `column` into the basis; `None` if that has no bound.
    ///
    /// Nearly every step here leaves all values as they are, because all right-hand sides but one
    /// are 0. The lexicographic rule selects the variable that leaves, so that no basis repeats.
    fn exchange(&mut self, column: usize) -> Option<()> {
        for (to, row) in self.direction.iter_mut().zip(&self.table) {
            *to = row[1..].iter().zip(self.program.column(column)).map(|(a, b)| a * b).sum();
        }
        let leaving = (0..self.direction.len())
            .filter(|&row| self.direction[row] > PIVOT_MIN)
            .reduce(|one, other| if self.is_less(other, one) { other } else { one })?;
        let mut pivot = std::mem::take(&mut self.table[leaving]);
        pivot.iter_mut().for_each(|value| *value /= self.direction[leaving]);
        for (row, factor) in self.table.iter_mut().zip(&self.direction) {
            row.iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= factor * pivot);
        }
        self.table[leaving] = pivot;
        self.columns[leaving] = Some(column);
        Some(())
    }

    /// Whether one row of the table, divided by its direction, is less than the other one.
    fn is_less(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|row| {
            let of = self.direction[row];
            self.table[row].iter().map(move |value| value / of)
        });
        let mut differences = one.zip(other).map(|(one, other)| one - other);
        differences.find(|value| value.abs() > ROUNDING).is_some_and(|value| value < 0.0)
    }

    /// The values of the basic columns, corrected for the rounding of the steps; `None` if an
    /// artificial variable is not 0.
    fn values(&self) -> Option<Vec<(usize, f64)>> {
        let mut values: Vec<f64> = self.table.iter().map(|row| row[0]).collect();
        for _ in 0..2 {
            let mut rest = self.program.right_hand.clone();
            for (at, value) in values.iter().enumerate() {
                match self.columns[at] {
                    None => rest[at] -= value,
                    Some(column) => rest
                        .iter_mut()
                        .zip(self.program.column(column))
                        .for_each(|(rest, coefficient)| *rest -= coefficient * value),
                }
            }
            for (value, row) in values.iter_mut().zip(&self.table) {
                *value += row[1..].iter().zip(&rest).map(|(a, b)| a * b).sum::<f64>();
            }
        }
        let basic = || self.columns.iter().zip(&values);
        if basic().any(|(column, value)| column.is_none() && *value > 1e-9) {
            return None;
        }
        Some(basic().filter_map(|(column, &value)| Some(((*column)?, value.max(0.0)))).collect())
    }
}

/// The first of the largest values, and its index.
fn largest(values: &[f64]) -> (usize, f64) {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (values.iter().position(|&value| value == most).unwrap_or(0), most)
}
