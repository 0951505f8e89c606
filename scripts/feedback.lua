-- The load of searchers on a running server, for wrk: duels, and the outcome of each.
--
--   wrk -t 1 -c 64 -d 10 --latency -s scripts/feedback.lua http://127.0.0.1:7171/v1/experiments/NAME
local base = wrk.path
local duels = {}

wrk.headers["content-type"] = "application/json"
if os.getenv("RANKDUEL_API_KEY") then
    wrk.headers["authorization"] = "Bearer " .. os.getenv("RANKDUEL_API_KEY")
end

function request()
    local duel = table.remove(duels)
    if not duel then
        return wrk.format("POST", base .. "/next-duel", nil, "{}")
    end
    local outcome = math.random() < 0.5 and "left" or "right"
    local body = string.format('{"duel_id": "%s", "outcome": "%s"}', duel, outcome)
    return wrk.format("POST", base .. "/feedback", nil, body)
end

function response(_, _, body)
    local duel = body:match('"duel_id":"([^"]+)"')
    if duel and body:match('"self_duel":false') then
        table.insert(duels, duel)
    end
end
