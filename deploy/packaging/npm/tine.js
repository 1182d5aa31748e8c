#!/usr/bin/env node
// Runs the binary of this platform, which npm installed as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { name, version } = require("../package.json");

const folder = `${name}-${process.platform}-${process.arch}`;
const program = process.platform === "win32" ? "tine.exe" : "tine";

let binary;
try {
  binary = require.resolve(`${folder}/bin/${program}`);
} catch {
  console.error(
    `tine: the package ${folder}@${version} is not installed. If it exists for your platform, ` +
      "install again without --omit=optional; otherwise build Tine from source.",
  );
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    // A terminal sends Ctrl-C to both processes; a second one would cut a clean shutdown short.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`tine: cannot run ${binary}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  // Ends as the child did, so that shells and supervisors see the signal.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
