// State of the page itself: dialogs, notices, panes, theme.
import { Problem } from "../api/client";

export interface Toast {
  id: number;
  text: string;
  tone: "plain" | "bad";
  action?: { label: string; run: () => void };
}

export type Dialog =
  | { kind: "palette"; query?: string }
  | { kind: "help" }
  | { kind: "token" }
  | { kind: "new" }
  | { kind: "delete"; turn: string }
  | { kind: "merge"; from?: string }
  | { kind: "commit" }
  | { kind: "inject"; turn: string }
  | { kind: "ask"; title: string; label: string; value: string; button: string; hint?: string; done: (value: string) => void };

/** How long a notice is shown. */
const STAYS_MS = 8000;

class Ui {
  dialog = $state.raw<Dialog | null>(null);
  toasts = $state.raw<Toast[]>([]);
  /** The pane shown on a narrow screen. */
  pane = $state<"list" | "outline" | "transcript">("list");
  theme = $state<"system" | "light" | "dark">((localStorage.getItem("tine-theme") as "light" | "dark" | null) ?? "system");
  /** Announced to screen readers. */
  spoken = $state("");
  graph = $state(localStorage.getItem("tine-graph") !== "off");
  private next = 1;

  open(dialog: Dialog): void {
    this.dialog = dialog;
  }

  close(): void {
    this.dialog = null;
  }

  say(text: string, action?: Toast["action"], tone: Toast["tone"] = "plain"): void {
    const toast: Toast = { id: this.next++, text, tone, ...(action ? { action } : {}) };
    this.toasts = [...this.toasts.slice(-2), toast];
    this.spoken = text;
    setTimeout(() => this.dismiss(toast.id), STAYS_MS);
  }

  dismiss(id: number): void {
    this.toasts = this.toasts.filter((toast) => toast.id !== id);
  }

  /** Runs an action and shows a notice if it fails. */
  async trying<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return undefined;
      if (error instanceof Problem && error.status === 401) return undefined;
      this.say(error instanceof Error ? error.message : String(error), undefined, "bad");
      return undefined;
    }
  }

  setTheme(theme: "system" | "light" | "dark"): void {
    this.theme = theme;
    if (theme === "system") localStorage.removeItem("tine-theme");
    else localStorage.setItem("tine-theme", theme);
  }

  toggleGraph(): void {
    this.graph = !this.graph;
    localStorage.setItem("tine-graph", this.graph ? "on" : "off");
  }
}

export const ui = new Ui();
