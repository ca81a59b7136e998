-- Books a failure in a streak and begins, or prolongs, a rest. Times are kept as what remains of them, never as dates.
-- KEYS  1 streak  2 rest  3 quiet
-- ARGV  1 base ms  2 cap ms  3 asked ms  4 ms since the attempt began  5 trial 0/1  6 channel  7 name
-- Gives { streak, number of the rest, whole ms, ms left, quiet ms left, after a trial 0/1 }.

local base, cap, asked_ms, age = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local trial = ARGV[5] == '1'
local asked = math.min(cap, asked_ms)
local streak = tonumber(redis.call('HGET', KEYS[1], 'n') or 0)
local number = tonumber(redis.call('HGET', KEYS[1], 'no') or 0)
local total = tonumber(redis.call('HGET', KEYS[1], 'total') or 0)
local after = redis.call('HGET', KEYS[1], 'trial') or '0'
local left = math.max(0, redis.call('PTTL', KEYS[2]))

-- Many that were in flight fail together: what began before the present rest does not raise the streak again.
if streak > 0 and left > 0 and age > total - left then
  local gone = total - left
  left = math.max(left, asked)
  total = gone + left
else
  local previous = (trial and streak > 0) and total or 0
  streak = streak + 1
  number = number + 1
  after = trial and '1' or '0'
  local ladder = cap
  if streak < 40 then ladder = math.min(cap, base * 2 ^ (streak - 1)) end
  total = math.max(ladder, asked, math.min(cap, previous))
  left = total
end
redis.call('HSET', KEYS[1], 'n', streak, 'no', number, 'total', whole(total), 'trial', after)
-- A streak outlives its rest: as long again, and a day.
keep(KEYS[1], left * 2 + 86400000)
redis.call('SET', KEYS[2], '1', 'PX', whole(math.max(1, left)))
local quiet = math.max(0, redis.call('PTTL', KEYS[3]))
if asked_ms > quiet then
  quiet = asked_ms
  redis.call('SET', KEYS[3], '1', 'PX', whole(quiet))
end
publish(ARGV[6], { t = 'rest', k = ARGV[7], n = streak, no = number, total = total, left = left, quiet = quiet, trial = after == '1' })
return { streak, number, whole(total), whole(left), whole(quiet), tonumber(after) }
