-- A replica comes (back): what it knows was used is never more than what the sums say afterwards; what it counted alone is added;
-- what it has reserved stands as it says.
-- KEYS  sum and reserved of each quota in turn
-- ARGV  1 replica  2 channel
--       3 [{ n: name, w: window, k: [[when, amount]] known, oldest first, u: the same, untold, h: reserved }]
--         when = begin of a window of the calendar, or ms ago in a sliding one

local replica, channel = ARGV[1], ARGV[2]
local now = now_ms()

for i, told in ipairs(cjson.decode(ARGV[3])) do
  local sum, reserved = KEYS[i * 2 - 1], KEYS[i * 2]
  local function part_at(when)
    return part_of(told.w, told.w[1] == 's' and now - when or when)
  end
  local oldest = oldest_part(told.w, now)
  local parts = parts_in(sum, told.w, now)
  local known, there, last = 0, 0, #parts
  -- Since whenever: at least as much as this replica knows of.
  for j = #told.k, 1, -1 do
    local part = part_at(told.k[j][1])
    if part >= oldest then
      known = known + told.k[j][2]
      while last > 0 and parts[last][1] >= part do
        there = there + parts[last][2]
        last = last - 1
      end
      if known > there then
        add_used(sum, told.w, part, known - there, channel, told.n, replica, now)
        there = known
      end
    end
  end
  for _, use in ipairs(told.u) do
    local part = part_at(use[1])
    if part >= oldest then add_used(sum, told.w, part, use[2], channel, told.n, replica, now) end
  end
  set_reserved(reserved, replica, told.h, channel, told.n)
end
return 1
