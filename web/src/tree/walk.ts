// Which child to follow at a fork: the last visited one, otherwise the most recently changed one.
import { NONE, type Tree } from "./tree";

export class Walk {
  /** For each turn, the child with the most recent change in its subtree. */
  private readonly latestChild: Int32Array;
  private latestFirst = NONE;

  constructor(readonly tree: Tree) {
    const { size, parent } = tree;
    const latest = Float64Array.from(tree.time);
    this.latestChild = new Int32Array(size).fill(NONE);
    // Children come after their parents, so each is complete when it is reached; of equal
    // times the last counts.
    let end = -Infinity;
    for (let at = size - 1; at >= 0; at--) {
      const above = parent[at]!;
      const time = latest[at]!;
      if (above === NONE) {
        if (time > end) [end, this.latestFirst] = [time, at];
        continue;
      }
      const best = this.latestChild[above]!;
      if (best === NONE || time > latest[best]!) this.latestChild[above] = at;
      if (time > latest[above]!) latest[above] = time;
    }
  }

  /** The child to follow, or NONE at a leaf. */
  next(at: number): number {
    return at === NONE ? this.latestFirst : this.latestChild[at]!;
  }

  /** The leaf to show when a turn is selected; `visited` names it for versions seen before. */
  leaf(from: number, visited: ReadonlyMap<string, string>): number {
    const { tree } = this;
    const remembered = tree.find(visited.get(from === NONE ? "" : tree.ids[from]!));
    if (remembered !== NONE && (from === NONE || tree.isBelow(remembered, from))) return remembered;
    let at = from;
    for (let child = this.next(at); child !== NONE; child = this.next(at)) {
      at = child;
      const below = tree.hasSiblings(at) ? tree.find(visited.get(tree.ids[at]!)) : NONE;
      if (below !== NONE && tree.isBelow(below, at)) return below;
    }
    return at;
  }
}
