//! Random numbers from a seed (SplitMix64), so that every run can be repeated.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct SeededRng {
    state: u64,
}

impl SeededRng {
    /// Returns the stream of a seed.
    pub fn new(seed: u64) -> Self {
        SeededRng { state: seed }
    }

    /// Returns the stream of a seed and a label; streams with other labels are independent.
    pub fn at(seed: u64, places: &[u64]) -> Self {
        let mut state = seed;
        for place in places {
            state = mix(state ^ mix(place.wrapping_add(0x632b_e59b_d9b4_e019)));
        }
        SeededRng { state }
    }

    /// Returns any number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Returns a number below the bound, or 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        if bound == 0 {
            return 0;
        }
        usize::try_from(self.number() % bound).unwrap_or(0)
    }

    /// Returns true with a probability of one in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the items.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

fn mix(mut mixed: u64) -> u64 {
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
