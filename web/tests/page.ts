// Shared by the tests: a tree per test, and locators for parts of the page.
import { expect, test as base, type APIRequestContext, type Locator, type Page } from "@playwright/test";

export { expect };

interface Said {
  turns: { turn_id: string; turn_hash: string }[];
  branch: { name: string };
}

/** A conversation created over the API. */
export class Tree {
  constructor(
    readonly request: APIRequestContext,
    readonly id: string,
  ) {}

  async post(path: string, body: object, actor = "test"): Promise<unknown> {
    const answer = await this.request.post(`/api/v1${path}`, { data: body, headers: { "x-tine-actor": actor } });
    expect(answer.ok(), `${path}: ${await answer.text()}`).toBeTruthy();
    return answer.json();
  }

  async get<T>(path: string): Promise<T> {
    const answer = await this.request.get(`/api/v1${path}`);
    expect(answer.ok(), `${path}: ${await answer.text()}`).toBeTruthy();
    return (await answer.json()) as T;
  }

  /** Appends messages of alternating roles, the user first. Returns the turn ids. */
  async say(texts: (string | object)[], more: object = {}, actor = "test"): Promise<string[]> {
    const messages = texts.map((text, i) => (typeof text === "string" ? { role: i % 2 ? "assistant" : "user", content: text } : text));
    const said = (await this.post(`/conversations/${this.id}/turns`, { messages, ...more }, actor)) as Said;
    return said.turns.map(({ turn_id }) => turn_id);
  }

  /** The texts of a branch, in order. */
  async branch(name: string): Promise<string[]> {
    const path = await this.get<{ turns: { content: { text?: string }[] }[] }>(`/turns/${name}/path?conversation_id=${this.id}&last=500`);
    return path.turns.map(({ content }) => content.map(({ text }) => text ?? "").join(""));
  }

  async branches(): Promise<string[]> {
    const all = await this.get<{ items: { name: string }[] }>(`/conversations/${this.id}/branches`);
    return all.items.map(({ name }) => name);
  }
}

let made = 0;

export const test = base.extend<{ tree: Tree; faults: string[] }>({
  tree: async ({ request }, use, info) => {
    const id = `t${info.workerIndex}-${info.parallelIndex}-${process.pid}-${made++}`;
    const tree = new Tree(request, id);
    await tree.post("/conversations", { conversation_id: id, title: `Tree ${id}` });
    await use(tree);
  },
  /** Fails on errors in the console and on requests to other hosts. */
  faults: [
    async ({ page, baseURL }, use) => {
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
      page.on("console", (message) => {
        if (message.type() === "error" && !/status of 4\d\d|net::ERR/.test(message.text())) faults.push(`console: ${message.text()}`);
      });
      page.on("request", (request) => {
        if (!request.url().startsWith(baseURL!) && !/^(data|blob):/.test(request.url())) faults.push(`outside: ${request.url()}`);
      });
      await use(faults);
      expect(faults).toEqual([]);
    },
    { auto: true },
  ],
});

export async function show(page: Page, tree: Tree, turn = ""): Promise<void> {
  await page.goto(`/#/c/${tree.id}${turn ? `/t/${turn}` : ""}`);
  await expect(page.getByRole("feed")).toHaveAttribute("aria-busy", "false");
  await expect(page.getByLabel("Write on").or(page.getByLabel("Write on a new branch from here")).first()).toBeVisible();
}

export const turnWith = (page: Page, text: string): Locator => page.getByRole("article").filter({ hasText: text });
export const row = (page: Page, text: string): Locator => page.getByRole("treeitem").filter({ hasText: text });
export const toast = (page: Page, text: string): Locator => page.locator(".toast").filter({ hasText: text });
export const dialog = (page: Page): Locator => page.getByRole("dialog");

/** Selects a turn by clicking it. */
export async function choose(page: Page, text: string): Promise<void> {
  await row(page, text).first().click();
  await expect(row(page, text).first()).toHaveAttribute("aria-selected", "true");
}
