// The compact graph: the path on screen with its forks, and the first turns of other versions.
// Chains are one edge with a count, so the graph stays small.
import { NONE, type Tree } from "./tree";

export interface Knot {
  turn: number;
  x: number;
  y: number;
  kind: "path" | "side" | "end";
  /** Turns on the edge to this node, and below it. */
  chain: number;
  below: number;
  label: string;
}

export interface Edge {
  from: Knot;
  to: Knot;
  side: boolean;
}

export interface Drawing {
  knots: Knot[];
  edges: Edge[];
  width: number;
  height: number;
  /** Forks omitted above and below. */
  before: number;
  after: number;
}

const LANE = 22;
/** Space for counts on the left. */
const LEFT = 30;
const LEVEL = 28;
/** Forks drawn around the selected turn. */
const FORKS = 24;
/** Versions drawn at one fork. */
const SIDES = 6;

function label(tree: Tree, at: number): string {
  return tree.branches.get(at)?.[0] ?? tree.bookmarks.get(at)?.[0] ?? "";
}

export function draw(tree: Tree, path: readonly number[], focus: number): Drawing {
  const marks = path.map((turn, step) => ({ turn, step })).filter(({ turn, step }) => step === 0 || step === path.length - 1 || tree.isFork(turn) || tree.branches.has(turn) || tree.bookmarks.has(turn));
  if (path.length && tree.hasSiblings(path[0]!)) marks.unshift({ turn: NONE, step: -1 });
  const chosen = path.indexOf(focus);
  const near = Math.max(0, marks.findIndex(({ step }) => step >= chosen));
  const begin = Math.max(0, Math.min(near - FORKS / 2, marks.length - FORKS));
  const seen = marks.slice(begin, begin + FORKS);

  const out: Drawing = { knots: [], edges: [], width: 0, height: 0, before: begin, after: Math.max(0, marks.length - begin - FORKS) };
  let above: { knot: Knot; step: number } | undefined;
  let y = LEVEL / 2;
  let lanes = 1;
  for (const { turn, step } of seen) {
    const knot: Knot = { turn, x: LEFT, y, kind: step === path.length - 1 ? "end" : "path", chain: above ? step - above.step - 1 : 0, below: 0, label: turn === NONE ? "" : label(tree, turn) };
    out.knots.push(knot);
    if (above) out.edges.push({ from: above.knot, to: knot, side: false });
    y += LEVEL;
    const next = path[step + 1];
    let lane = 1;
    for (const child of tree.children(turn)) {
      if (child === next || lane > SIDES) continue;
      const tip = endOfChain(tree, child);
      const side: Knot = { turn: child, x: LEFT + lane * LANE, y: y - LEVEL / 2, kind: "side", chain: 0, below: tree.descendants[child]!, label: label(tree, tip) };
      out.knots.push(side);
      out.edges.push({ from: knot, to: side, side: true });
      lane++;
    }
    lanes = Math.max(lanes, lane);
    above = { knot, step };
  }
  out.width = LEFT + lanes * LANE;
  out.height = y + LEVEL / 2;
  return out;
}

/** The last turn before the next fork or end. */
function endOfChain(tree: Tree, at: number): number {
  while (tree.firstChild[at] !== NONE && !tree.isFork(at)) at = tree.firstChild[at]!;
  return at;
}
