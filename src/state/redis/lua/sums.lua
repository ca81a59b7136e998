-- Sums with all their parts: { part, amount… } for each.
-- KEYS  the sums

local result = {}
for i, key in ipairs(KEYS) do result[i] = redis.call('HGETALL', key) end
return result
