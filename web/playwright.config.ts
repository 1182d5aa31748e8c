import { defineConfig } from "@playwright/test";

// `scripts/test-page` starts the servers and says where they are.
export default defineConfig({
  testDir: "tests",
  workers: 2,
  fullyParallel: true,
  forbidOnly: true,
  timeout: 30_000,
  expect: { timeout: 5_000 },
  reporter: [["line"]],
  use: {
    baseURL: process.env.TINE_PAGE ?? "http://127.0.0.1:8000",
    viewport: { width: 1360, height: 860 },
    permissions: ["clipboard-read", "clipboard-write"],
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
    screenshot: "only-on-failure",
  },
});
