// Runs a whole session with the official TypeScript SDK.
//
//     story.mjs AGENT…

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import process from 'node:process';
import { Readable, Writable } from 'node:stream';

import { RequestError, client, methods, ndJsonStream } from '@agentclientprotocol/sdk/unstable';

const { session } = methods.agent;
const [command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const folder = { cwd: process.cwd(), mcpServers: [] };

let updates = [];
const app = client({ name: 'story' }).onNotification(methods.client.session.update, ({ params }) => {
  updates.push(params);
});

// Returns the messages of a session since the last call: speaker, message id, text.
function said(sessionId) {
  const seen = updates;
  updates = [];
  const messages = [];
  for (const { sessionId: where, update } of seen) {
    assert.equal(where, sessionId);
    const speaker = update.sessionUpdate.match(/^(user|agent)_message_chunk$/)?.[1];
    if (!speaker) continue;
    assert.ok(update.messageId, 'every chunk must have a message id');
    if (messages.at(-1)?.id !== update.messageId) {
      messages.push({ speaker, id: update.messageId, text: '' });
    }
    messages.at(-1).text += update.content.text;
  }
  return messages;
}

async function refused(asking, code) {
  const error = await asking.then(() => assert.fail('the request succeeded'), (error) => error);
  assert.ok(error instanceof RequestError, `${error}`);
  assert.equal(error.code, code);
  return error;
}

await app.connectWith(stream, async (ctx) => {
  const hello = await ctx.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientInfo: { name: 'story', version: '1' },
    clientCapabilities: {},
  });
  assert.equal(hello.agentCapabilities.sessionCapabilities.fork.atMessageId, true);

  async function prompt(sessionId, text) {
    const block = { type: 'text', text };
    const ended = await ctx.request(session.prompt, { sessionId, prompt: [block] });
    assert.equal(ended.stopReason, 'end_turn');
    const messages = said(sessionId);
    assert.deepEqual(messages.map((it) => it.speaker), ['user', 'agent']);
    assert.equal(messages[0].text, text);
    return messages;
  }

  const { sessionId } = await ctx.request(session.new, folder);
  const first = await prompt(sessionId, 'Where to in March?');
  const second = await prompt(sessionId, 'And in April?');

  const anchor = first[1].id;
  const fork = await ctx.request(session.fork, { sessionId, ...folder, messageId: anchor });
  assert.notEqual(fork.sessionId, sessionId);
  const other = await prompt(fork.sessionId, 'And in May?');

  await ctx.request(session.load, { sessionId, ...folder });
  assert.deepEqual(said(sessionId), [...first, ...second]);
  await ctx.request(session.load, { sessionId: fork.sessionId, ...folder });
  assert.deepEqual(said(fork.sessionId), [...first, ...other]);

  const params = { sessionId, ...folder, messageId: other[0].id };
  const error = await refused(ctx.request(session.fork, params), -32602);
  assert.equal(error.data.messageId, other[0].id);

  const { sessions } = await ctx.request(session.list, { cwd: folder.cwd });
  const listed = sessions.map((it) => it.sessionId);
  assert.ok(listed.includes(sessionId) && listed.includes(fork.sessionId));
  assert.equal(sessions.find((it) => it.sessionId === sessionId).title, 'Where to in March?');

  await ctx.request(session.close, { sessionId });
  await refused(
    ctx.request(session.prompt, { sessionId, prompt: [{ type: 'text', text: 'closed' }] }),
    -32002,
  );
  await ctx.request(session.resume, { sessionId, cwd: folder.cwd });
  assert.deepEqual(said(sessionId), [], 'a resume must not replay messages');
  await prompt(sessionId, 'And in June?');

  const long = 'word '.repeat(500);
  const running = ctx.request(session.prompt, { sessionId, prompt: [{ type: 'text', text: long }] });
  await ctx.notify(session.cancel, { sessionId });
  assert.equal((await running).stopReason, 'cancelled');

  for (const gone of [fork.sessionId, fork.sessionId, sessionId]) {
    await ctx.request(session.delete, { sessionId: gone });
  }
  const left = (await ctx.request(session.list, {})).sessions.map((it) => it.sessionId);
  assert.ok(!left.includes(sessionId) && !left.includes(fork.sessionId));
});
agent.stdin.end();
const code = await new Promise((resolve) => agent.on('exit', resolve));
assert.equal(code, 0);
