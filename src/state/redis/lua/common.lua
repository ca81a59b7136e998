-- Shared by all scripts, which follow it. Time is Redis's own, so that no replica's clock matters.
--
-- A pool is a sorted set: who occupies a place of it, scored by when that lapses by itself.
--   <replica>:<number>  a lease
--   r:<replica>         a place kept for a replica that was woken
--   s:<lease>           the pause after an exchange

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function whole(number)
  return string.format('%.0f', number)
end

-- No key lives for ever: it goes some time after the last thing in it.
local function keep(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, whole(ms)) end
end

local function occupy(pool, member, until_ms, now)
  redis.call('ZADD', pool, whole(until_ms), member)
  keep(pool, until_ms - now + 60000)
end

-- Places taken, as far as this replica is concerned: one that is kept for it does not count.
local function occupied(pool, replica, now)
  redis.call('ZREMRANGEBYSCORE', pool, '-inf', whole(now))
  local count = redis.call('ZCARD', pool)
  if redis.call('ZSCORE', pool, 'r:' .. replica) then count = count - 1 end
  return count
end

local function publish(channel, event)
  return redis.call('PUBLISH', channel, cjson.encode(event))
end

-- How many replicas have been heard of lately.
local function replica_count(members, lease_ms, now)
  return math.max(1, redis.call('ZCOUNT', members, whole(now - lease_ms * 4 / 3), '+inf'))
end

-- Tells the others how far a replica is above its even share of a pool: what they must leave to it if Redis goes away.
local function tell_excess(over, channel, replica, name, share, before, after)
  if share == 0 or (before <= share and after <= share) then return end
  local excess = math.max(0, after - share)
  local field = replica .. '|' .. name
  if excess > 0 then
    redis.call('HSET', over, field, excess)
    keep(over, 3600000)
  else
    redis.call('HDEL', over, field)
  end
  publish(channel, { t = 'excess', r = replica, p = name, n = excess })
end

-- The same for all that a replica holds, { { limit, name, held } }, where others know something else: a share shrinks with each
-- replica that comes, and an empty Redis knows nothing.
local function tell_excesses(over, channel, replica, count, pools)
  for _, pool in ipairs(pools) do
    local share = math.floor(pool[1] / count)
    local excess = share == 0 and 0 or math.max(0, pool[3] - share)
    local known = tonumber(redis.call('HGET', over, replica .. '|' .. pool[2]) or 0)
    if excess ~= known then tell_excess(over, channel, replica, pool[2], share, math.huge, pool[3]) end
  end
end

-- Whoever speaks has told all its leases before: a roll call does not wait for it any more.
local function answer_roll(held_back, pending, replica)
  if redis.call('SREM', pending, replica) == 1 and redis.call('EXISTS', pending) == 0 then
    if redis.call('GET', held_back) == 'roll' then redis.call('DEL', held_back) end
  end
end

-- A place of this pool is free, or will be in `pause` ms: keeps it for the replica whose first in line stands best.
local function hand_on(pool, waits, limit, pause, channel, name, now)
  redis.call('ZREMRANGEBYSCORE', pool, '-inf', whole(now))
  local taken = redis.call('ZCARD', pool)
  if pause > 0 then taken = taken - 1 end
  while taken < limit do
    local best = redis.call('ZPOPMIN', waits)[1]
    if not best then return end
    if not redis.call('ZSCORE', pool, 'r:' .. best) then
      local heard = publish(channel .. ':' .. best, { t = 'wake', p = name, s = pause })
      if heard > 0 then
        occupy(pool, 'r:' .. best, now + pause + 250, now)
        return
      end
    end
  end
end
