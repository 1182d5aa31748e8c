// Stores a thousand turns one after the other over stdio, prints how long it takes, and checks that
// answers do not grow with the conversation.
//
//     thousand.mjs TINE        (uses the store TINE_STORE)

import assert from 'node:assert/strict';
import process from 'node:process';

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const TURNS = 1000;
const client = new Client({ name: 'thousand', version: '1' });
await client.connect(
  new StdioClientTransport({
    command: process.argv[2],
    args: ['mcp', '--project', 'thousand'],
    env: { TINE_STORE: process.env.TINE_STORE },
  }),
);
const bytes = [];
const begun = performance.now();
for (let turn = 1; turn <= TURNS; turn += 1) {
  // Equal lengths, so that only what the server adds could grow.
  const turn_id = String(turn).padStart(6, '0');
  const result = await client.callTool({
    name: 'store_conversation_turn',
    arguments: {
      conversation_id: 'long',
      turn_id,
      role: turn % 2 ? 'user' : 'assistant',
      content: `What was said in turn ${turn_id}, about as long as people write in a chat.`,
      idempotency_key: `conversation-long-${turn_id}-1`,
    },
  });
  assert.equal(result.structuredContent?.outcome, 'created', JSON.stringify(result));
  bytes.push(JSON.stringify(result).length);
}
const seconds = (performance.now() - begun) / 1000;
// Compares two answers of the same role, because they contain its name.
assert.ok(bytes.at(-1) <= bytes[9], `answer 10 has ${bytes[9]} bytes, the last one ${bytes.at(-1)}`);
const whole = await client.callTool({ name: 'get_tree', arguments: { conversation_id: 'long' } });
assert.equal(whole.structuredContent.total, TURNS);
await client.close();
const sizes = `answer 10 has ${bytes[9]} bytes, answer ${TURNS} has ${bytes.at(-1)}`;
console.log(`${TURNS} turns in ${seconds.toFixed(1)} s; ${sizes}`);
