// Editing a turn: a new version of it, or the position of a split.
import * as acts from "./acts";
import { NONE } from "../tree/tree";
import { answering } from "./answering.svelte";
import { open } from "./open.svelte";
import type { Block, Turn } from "./contents.svelte";
import { ui } from "./ui.svelte";

export function textOf(content: Block[] | null): string {
  return (content ?? []).filter((block) => block.type === "text").map((block) => String(block.text)).join("");
}

class Writing {
  turn = $state("");
  kind = $state<"edit" | "split">("edit");
  text = $state("");
  caret = $state(0);
  private whole: Turn | undefined;

  private async start(kind: "edit" | "split", id: string): Promise<void> {
    const turn = await ui.trying(() => open.contents.one(id));
    if (!turn) return;
    if (!turn.content) return ui.say("The content of this turn was erased.", undefined, "bad");
    const texts = turn.content.filter((block) => block.type === "text").length;
    if (kind === "split" && texts !== turn.content.length) return ui.say("Only turns with nothing but text can be split.", undefined, "bad");
    if (kind === "edit" && texts !== 1) return ui.say("Only turns with exactly one text block can be edited here.", undefined, "bad");
    const selected = selection();
    this.whole = turn;
    this.kind = kind;
    this.text = textOf(turn.content);
    this.caret = kind === "split" && selected ? Math.max(0, this.text.indexOf(selected)) : 0;
    this.turn = id;
    open.select(id);
    ui.pane = "transcript";
  }

  edit(id: string): void {
    void this.start("edit", id);
  }

  split(id: string): void {
    void this.start("split", id);
  }

  /** Another version of a reply: by the model if there is one, otherwise written by the user. */
  regenerate(id: string): void {
    const at = open.tree.find(id);
    if (answering.model && open.tree.role[at] === "assistant") void answering.regenerate(id);
    else if (answering.model && open.tree.firstChild[at] === NONE) void answering.reply();
    else void this.start("edit", id);
  }

  async keep(): Promise<void> {
    const { turn, text, whole } = this;
    if (!whole) return;
    if (this.kind === "split") {
      const offset = Array.from(text.slice(0, this.caret)).length;
      this.cancel();
      return acts.split(turn, offset);
    }
    if (!text.trim()) return ui.say("A turn cannot be empty. Write something first.", undefined, "bad");
    this.cancel();
    const content = whole.content!.map((block) => (block.type === "text" ? { ...block, text } : block));
    const made = await acts.edit(turn, content);
    if (made && whole.role === "user" && answering.model) await answering.reply();
  }

  cancel(): void {
    this.turn = "";
    this.whole = undefined;
  }
}

/** Text at and after the selection in the transcript, to find the same position in the editor. */
function selection(): string {
  const at = getSelection();
  const text = at?.focusNode?.textContent ?? "";
  return at && at.rangeCount ? text.slice(at.focusOffset, at.focusOffset + 24) : "";
}

export const writing = new Writing();
