-- Under which id a history is known: that of its longest known prefix, or a new one. All its prefixes are known by it then.
-- Histories are so many at most: the one that was not used for longest is forgotten with all its prefixes.
-- KEYS  1 ids, by last use, then the prefixes, ascending
-- ARGV  1 id of a history that is not known; '' = then nothing is learnt  2 ms to keep it  3 most histories
--       4 most prefixes of one  5 name of the set with the prefixes of an id, without the id
-- Gives the id, or ''.

local kept_ms, most, most_prefixes, sets = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local now = now_ms()

local id = ''
for i = #KEYS, 2, -1 do
  local found = redis.call('GET', KEYS[i])
  if found and redis.call('ZSCORE', KEYS[1], found) then
    id = found
    break
  end
end
if id == '' then id = ARGV[1] end
if id == '' then return '' end

local function forget(prefix, of)
  if redis.call('GET', prefix) == of then redis.call('DEL', prefix) end
end

local own = sets .. id
for i = 2, #KEYS do
  redis.call('SET', KEYS[i], id, 'PX', ARGV[2])
  redis.call('SADD', own, KEYS[i])
end
keep(own, kept_ms)
local beyond = redis.call('SCARD', own) - most_prefixes
if beyond > 0 then
  for _, prefix in ipairs(redis.call('SPOP', own, beyond)) do forget(prefix, id) end
end

redis.call('ZADD', KEYS[1], whole(now), id)
keep(KEYS[1], kept_ms)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now - kept_ms))
while redis.call('ZCARD', KEYS[1]) > most do
  local oldest = redis.call('ZPOPMIN', KEYS[1])[1]
  for _, prefix in ipairs(redis.call('SMEMBERS', sets .. oldest)) do forget(prefix, oldest) end
  redis.call('DEL', sets .. oldest)
end
return id
