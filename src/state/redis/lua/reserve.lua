-- Takes of all quotas that a request counts against, or of none: each must have something left.
-- KEYS  1 held back  2 members  3 epoch, then sum and reserved of each quota in turn
-- ARGV  1 replica  2 lease ms  3 channel  4 the epoch in which this replica has told what it knows
--       5 [{ l: limit, n: name, w: window, u: used at once, h: tokens to reserve }]
-- Gives { 1, part of each in which it was counted… }, { 0, number of a quota that is used up, ms until it may open… },
-- { 2, ms for which nothing is given out } or { 3 }: another epoch.

local replica, lease_ms, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local now = now_ms()
if redis.call('GET', KEYS[3]) ~= ARGV[4] then return { 3 } end
local held_back_ms = redis.call('PTTL', KEYS[1])
if held_back_ms > 0 then return { 2, held_back_ms } end

local asks = cjson.decode(ARGV[5])

-- When, by time alone, less than `room` counts; else when nothing does that counts now.
local function opens_ms(w, parts, used, room)
  if w[1] == 'm' then return month_of(part_of(w, now) + 32 * DAY) - now end
  if w[1] == 'c' then return part_of(w, now) + w[2] - now end
  local opens = w[2]
  for _, part in ipairs(parts) do
    used = used - part[2]
    opens = part[1] + step_of(w) + w[2] - now
    if used < room then break end
  end
  return opens
end

local closed = { 0 }
for i, ask in ipairs(asks) do
  local sum, reserved = KEYS[2 + i * 2], KEYS[3 + i * 2]
  local held = ask.h == 0 and 0 or total_reserved(sum, reserved, ask.w, replica, KEYS[2], lease_ms, channel, ask.n, now)
  local parts = parts_in(sum, ask.w, now)
  local used = total_of(parts)
  if used + held >= ask.l then
    table.insert(closed, i)
    table.insert(closed, math.max(1, math.ceil(opens_ms(ask.w, parts, used, ask.l - held))))
  end
end
if #closed > 1 then return closed end

local answer = { 1 }
for i, ask in ipairs(asks) do
  local sum, reserved = KEYS[2 + i * 2], KEYS[3 + i * 2]
  local part = part_of(ask.w, now)
  if ask.u > 0 then add_used(sum, ask.w, part, ask.u, channel, ask.n, replica, now) end
  if ask.h > 0 then
    local own = tonumber(redis.call('HGET', reserved, replica) or 0)
    set_reserved(reserved, replica, own + ask.h, channel, ask.n)
  end
  table.insert(answer, part)
end
return answer
