-- A replica (re)joins: it tells every lease it holds, and what else stands in its name is struck out. Nothing is given out
-- until all others have told theirs as well; where Redis has lost its memory, or part of it, for the time of a lease.
-- KEYS  1 held back  2 roll call  3 members  4 excesses  5 epoch  6 which Redis that is of: { process, history }, then the pools that ARGV[4] and ARGV[5] name by number
-- ARGV  1 replica  2 lease ms  3 channel  4 [[lease, [pool]]]  5 [every pool]  6 epoch it knew, or ''  7 an epoch to begin
--       8 ms that a newcomer waits for others in an empty Redis  9 the process of this Redis, or '' = it does not say
--       10 its history  11 the history that this one goes on from, or ''  12 [[limit, name, held]] of the pools in ARGV[4]
--       13 which telling of this replica it is, 1 …  14 number of the key of tellings: replica → { telling, epoch }
-- A telling that was overtaken by a later one, as on a connection that was given up, does nothing.
-- Gives { epoch, ms for which nothing is given out, members, replica|pool, excess… }.

local replica, lease_ms, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local knew = ARGV[6]
local now = now_ms()

local tellings, telling = KEYS[tonumber(ARGV[14])], tonumber(ARGV[13])
local earlier = cjson.decode(redis.call('HGET', tellings, replica) or '[0, ""]')
if telling <= earlier[1] then return redis.error_reply('OVERTAKEN a later telling of this replica has come') end

local told = {}
for _, lease in ipairs(cjson.decode(ARGV[4])) do
  told[lease[1]] = true
  for _, pool in ipairs(lease[2]) do occupy(KEYS[pool], lease[1], now + lease_ms, now) end
end
local own = replica .. ':'
for _, pool in ipairs(cjson.decode(ARGV[5])) do
  for _, member in ipairs(redis.call('ZRANGE', KEYS[pool], 0, -1)) do
    local stale = string.sub(member, 1, #own) == own and not told[member]
    if stale or member == 'r:' .. replica then redis.call('ZREM', KEYS[pool], member) end
  end
end

-- Never shorter than it is, and what holds back for a time is no roll call that ends before.
local function hold_back(why, ms)
  if ms <= 0 or redis.call('PTTL', KEYS[1]) >= ms then return end
  if redis.call('GET', KEYS[1]) == 'epoch' then why = 'epoch' end
  redis.call('SET', KEYS[1], why, 'PX', whole(ms))
end

local epoch = redis.call('GET', KEYS[5])
local process, history, before = ARGV[9], ARGV[10], ARGV[11]
-- Its data may be older than what replicas know of: a snapshot, or those of a replica that lagged behind. An epoch goes on
-- only in the process in which it began, and only as long as that took its data from nobody else.
local goes_on = false
if epoch and process ~= '' then
  local origin = cjson.decode(redis.call('GET', KEYS[6]) or '[]')
  goes_on = origin[1] == process and (origin[2] == history or (before ~= '' and origin[2] == before))
elseif epoch then
  -- Nobody can tell, so it is taken for older, once for all that come soon.
  goes_on = knew == '' or (knew ~= epoch and redis.call('GET', KEYS[1]) == 'epoch')
end

if not goes_on then
  epoch = ARGV[7]
  -- A newcomer cannot know whether others still run what an earlier Redis knew of: it lets them come first.
  hold_back('epoch', knew == '' and tonumber(ARGV[8]) or lease_ms)
  publish(channel, { t = 'roll', r = replica })
elseif knew == '' then
  -- Nobody was heard of lately: it was away for all, or they are dead. If they live they come first.
  local heard = redis.call('ZCOUNT', KEYS[3], whole(now - lease_ms / 2), '+inf')
  local alone = heard == 0 and redis.call('ZCARD', KEYS[3]) > 0
  if alone or process == '' then hold_back('newcomer', tonumber(ARGV[8])) end
else
  -- Once for each: whoever never hears the answer tells again and again.
  local deaf = knew ~= epoch and earlier[2] == epoch
  if knew ~= epoch and not deaf and redis.call('EXISTS', KEYS[1]) == 1 then hold_back('epoch', lease_ms) end
  -- However long they are silent: nobody was heard while it was away, and leases ran out only because of that.
  for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    if other ~= replica then redis.call('SADD', KEYS[2], other) end
  end
  redis.call('SREM', KEYS[2], replica)
  if redis.call('SCARD', KEYS[2]) > 0 then
    redis.call('PEXPIRE', KEYS[2], whole(lease_ms))
    if not deaf then hold_back('roll', lease_ms) end
    publish(channel, { t = 'roll', r = replica })
  end
end
redis.call('SET', KEYS[5], epoch, 'PX', 86400000)
if process ~= '' then redis.call('SET', KEYS[6], cjson.encode({ process, history }), 'PX', 86400000) end
answer_roll(KEYS[1], KEYS[2], replica)
redis.call('HSET', tellings, replica, cjson.encode({ telling, epoch }))
keep(tellings, 172800000)

redis.call('ZADD', KEYS[3], whole(now), replica)
keep(KEYS[3], 172800000)
local count = replica_count(KEYS[3], lease_ms, now)
publish(channel, { t = 'replicas', n = count })
local holds = cjson.decode(ARGV[12])
local held_in = {}
for _, pool in ipairs(holds) do held_in[replica .. '|' .. pool[2]] = true end
for _, field in ipairs(redis.call('HKEYS', KEYS[4])) do
  if string.sub(field, 1, #replica + 1) == replica .. '|' and not held_in[field] then
    redis.call('HDEL', KEYS[4], field)
    publish(channel, { t = 'excess', r = replica, p = string.sub(field, #replica + 2), n = 0 })
  end
end
tell_excesses(KEYS[4], channel, replica, count, holds)
-- Each start of a replica has a name of its own.
if redis.call('HLEN', tellings) > 1000 then
  for _, field in ipairs(redis.call('HKEYS', tellings)) do
    if not redis.call('ZSCORE', KEYS[3], field) then redis.call('HDEL', tellings, field) end
  end
end
-- Not unpacked: that fails beyond some thousand.
local answer = { epoch, math.max(0, redis.call('PTTL', KEYS[1])), count }
for _, part in ipairs(redis.call('HGETALL', KEYS[4])) do answer[#answer + 1] = part end
return answer
