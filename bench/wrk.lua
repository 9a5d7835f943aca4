-- What wrk sends (list, create or delete), and how it reports: requests a second, p50 and p99 in milliseconds, failures.
-- wrk -s wrk.lua URL -- list PATH | create FILE | delete FIRST_ID

local requests, next = {}, 0

-- Every request is made beforehand, so that the client's own work is not measured; after the last comes the first.
function init(args)
  local mode = args[1]
  wrk.headers["Authorization"] = "Bearer " .. os.getenv("KEY")
  if mode == "create" then
    wrk.headers["Content-Type"] = "application/json"
    local body = io.open(args[2]):read("a")
    for number = 1, 30000 do
      local title = body:gsub("NUMBER", os.time() .. number, 1)
      requests[number] = wrk.format("POST", "/v1/posts", nil, title)
    end
  elseif mode == "delete" then
    for number = 1, 30000 do
      requests[number] = wrk.format("DELETE", "/v1/posts/" .. string.format("%d", args[2] + number - 1))
    end
  else
    requests[1] = wrk.format("GET", args[2])
  end
end

function request()
  next = next % #requests + 1
  return requests[next]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
  print(string.format("RESULT %f %f %f %d", summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, failed))
end
