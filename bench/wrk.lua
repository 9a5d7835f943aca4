-- What wrk sends (list, create or delete), and how it reports: requests a second, p50 and p99 in milliseconds, failures.
-- wrk -s wrk.lua URL -- list PATH | create FILE | delete FIRST_ID

local mode, id, body

function init(args)
  mode = args[1]
  wrk.headers["Authorization"] = "Bearer " .. os.getenv("KEY")
  if mode == "create" then
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
    body = io.open(args[2]):read("a")
    id = 0
  elseif mode == "delete" then
    id = tonumber(args[2]) - 1
  else
    wrk.path = args[2]
  end
end

function request()
  if mode == "delete" then
    id = id + 1
    return wrk.format("DELETE", "/v1/posts/" .. id)
  end
  if mode == "create" then
    id = id + 1
    return wrk.format("POST", "/v1/posts", nil, (body:gsub("NUMBER", os.time() .. id, 1)))
  end
  return wrk.format()
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
  print(string.format("RESULT %f %f %f %d", summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, failed))
end
