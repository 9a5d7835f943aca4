-- What wrk sends (list, create, put or delete), and how it reports: requests a second, p50 and p99 in milliseconds, failures.
-- wrk -s wrk.lua URL -- list PATH [ETAG] | create FILE | put PATH FILE | delete FIRST_ID; a FILE is .json or .md

local requests, next = {}, 0

-- The body in a file, whose kind the header then says.
local function body(path)
  wrk.headers["Content-Type"] = path:match("%.md$") and "text/markdown" or "application/json"
  return io.open(path):read("a")
end

-- Every request is made beforehand, so that the client's own work is not measured; after the last comes the first.
function init(args)
  local mode = args[1]
  wrk.headers["Authorization"] = "Bearer " .. os.getenv("KEY")
  if mode == "create" then
    local text = body(args[2])
    for number = 1, 30000 do
      local titled = text:gsub("NUMBER", os.time() .. number, 1)
      requests[number] = wrk.format("POST", "/v1/posts", nil, titled)
    end
  elseif mode == "put" then
    requests[1] = wrk.format("PUT", args[2], nil, body(args[3]))
  elseif mode == "delete" then
    for number = 1, 30000 do
      requests[number] = wrk.format("DELETE", "/v1/posts/" .. string.format("%d", args[2] + number - 1))
    end
  else
    wrk.headers["If-None-Match"] = args[3]
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
