//! Draws a tree of turns as rows of a terminal, readable at 3,000 turns and correct at 100,000.
//!
//! Layout:
//!
//! ```text
//! root         ◆ tokyo-trip
//! a9d2e63be84c ● user What's the best time to visit Tokyo?
//! e38bb1328f49 ● asst Late March 🌸
//! 51c0f6b8ab13 ├─● user And in autumn?                 a side line: one step to the right
//! 0b1e9a2a77c4 │ ● asst [autumn] Early November
//! 9f86d081884c ├─○ user Is it warm then?               another one
//! 2c26b46b68ff ● user What about hotels?               the line itself goes on, flush
//! fcde2b2edba5 ● asst [main] Shinjuku is a good base
//! ```
//!
//! - Only a fork indents. At each fork one child *continues* the line in the same column; all
//!   others are side lines, one step to the right, and come first. So the followed line stays in
//!   one column from the root to its end, however often it was forked, and the gutter `│` next to
//!   a side line always belongs to a line that continues below.
//! - The continuing child is the one on the requested line (`main`); elsewhere one that leads to a
//!   branch is preferred, then the one with most descendants, then the newest. Every side line then
//!   holds at most half of the turns of the line it leaves (except for one step each onto and off
//!   the lines of branches), so the indentation grows with the logarithm of the tree: 17 steps for
//!   100,000 turns at worst.
//!
//! [`lay_out`] computes order and indentation in linear time and without recursion;
//! [`draw`](draw::draw) writes the rows. Neither depends on the source of the rows.

mod draw;
mod layout;

pub use draw::{Drawing, RootRow, draw};
pub use layout::{TreeRow, lay_out};
