// Measures the page on large trees in Chromium: `TINE_PAGE=URL npm run perf`, over a `tine serve`
// whose store may be written to. Prints each figure beside its bound and fails where one is missed.
import { readFile } from "node:fs/promises";
import { chromium } from "@playwright/test";
import { plant } from "./plant.mjs";

const base = process.env.TINE_PAGE ?? "http://127.0.0.1:8000";
const TURNS = 100_000;
const TRUNK = 10_000;
const BOUNDS = { outline: 300, longTask: 50, branchSwitch: 100, memory: 300 };
const figures = [];
const note = (what, value, bound, unit) => figures.push({ what, value: Math.round(value), bound, unit });

const conversation = await plant(base, TURNS, TRUNK);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-precise-memory-info"],
});
const page = await browser.newPage({ baseURL: base, viewport: { width: 1440, height: 900 } });

await page.addInitScript(() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
  }).observe({ type: "longtask", buffered: true });
  // The first row of the outline, once it is on the screen.
  new MutationObserver((_, observer) => {
    if (!document.querySelector("[role=treeitem]")) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.painted = performance.now())));
  }).observe(document, { childList: true, subtree: true });
});

/** The longest task while something is done; 0 where none took 50 ms. */
async function longest(work) {
  await page.evaluate(() => (window.longest = 0));
  await work();
  await page.waitForTimeout(400);
  return page.evaluate(() => window.longest);
}

async function wheel(selector, steps, by) {
  const box = await page.locator(selector).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let step = 0; step < steps; step++) {
    await page.mouse.wheel(0, by);
    await page.waitForTimeout(16);
  }
}

/** Jumps over the whole length, as somebody does who drags the scroll bar. */
async function drag(selector) {
  await page.locator(selector).evaluate(async (element) => {
    for (let step = 0; step <= 60; step++) {
      element.scrollTop = (element.scrollHeight * ((step * 37) % 61)) / 60;
      await new Promise((done) => requestAnimationFrame(done));
    }
  });
}

const cdp = await page.context().newCDPSession(page);

/** Opens the tree from the start page. */
async function open() {
  await page.goto("about:blank");
  await page.goto("/");
  await page.getByLabel("Search everything").waitFor();
  await page.waitForTimeout(500);
  await page.evaluate((id) => (location.hash = `#/c/${id}`), conversation);
  await page.waitForFunction(() => window.painted);
  await page.getByRole("article").first().waitFor();
  return page.evaluate(() => {
    const [data] = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/outline"));
    return { paint: window.painted - data.responseEnd, bytes: data.encodedBodySize };
  });
}
const opened = [];
for (let i = 0; i < 5; i++) opened.push(await open());
opened.sort((a, b) => a.paint - b.paint);
note(`outline of ${TURNS.toLocaleString()} turns, from the data's arrival to the screen, median of 5`, opened[2].paint, BOUNDS.outline, "ms");
note("its data, compressed", opened[2].bytes / 1000, undefined, "kB");
await page.waitForTimeout(1000);

note("longest task while the outline scrolls", await longest(() => wheel("[role=tree]", 120, 400)), BOUNDS.longTask, "ms");
note("longest task while the outline is dragged", await longest(() => drag("[role=tree]")), BOUNDS.longTask, "ms");
note(`longest task while a transcript of ${TRUNK.toLocaleString()} turns scrolls`, await longest(() => wheel("[role=feed]", 120, -400)), BOUNDS.longTask, "ms");
note("longest task while it is dragged", await longest(() => drag("[role=feed]")), BOUNDS.longTask, "ms");

const switches = [];
for (let i = 0; i < 8; i++) {
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press(i % 2 ? "Control+ArrowRight" : "Control+ArrowLeft");
  const other = page.locator(".turn.chosen").getByRole("group", { name: "Versions" }).getByRole("button", { disabled: false }).first();
  await other.waitFor();
  await page.waitForTimeout(300);
  const took = await other.evaluate((button) => {
    const began = performance.now();
    button.click();
    return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))));
  });
  switches.push(took);
  await page.waitForTimeout(300);
}
note("branch switch, to the screen, median of 8", switches.sort((a, b) => a - b)[4], BOUNDS.branchSwitch, "ms");

const session = await browser.newBrowserCDPSession();
await cdp.send("HeapProfiler.collectGarbage");
await page.waitForTimeout(500);
const { processInfo } = await session.send("SystemInfo.getProcessInfo");
let memory = 0;
for (const { id, type } of processInfo.filter(({ type }) => type === "renderer")) {
  const pss = /^Pss:\s+(\d+)/m.exec(await readFile(`/proc/${id}/smaps_rollup`, "utf8").catch(() => ""));
  if (pss && type) memory = Math.max(memory, Number(pss[1]) / 1000);
}
note("memory of the page's process (its own and its share of what is shared)", memory, BOUNDS.memory, "MB");
note("of that in JavaScript", (await page.evaluate(() => performance.memory.usedJSHeapSize)) / 1e6, undefined, "MB");
await browser.close();

let missed = 0;
for (const { what, value, bound, unit } of figures) {
  const late = bound !== undefined && value > bound;
  missed += late ? 1 : 0;
  console.log(`${late ? "✗" : "✓"} ${what}: ${value} ${unit}${bound === undefined ? "" : ` (bound ${bound})`}`);
}
process.exit(missed ? 1 : 0);
