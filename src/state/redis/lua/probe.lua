-- Whether this Redis takes what the other scripts write. A look says nothing about that: a read-only one answers it.
-- KEYS  1 a key of its own
-- ARGV  1 a channel that this replica alone hears

redis.call('SET', KEYS[1], '1', 'PX', 60000)
publish(ARGV[1], { t = 'probe' })
return 1
