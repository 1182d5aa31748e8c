// A model is configured: replies stream. The model is the built-in `echo`.
import { choose, expect, show, test, turnWith } from "./page";

test.use({ baseURL: process.env.TINE_PAGE_ANSWERING ?? "http://127.0.0.1:8000" });

test("a message is answered by a stream, and both are recorded", async ({ page, tree }) => {
  await show(page, tree);
  await expect(page.getByLabel("Reply model")).toHaveValue("echo");
  await page.getByLabel("Write on main").fill("Say this back to me");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("article").filter({ hasText: "Say this back to me" })).toHaveCount(2);
  const said = await tree.branch("main");
  expect(said).toHaveLength(2);
  expect(said[1]).toContain("Say this back to me");
  await expect(page.getByRole("img", { name: "verified" })).toHaveCount(2);
});

test("regenerate adds a reply beside the old one", async ({ page, tree }) => {
  await tree.say(["Question", "By hand"]);
  await show(page, tree);
  await choose(page, "By hand");
  await page.keyboard.press("r");
  await expect(page.getByText("2/2").first()).toBeVisible();
  expect((await tree.branch("main"))[1]).toContain("Question");
  await page.getByRole("button", { name: "Previous version" }).click();
  await expect(turnWith(page, "By hand")).toBeVisible();
});

test("an edited question gets a new reply", async ({ page, tree }) => {
  await tree.say(["Question one", "Answer one"]);
  await show(page, tree);
  await choose(page, "Question one");
  await page.keyboard.press("e");
  await page.getByLabel("New version").fill("Question two");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("article").filter({ hasText: "Question two" })).toHaveCount(2);
  const said = await tree.branch("main");
  expect(said[0]).toBe("Question two");
  expect(said).toHaveLength(2);
});

test("a reply can be stopped, and the partial reply is kept", async ({ page, tree }) => {
  await tree.say(["One", "Two"]);
  await show(page, tree);
  // The stream stays open until it is stopped.
  await page.evaluate(() => {
    const real = window.fetch;
    window.fetch = async (input, init) => {
      if (!String(input).includes("/reply")) return real(input, init);
      const open = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('event: begin\ndata: {"model":"slow"}\n\nevent: delta\ndata: {"text":"So far so"}\n\n'));
          init?.signal?.addEventListener("abort", () => controller.error(new DOMException("stopped", "AbortError")));
        },
      });
      return new Response(open, { status: 200 });
    };
  });
  await page.getByLabel("Write on main").fill("Go on");
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("Streaming reply")).toContainText("So far so");
  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByLabel("Streaming reply")).toHaveCount(0);
  await expect(page.locator(".toast").filter({ hasText: "Stopped" })).toBeVisible();
});

test("without a reply model the message is only recorded", async ({ page, tree }) => {
  await show(page, tree);
  await page.getByLabel("Reply model").selectOption("");
  await page.getByLabel("Write on main").fill("Only a note");
  await page.keyboard.press("Enter");
  await expect(turnWith(page, "Only a note")).toBeVisible();
  expect(await tree.branch("main")).toEqual(["Only a note"]);
});
