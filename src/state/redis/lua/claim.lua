-- Claims, for one replica, the first candidate of a list that does not rest and has a place in each of its pools.
-- Where there is none, the replica is noted as waiting in the pools it names.
-- KEYS  1 held back  2 roll call  3 members  4 excesses  5 epoch  6 which Redis it is of, then those that ARGV[4] names by number
-- ARGV  1 replica  2 lease  3 lease ms  4 { c: [{ p: [[pool, limit, held, name]], r: rest or 0 }], w: [[waits, priority, waited ms]] }
--       5 channel  6 the epoch in which this replica has told its leases
-- Gives { number of the candidate or 0, ms until the next place lapses or 0, ms for which nothing is given out; -1 = another epoch }.

local replica, lease, lease_ms, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[5]
local ask = cjson.decode(ARGV[4])
local now = now_ms()
if redis.call('GET', KEYS[5]) ~= ARGV[6] then return { 0, 0, -1 } end
answer_roll(KEYS[1], KEYS[2], replica)

local function note_waiting()
  for _, wait in ipairs(ask.w) do
    redis.call('ZADD', KEYS[wait[1]], whole(-wait[2] * 1e13 + now - wait[3]), replica)
    keep(KEYS[wait[1]], 10000)
  end
end

local held_back_ms = redis.call('PTTL', KEYS[1])
if held_back_ms > 0 then
  note_waiting()
  return { 0, 0, held_back_ms }
end

local soonest = 0
for i, candidate in ipairs(ask.c) do
  local free = candidate.r == 0 or redis.call('PTTL', KEYS[candidate.r]) <= 0
  for _, pool in ipairs(candidate.p) do
    if free and occupied(KEYS[pool[1]], replica, now) >= pool[2] then
      free = false
      local first = redis.call('ZRANGE', KEYS[pool[1]], 0, 0, 'WITHSCORES')[2]
      if first and (soonest == 0 or first - now < soonest) then soonest = first - now end
    end
  end
  if free then
    local count = replica_count(KEYS[3], lease_ms, now)
    for _, pool in ipairs(candidate.p) do
      redis.call('ZREM', KEYS[pool[1]], 'r:' .. replica)
      occupy(KEYS[pool[1]], lease, now + lease_ms, now)
      tell_excess(KEYS[4], channel, replica, pool[4], math.floor(pool[2] / count), pool[3], pool[3] + 1)
    end
    for _, wait in ipairs(ask.w) do redis.call('ZREM', KEYS[wait[1]], replica) end
    return { i, 0, 0 }
  end
end
note_waiting()
return { 0, math.max(0, soonest), 0 }
