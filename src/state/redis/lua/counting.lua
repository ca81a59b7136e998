-- Shared by the scripts that count quotas, which follow it and common.lua.
--
-- A sum is a hash: begin of a part of time → what was used in it. A window of the calendar is one part; a sliding one has 120,
-- and a part counts as long as anything in it may. Windows go by Redis's own time, so all replicas mean the same one.
-- How a window goes is told as { 'c', length, offset } (calendar, counted from 1970), { 'm' } (the month) or { 's', length }.
-- What is reserved stands in a hash of its own: replica → tokens.

local DAY = 86400000

-- First moment of the month in which a moment lies.
local function month_of(at)
  local days = math.floor(at / DAY)
  local z = days + 719468
  local of_era = z % 146097
  local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) - math.floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local month = math.floor((5 * of_year + 2) / 153)
  return (days - of_year + math.floor((153 * month + 2) / 5)) * DAY
end

local function step_of(w)
  return math.max(1, math.floor(w[2] / 120))
end

local function part_of(w, at)
  if w[1] == 'm' then return month_of(at) end
  if w[1] == 'c' then return math.floor((at - w[3]) / w[2]) * w[2] + w[3] end
  return math.floor(at / step_of(w)) * step_of(w)
end

-- The oldest part that counts.
local function oldest_part(w, now)
  if w[1] == 's' then return now - w[2] - step_of(w) + 1 end
  return part_of(w, now)
end

local function length_of(w)
  return w[1] == 'm' and 31 * DAY or w[2]
end

-- { part, amount } of all that counts, oldest first.
local function parts_in(sum, w, now)
  local oldest = oldest_part(w, now)
  local found = {}
  local fields = redis.call('HGETALL', sum)
  for i = 1, #fields, 2 do
    local part = tonumber(fields[i])
    if part >= oldest then table.insert(found, { part, tonumber(fields[i + 1]) }) end
  end
  table.sort(found, function(a, b) return a[1] < b[1] end)
  return found
end

local function total_of(parts)
  local total = 0
  for _, part in ipairs(parts) do total = total + part[2] end
  return total
end

-- `by`: who hears nothing of it, having counted it; '' = all hear it.
local function add_used(sum, w, part, amount, channel, name, by, now)
  redis.call('HINCRBY', sum, whole(part), whole(amount))
  keep(sum, 2 * length_of(w) + 60000)
  if redis.call('HLEN', sum) > 250 then
    local oldest = oldest_part(w, now)
    for _, field in ipairs(redis.call('HKEYS', sum)) do
      if tonumber(field) < oldest then redis.call('HDEL', sum, field) end
    end
  end
  publish(channel, { t = 'counted', k = name, p = part, n = amount, r = by })
end

local function set_reserved(reserved, replica, tokens, channel, name)
  if tokens > 0 then
    redis.call('HSET', reserved, replica, whole(tokens))
    keep(reserved, DAY)
  else
    redis.call('HDEL', reserved, replica)
  end
  publish(channel, { t = 'reserved', k = name, r = replica, n = math.max(0, tokens) })
end

-- What all have reserved. Whoever died has used what it had reserved, for all that anybody knows.
local function total_reserved(sum, reserved, w, replica, members, lease_ms, channel, name, now)
  local total = 0
  local fields = redis.call('HGETALL', reserved)
  for i = 1, #fields, 2 do
    local who, tokens = fields[i], tonumber(fields[i + 1])
    local heard = tonumber(redis.call('ZSCORE', members, who) or 0)
    if who == replica or heard >= now - lease_ms * 4 / 3 then
      total = total + tokens
    else
      set_reserved(reserved, who, 0, channel, name)
      add_used(sum, w, part_of(w, now), tokens, channel, name, '', now)
    end
  end
  return total
end
