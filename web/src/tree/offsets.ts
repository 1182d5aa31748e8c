// Offsets of rows with different heights, in a Fenwick tree: updates, sums and look-ups by position
// take logarithmic time.

export class Offsets {
  private readonly sizes: Float64Array;
  private readonly sums: Float64Array;
  private readonly step: number;

  constructor(sizes: ArrayLike<number>) {
    const { length } = sizes;
    this.sizes = Float64Array.from(sizes);
    this.sums = new Float64Array(length + 1);
    for (let i = 1; i <= length; i++) {
      this.sums[i]! += this.sizes[i - 1]!;
      const above = i + (i & -i);
      if (above <= length) this.sums[above]! += this.sums[i]!;
    }
    this.step = length ? 2 ** Math.floor(Math.log2(length)) : 0;
  }

  get length(): number {
    return this.sizes.length;
  }

  size(at: number): number {
    return this.sizes[at] ?? 0;
  }

  set(at: number, size: number): void {
    const change = size - this.sizes[at]!;
    this.sizes[at] = size;
    for (let i = at + 1; i < this.sums.length; i += i & -i) this.sums[i]! += change;
  }

  /** The top of a row; after the last row, the total height. */
  top(at: number): number {
    let sum = 0;
    for (let i = at; i > 0; i -= i & -i) sum += this.sums[i]!;
    return sum;
  }

  get total(): number {
    return this.top(this.length);
  }

  /** The row at this height, or the last one. */
  at(y: number): number {
    let [row, rest] = [0, y];
    for (let step = this.step; step > 0; step >>= 1) {
      if (row + step <= this.length && this.sums[row + step]! <= rest) {
        row += step;
        rest -= this.sums[row]!;
      }
    }
    return Math.max(0, Math.min(row, this.length - 1));
  }
}
