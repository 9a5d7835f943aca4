-- Tells wrk what to send and how to report: requests a second, p50 and p99 in milliseconds, requests, failures.
-- wrk -s wrk.lua URL -- list PATH [ETAG] | create PATH FILE FIRST | put PATH FILE | delete PATH FIRST
-- FILE is .json or .md; each NUMBER in it becomes a number, from FIRST on, as does the id of each post to delete.

local requests, next = {}, 0
local COUNT = 30000

local function body(path)
  wrk.headers["Content-Type"] = path:match("%.md$") and "text/markdown" or "application/json"
  return io.open(path):read("a")
end

-- Every request is prepared, so that the client's own work is not measured. The first one follows the last one.
function init(args)
  local mode, path = args[1], args[2]
  wrk.headers["Authorization"] = "Bearer " .. os.getenv("KEY")
  if mode == "create" then
    local text = body(args[3])
    for number = 0, COUNT - 1 do
      requests[number + 1] = wrk.format("POST", path, nil, (text:gsub("NUMBER", string.format("%.0f", args[4] + number))))
    end
  elseif mode == "put" then
    requests[1] = wrk.format("PUT", path, nil, body(args[3]))
  elseif mode == "delete" then
    for number = 0, COUNT - 1 do
      requests[number + 1] = wrk.format("DELETE", path .. "/" .. string.format("%.0f", args[3] + number))
    end
  else
    wrk.headers["If-None-Match"] = args[3]
    requests[1] = wrk.format("GET", path)
  end
end

function request()
  next = next % #requests + 1
  return requests[next]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
  print(string.format("RESULT %f %f %f %d %d", summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, summary.requests, failed))
end
