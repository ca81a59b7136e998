-- Under which id a history is known: that of its longest known prefix, or a new one. All its prefixes are known by it then.
-- KEYS  its prefixes, ascending
-- ARGV  1 id of a history that is not known; '' = then nothing is learnt  2 ms to keep it
-- Gives the id, or ''.

local id = ''
for i = #KEYS, 1, -1 do
  id = redis.call('GET', KEYS[i]) or ''
  if id ~= '' then break end
end
if id == '' then id = ARGV[1] end
if id == '' then return '' end
for _, key in ipairs(KEYS) do redis.call('SET', key, id, 'PX', ARGV[2]) end
return id
