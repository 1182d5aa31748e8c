-- Windows for wrk: forty turns around some turn of a long conversation.
function init(args)
  depth = tonumber(args[1])
  math.randomseed(os.time())
end

function request()
  local back = math.random(50, depth - 50)
  return wrk.format("GET", "/api/v1/turns/main~" .. back .. "/path?conversation_id=long&window=40")
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("requests=%d micros=%d refused=%d broken=%d p50=%d p99=%d\n",
    summary.requests, summary.duration, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
