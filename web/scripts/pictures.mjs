// The pictures of docs/page.md, from the demo tree: `node scripts/pictures.mjs URL`.
import { mkdir } from "node:fs/promises";
import { chromium } from "@playwright/test";

const [base = "http://127.0.0.1:8000"] = process.argv.slice(2);
const folder = new URL("../../docs/images/", import.meta.url);
await mkdir(folder, { recursive: true });
await fetch(`${base}/api/v1/demo`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 780 };
const entity = await (await fetch(`${base}/api/v1/entities?entity_type=person&limit=1`)).json();
const pictures = [
  ["tree-light", "light", DESKTOP, "#/c/tokyo-trip/t/main"],
  ["tree-dark", "dark", DESKTOP, "#/c/tokyo-trip/t/notes"],
  ["compare", "light", DESKTOP, "#/c/tokyo-trip/compare/ryokan/main"],
  ["commits", "dark", DESKTOP, "#/c/tokyo-trip/commits"],
  ["provenance", "light", DESKTOP, `#/e/${entity.items[0]?.entity_id}`, (page) => page.locator("button.field").first().click()],
  ["phone-light", "light", PHONE, "#/c/tokyo-trip/t/main"],
  ["phone-dark", "dark", PHONE, "#/c/tokyo-trip/t/main", (page) => page.getByLabel("Back to the outline").click()],
];
for (const [name, colorScheme, viewport, address, act] of pictures) {
  const small = viewport === PHONE;
  const page = await browser.newPage({ baseURL: base, viewport, colorScheme, hasTouch: small, isMobile: small });
  await page.goto(`/${address}`);
  await page.waitForTimeout(1500);
  if (act) await act(page);
  await page.waitForTimeout(500);
  await page.screenshot({ path: new URL(`${name}.png`, folder).pathname });
  await page.close();
}
await browser.close();
