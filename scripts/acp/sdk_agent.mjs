// An agent on the official TypeScript SDK, used to test the recorder.
//
//     sdk_agent.mjs [TRAIT…]
//
// Without traits it only knows the sessions of its own process, sends messages without ids and
// repeats each prompt. It answers the prompt `context?` with everything it was sent in the session,
// so that tests can see the context it was given.
//
//   fork     forks whole sessions, and resumes them from a file (--state FILE)
//   load     loads sessions from that file and replays them
//   recount  restarts its session numbers at 1 with every process
//   echo     echoes prompts as user messages
//   crash    exits in the middle of the answer to a prompt that starts with `crash`
//   tools    on the prompt `tool`, thinks, plans and uses a tool after asking for permission

import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';

import { RequestError, agent, methods, ndJsonStream } from '@agentclientprotocol/sdk/unstable';

const traits = new Set(process.argv.slice(2));
const stateFile = process.argv[process.argv.indexOf('--state') + 1];
const keeps = traits.has('fork') || traits.has('load');
const { session } = methods.agent;

const sessions = new Map();
const cancelled = new Set();
if (keeps) {
  try {
    for (const [id, sent] of JSON.parse(readFileSync(stateFile, 'utf8'))) sessions.set(id, sent);
  } catch {}
}
function save() {
  if (keeps) writeFileSync(stateFile, JSON.stringify([...sessions]));
}

let count = 0;
function begun(sent) {
  count += 1;
  const chance = Math.random().toString(36).slice(2);
  const sessionId = traits.has('recount') ? `native-${count}` : `native-${sessions.size}-${chance}`;
  sessions.set(sessionId, sent);
  save();
  return { sessionId };
}

function known(sessionId) {
  const sent = sessions.get(sessionId);
  if (!sent) throw RequestError.resourceNotFound(sessionId);
  return sent;
}

const words = (text) => ({ type: 'text', text });
const texts = (blocks) => blocks.map((block) => block.text ?? `[${block.type}]`).join('');

const app = agent({ name: 'sdk-agent' })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: 1,
    agentInfo: { name: `sdk-agent-${[...traits].filter((it) => !it.includes('/')).join('-')}`, version: '1' },
    agentCapabilities: {
      promptCapabilities: { image: true },
      ...(traits.has('load') && { loadSession: true }),
      ...(traits.has('fork') && { sessionCapabilities: { fork: {}, resume: {} } }),
    },
    authMethods: [],
  }))
  .onRequest(session.new, () => begun([]))
  .onNotification(session.cancel, ({ params }) => {
    cancelled.add(params.sessionId);
  })
  .onRequest(session.prompt, async ({ params: { sessionId, prompt } }) => {
    const sent = known(sessionId);
    cancelled.delete(sessionId);
    const asked = texts(prompt.slice(-1));
    const show = (update) => connection.client.notify(methods.client.session.update, { sessionId, update });
    const say = (text) => show({ sessionUpdate: 'agent_message_chunk', content: words(text) });
    if (traits.has('echo')) {
      for (const content of prompt) await show({ sessionUpdate: 'user_message_chunk', content });
    }
    sent.push(texts(prompt));
    save();
    if (asked === 'context?') {
      await say(JSON.stringify(sent));
      return { stopReason: 'end_turn' };
    }
    if (traits.has('tools') && asked === 'tool') {
      await useTool(sessionId, show, say);
      return { stopReason: 'end_turn' };
    }
    for (const [nth, word] of asked.match(/[^ ]{1,16} ?| /g).entries()) {
      if (traits.has('crash') && asked.startsWith('crash') && nth === 2) process.exit(3);
      if (cancelled.has(sessionId)) return { stopReason: 'cancelled' };
      await say(word);
      await pause(1);
    }
    sent.push(asked);
    save();
    return { stopReason: 'end_turn' };
  });
if (traits.has('fork')) {
  app.onRequest(session.fork, ({ params }) => begun([...known(params.sessionId)]));
  app.onRequest(session.resume, ({ params }) => {
    known(params.sessionId);
    return {};
  });
}
if (traits.has('load')) {
  app.onRequest(session.load, async ({ params: { sessionId } }) => {
    for (const [nth, text] of known(sessionId).entries()) {
      const sessionUpdate = nth % 2 ? 'agent_message_chunk' : 'user_message_chunk';
      const update = { sessionUpdate, content: words(text) };
      await connection.client.notify(methods.client.session.update, { sessionId, update });
    }
    return {};
  });
}

async function useTool(sessionId, show, say) {
  const toolCallId = `call-${Math.random().toString(36).slice(2)}`;
  await show({ sessionUpdate: 'agent_thought_chunk', content: words('I should ') });
  await show({ sessionUpdate: 'agent_thought_chunk', content: words('look.') });
  await show({ sessionUpdate: 'plan', entries: [{ content: 'look', priority: 'high', status: 'pending' }] });
  await say('Let me look.');
  await show({ sessionUpdate: 'tool_call', toolCallId, title: 'Edit it', kind: 'edit', status: 'pending', rawInput: {} });
  await show({ sessionUpdate: 'tool_call_update', toolCallId, rawInput: { path: '/home/me/it' } });
  const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }];
  const { outcome } = await connection.client.request(methods.client.session.requestPermission, {
    sessionId,
    toolCall: { toolCallId },
    options,
  });
  await show({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' });
  const diff = { type: 'diff', path: '/home/me/it', oldText: 'old', newText: 'new' };
  const content = [{ type: 'content', content: words(`permission ${outcome.outcome}`) }, diff];
  await show({ sessionUpdate: 'tool_call_update', toolCallId, status: 'completed', content });
  await say('Done.');
}

const connection = app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await connection.closed;
