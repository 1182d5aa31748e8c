-- Appends for wrk: one turn of about a kilobyte a request, never two alike, each with a key.
-- Every thread goes round the conversations w0 … of its own share.
local words = { "the", "budget", "of", "and", "travel", "model", "that", "function", "answer" }
local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(args)
  conversations = tonumber(args[1])
  run = args[2]
  share = tonumber(args[3])
  count = 0
  math.randomseed(number * 7919 + os.time())
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  count = count + 1
  local text = { run, number, count }
  for place = 4, 180 do
    text[place] = words[math.random(#words)]
  end
  local body = '{"role":"user","content":"' .. table.concat(text, " ") .. '"}'
  wrk.headers["Idempotency-Key"] = table.concat({ "wrk", run, number, count }, "-")
  local conversation = (number + count * share) % conversations
  return wrk.format(nil, "/api/v1/conversations/w" .. conversation .. "/turns", nil, body)
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("requests=%d micros=%d refused=%d broken=%d p50=%d p99=%d\n",
    summary.requests, summary.duration, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
