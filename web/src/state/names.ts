import { open } from "./open.svelte";

/** An unused branch name. */
export function freeName(wish = "branch"): string {
  const taken = new Set(open.branches.map((branch) => branch.name));
  if (!taken.has(wish)) return wish;
  let number = 2;
  while (taken.has(`${wish}-${number}`)) number++;
  return `${wish}-${number}`;
}
