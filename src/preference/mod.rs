//! The preference matrix, its winners, and regret.
