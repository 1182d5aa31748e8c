// Where a reader was last in each conversation.

const KEY = "tine-visits:";

export const visits = {
  async read(conversation: string): Promise<ReadonlyMap<string, string>> {
    try {
      return new Map(Object.entries(JSON.parse(localStorage.getItem(KEY + conversation) ?? "{}") as Record<string, string>));
    } catch {
      return new Map();
    }
  },

  write(conversation: string, changes: Record<string, string>): void {
    const kept = JSON.parse(localStorage.getItem(KEY + conversation) ?? "{}") as Record<string, string>;
    localStorage.setItem(KEY + conversation, JSON.stringify({ ...kept, ...changes }));
  },
};
