// All commands: shortcuts, palette and help read this table.
import { NONE } from "../tree/tree";
import * as acts from "./acts";
import { freeName } from "./names";
import { list } from "./list.svelte";
import { open } from "./open.svelte";
import { route } from "./route.svelte";
import { ui } from "./ui.svelte";
import { writing } from "./writing.svelte";

export interface Command {
  title: string;
  group: "Move" | "Write" | "Change" | "Versions" | "Look";
  keys: string[];
  run: () => void;
  when?: () => boolean;
}

const chosen = (): boolean => open.state === "ready" && open.focused !== NONE;
const reading = (): boolean => open.state === "ready";

function ask(title: string, label: string, value: string, button: string, done: (value: string) => void, hint?: string): void {
  ui.open({ kind: "ask", title, label, value, button, done, ...(hint ? { hint } : {}) });
}

function row(step: number): void {
  const { turns, rowOf } = open.rows;
  const at = rowOf.get(open.focused);
  const next = turns[at === undefined ? 0 : at + step];
  if (next !== undefined) open.select(open.tree.ids[next]!);
}

function sibling(step: number): void {
  const all = open.tree.siblings(open.focused);
  const next = all[all.indexOf(open.focused) + step];
  if (next !== undefined) open.switchTo(open.tree.ids[next]!);
}

function along(step: number): void {
  const next = open.path[open.path.indexOf(open.focused) + step];
  if (next !== undefined) open.select(open.tree.ids[next]!);
}

function toFork(step: number): void {
  for (let at = open.path.indexOf(open.focused) + step; at >= 0 && at < open.path.length; at += step) {
    const turn = open.path[at]!;
    if (open.tree.hasSiblings(turn)) return open.select(open.tree.ids[turn]!);
  }
}

export function focusOn(selector: string): void {
  const field = document.querySelector<HTMLElement>(selector);
  field?.focus();
  // A hidden pane becomes visible first.
  if (document.activeElement !== field) requestAnimationFrame(() => field?.focus());
}

export function compareWithMarked(): void {
  if (!open.marked) {
    open.marked = open.focus;
    ui.say("Selected for comparison. Choose another turn and press d again.");
    return;
  }
  if (open.marked === open.focus) {
    open.marked = "";
    ui.say("Selection cleared");
    return;
  }
  route.go({ conversation: open.id, view: "compare", from: open.marked, to: open.focus });
}

export const commands: Command[] = [
  { title: "Next row", group: "Move", keys: ["ArrowDown", "j"], when: reading, run: () => row(1) },
  { title: "Previous row", group: "Move", keys: ["ArrowUp", "k"], when: reading, run: () => row(-1) },
  { title: "Parent", group: "Move", keys: ["ArrowLeft"], when: chosen, run: () => along(-1) },
  { title: "Child on the last visited path", group: "Move", keys: ["ArrowRight"], when: chosen, run: () => along(1) },
  { title: "Previous version", group: "Move", keys: ["Alt+ArrowUp"], when: chosen, run: () => sibling(-1) },
  { title: "Next version", group: "Move", keys: ["Alt+ArrowDown"], when: chosen, run: () => sibling(1) },
  { title: "Previous fork", group: "Move", keys: ["Ctrl+ArrowLeft"], when: chosen, run: () => toFork(-1) },
  { title: "Next fork", group: "Move", keys: ["Ctrl+ArrowRight"], when: chosen, run: () => toFork(1) },
  { title: "Show in transcript", group: "Move", keys: ["Enter"], when: chosen, run: () => { ui.pane = "transcript"; open.reveal++; } },
  { title: "Collapse or expand", group: "Move", keys: ["Space"], when: chosen, run: () => open.fold(open.focus, !open.rows.folded.has(open.focused)) },
  { title: "Focus on this subtree", group: "Move", keys: ["h"], when: chosen, run: () => (open.hoisted = open.hoisted ? "" : open.focus) },
  { title: "Write a message", group: "Write", keys: ["i", "c"], when: reading, run: () => { ui.pane = "transcript"; focusOn("#composer"); } },
  { title: "Edit", group: "Write", keys: ["e"], when: chosen, run: () => writing.edit(open.focus) },
  { title: "Regenerate", group: "Write", keys: ["r"], when: chosen, run: () => writing.regenerate(open.focus) },
  { title: "Fork here", group: "Write", keys: ["f"], when: chosen, run: () => ask("Fork here", "Name of the new branch", freeName(), "Fork", (name) => void acts.fork(open.focus, name)) },
  { title: "Split at the cursor", group: "Write", keys: ["s"], when: chosen, run: () => writing.split(open.focus) },
  { title: "Delete", group: "Change", keys: ["Delete", "x"], when: chosen, run: () => ui.open({ kind: "delete", turn: open.focus }) },
  { title: "Revert the branch to here", group: "Change", keys: ["Shift+R"], when: chosen, run: () => void acts.revert(open.focus) },
  { title: "Restore the reverted branch", group: "Change", keys: ["Shift+F"], when: reading, run: () => void acts.restore() },
  { title: "Bookmark", group: "Change", keys: ["b"], when: chosen, run: () => ask("Bookmark this turn", "Name", "", "Bookmark", (name) => void acts.bookmark(open.focus, name)) },
  { title: "Tag", group: "Change", keys: ["t"], when: chosen, run: () => ask("Tags", "Tags, separated by commas", (open.tree.tags.get(open.focused) ?? []).join(", "), "Save", (text) => void acts.metadata(open.focus, { tags: text.split(",").map((tag) => tag.trim()).filter(Boolean) })) },
  { title: "Turn title", group: "Change", keys: ["Shift+T"], when: chosen, run: () => ask("Turn title", "Title", open.tree.title.get(open.focused) ?? "", "Save", (title) => void acts.metadata(open.focus, { title, force: true })) },
  { title: "Rename conversation", group: "Change", keys: [], when: reading, run: () => ask("Rename conversation", "Title", open.info?.title ?? "", "Save", (title) => void acts.retitle(title)) },
  { title: "Archive conversation", group: "Change", keys: [], when: reading, run: () => void acts.archive() },
  { title: "Undo your last change", group: "Change", keys: ["u", "Ctrl+z"], when: reading, run: () => void acts.undoLast() },
  { title: "Commit", group: "Versions", keys: ["Shift+C"], when: reading, run: () => ui.open({ kind: "commit" }) },
  { title: "Merge another branch", group: "Versions", keys: ["m"], when: reading, run: () => ui.open({ kind: "merge" }) },
  { title: "Copy this turn to another branch", group: "Versions", keys: ["y"], when: chosen, run: () => ui.open({ kind: "inject", turn: open.focus }) },
  { title: "Select for comparison, or compare with the selected turn", group: "Versions", keys: ["d"], when: chosen, run: compareWithMarked },
  { title: "Commits and drift", group: "Look", keys: ["g c"], when: reading, run: () => route.go({ conversation: open.id, view: "commits" }) },
  { title: "Branches", group: "Look", keys: ["g b"], when: reading, run: () => route.go({ conversation: open.id, view: "branches" }) },
  { title: "Facts", group: "Look", keys: ["g f"], run: () => route.go({ view: "facts" }) },
  { title: "Transcript", group: "Look", keys: ["g t"], when: reading, run: () => route.go({ conversation: open.id, turn: open.focus }) },
  { title: "Search all conversations", group: "Look", keys: ["/"], run: () => { ui.pane = "list"; focusOn("#search"); } },
  { title: "Filter the outline", group: "Look", keys: ["Shift+/", "Ctrl+f"], when: reading, run: () => { ui.pane = "outline"; focusOn("#filter"); } },
  { title: "Command palette", group: "Look", keys: ["Ctrl+p", "Ctrl+k"], run: () => ui.open({ kind: "palette" }) },
  { title: "New conversation", group: "Write", keys: ["n"], run: () => ui.open({ kind: "new" }) },
  { title: "Show or hide the graph", group: "Look", keys: ["g g"], run: () => ui.toggleGraph() },
  { title: "Switch between light and dark theme", group: "Look", keys: ["g d"], run: () => ui.setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark") },
  { title: "Keyboard shortcuts", group: "Look", keys: ["?"], run: () => ui.open({ kind: "help" }) },
];

/** The name of a key in the table. */
function spelled(event: KeyboardEvent): string {
  const key = event.key === " " ? "Space" : event.key;
  if (key === "?") return "?";
  const letter = key.length === 1;
  const parts = [event.ctrlKey || event.metaKey ? "Ctrl" : "", event.altKey ? "Alt" : "", event.shiftKey && (!letter || /[a-z]/i.test(key)) ? "Shift" : ""];
  const name = letter && event.shiftKey ? key.toUpperCase() : key;
  return [...parts.filter(Boolean), name].join("+");
}

/** The first key of a two-key shortcut. */
let begun = "";

export function onKey(event: KeyboardEvent): void {
  const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable]") !== null;
  const key = spelled(event);
  if (key === "Escape") return back(typing, event);
  const always = key === "Ctrl+p" || key === "Ctrl+k";
  if (ui.dialog || (typing && !always)) return;
  const onButton = event.target instanceof HTMLElement && event.target.closest("button, a, summary") !== null;
  if (onButton && (key === "Enter" || key === "Space")) return;
  const stroke = begun ? `${begun} ${key}` : key;
  begun = "";
  const command = commands.find(({ keys }) => keys.includes(stroke));
  if (!command) {
    if (key === "g") begun = "g";
    return;
  }
  event.preventDefault();
  if (!command.when || command.when()) command.run();
}

/** Leaves a field and clears a search. */
function leave(event: KeyboardEvent): void {
  const field = event.target as HTMLElement;
  event.preventDefault();
  if (field.id === "filter") open.filter = "";
  if (field.id === "search") list.search("");
  field.blur();
}

/** Escape: leaves the field, then the current view, then selects the parent. */
function back(typing: boolean, event: KeyboardEvent): void {
  if (ui.dialog) return ui.close();
  if (writing.turn) return writing.cancel();
  if (typing) return leave(event);
  if (route.place.view !== "tree") return route.go(open.id ? { conversation: open.id, turn: open.focus } : {});
  if (open.filter) return void (open.filter = "");
  if (open.hoisted) return void (open.hoisted = "");
  if (chosen()) along(-1);
}
