-- Tells what came of what was reserved, or what was used without asking.
-- KEYS  sum and reserved of each quota in turn
-- ARGV  1 replica  2 channel  3 [{ n: name, w: window, p: part or 0 = the present one, u: used, h: change of what is reserved }]

local replica, channel = ARGV[1], ARGV[2]
local now = now_ms()
for i, change in ipairs(cjson.decode(ARGV[3])) do
  local sum, reserved = KEYS[i * 2 - 1], KEYS[i * 2]
  local used = change.u
  if change.h ~= 0 then
    local own = redis.call('HGET', reserved, replica)
    if own or change.h > 0 then
      set_reserved(reserved, replica, tonumber(own or 0) + change.h, channel, change.n)
    else
      -- This replica was taken for dead, and what it had reserved for used.
      used = used + change.h
    end
  end
  local part = change.p
  -- What is taken back from a part that is gone already was taken back with it.
  local gone = part > 0 and redis.call('HEXISTS', sum, whole(part)) == 0
  if part == 0 then part = part_of(change.w, now) end
  if used ~= 0 and not gone then add_used(sum, change.w, part, used, channel, change.n, replica, now) end
end
return 1
