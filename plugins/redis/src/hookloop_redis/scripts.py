"""The scripts that run inside Redis, each as one step that nobody else can come between.

A conversation is one hash, so that it expires, moves and dies whole. Its fields:

- a number: the entry of that number, as kind letter (m: a message), turn digest (16 characters) and JSON text;
- `version`, `last`: how many entries there are, and the highest number; `conversation`: its id, for people;
- `owner`, `until`: the lease, in epoch milliseconds of the server's clock;
- `marks`: JSON, the number of the newest summary and of each plugin's newest state;
- `a:…`, `z:…`: the first and the last number of each turn, by its digest.
"""

HEAD_WIDTH = 17

_OPEN = """
local hash = KEYS[1]
local head = redis.call('HMGET', hash, 'version', 'last', 'owner', 'until', 'marks')
local stored, last = tonumber(head[1] or '0'), tonumber(head[2] or '-1')
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)
local holder, left = head[3] or '', tonumber(head[4] or '0') - now
if left <= 0 then holder, left = '', 0 end
local marks = head[5] and cjson.decode(head[5]) or {}
local function int(number) return string.format('%.0f', number) end
"""

APPEND = (
    _OPEN
    + """
local index = KEYS[2]
local version, owner, lease, ttl = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local conversation, fresh, here = ARGV[5], {}, 0
if #ARGV == 5 then
  if not head[1] then return {'ok', ''} end
  if holder ~= '' and holder ~= owner then return {'held', holder} end
end
for at = 6, #ARGV, 3 do
  local other = redis.call('HGET', hash, ARGV[at])
  if not other then
    fresh[#fresh + 1] = at
  elseif other == ARGV[at + 1] then
    here = here + 1
  else
    return {'other', ARGV[at]}
  end
end
if #fresh > 0 and version >= 0 and stored - here ~= version then return {'version', int(stored)} end

local function reach(field, number, lower)
  local other = tonumber(redis.call('HGET', hash, field) or number)
  if (lower and number <= other) or (not lower and number >= other) then redis.call('HSET', hash, field, int(number)) end
end
for _, at in ipairs(fresh) do
  local number, turn, mark = tonumber(ARGV[at]), string.sub(ARGV[at + 1], 2, 17), ARGV[at + 2]
  redis.call('HSET', hash, ARGV[at], ARGV[at + 1])
  reach('a:' .. turn, number, true)
  reach('z:' .. turn, number, false)
  if mark ~= '' then marks[mark] = math.max(number, marks[mark] or number) end
  last = math.max(last, number)
end

local changes = {'version', int(stored + #fresh), 'last', int(last), 'conversation', conversation}
if next(marks) then
  changes[#changes + 1] = 'marks'
  changes[#changes + 1] = cjson.encode(marks)
end
redis.call('HSET', hash, unpack(changes))
-- a repeated batch claims nothing from whoever took over since
if owner ~= '' and (holder == '' or holder == owner or (#fresh > 0 and lease > 0)) then
  if lease > 0 then
    redis.call('HSET', hash, 'owner', owner, 'until', int(now + lease))
  else
    redis.call('HDEL', hash, 'owner', 'until')
  end
end

local was = redis.call('PTTL', index)
redis.call('ZADD', index, int(micros), conversation)
if ttl > 0 then
  redis.call('PEXPIRE', hash, ttl)
  -- the list lives as long as the longest living of its conversations
  if was == -2 or (was >= 0 and was < ttl) then redis.call('PEXPIRE', index, ttl) end
else
  redis.call('PERSIST', hash)
  redis.call('PERSIST', index)
end
return {'ok', ''}
"""
)
"""Keys: hash, index. Arguments: version, owner, lease (ms), ttl (ms, 0: none), conversation; number, text, mark of each."""

LOAD = (
    _OPEN
    + """
if not head[1] then return {} end
local messages, turn = tonumber(ARGV[1]), ARGV[2]
local texts, found, said, cut, at, current = {}, 0, 0, nil, last, nil

local function chunk(from, to)
  local numbers = {}
  for number = from, to, -1 do numbers[#numbers + 1] = int(number) end
  return redis.call('HMGET', hash, unpack(numbers))
end
while not cut and at >= 0 and found < stored do
  local low = math.max(at - 127, 0)
  for offset, text in ipairs(chunk(at, low)) do
    if text and not cut then
      local whose = string.sub(text, 2, 17)
      if current and whose ~= current and messages >= 0 and said >= messages then
        cut = at - offset + 2
      else
        found, texts[#texts + 1], current = found + 1, text, whose
        if string.sub(text, 1, 1) == 'm' then said = said + 1 end
      end
    end
  end
  at = low - 1
end

if cut then
  local extra = {}
  for _, number in pairs(marks) do
    if number < cut then extra[number] = redis.call('HGET', hash, int(number)) end
  end
  local from = tonumber(redis.call('HGET', hash, 'z:' .. turn) or '-1')
  local to = tonumber(redis.call('HGET', hash, 'a:' .. turn) or '0')
  from = math.min(from, cut - 1)
  while from >= to do
    local low = math.max(from - 127, to)
    for offset, text in ipairs(chunk(from, low)) do
      if text and string.sub(text, 2, 17) == turn then extra[from - offset + 1] = text end
    end
    from = low - 1
  end
  for _, text in pairs(extra) do
    if text then texts[#texts + 1] = text end
  end
end
return {stored, holder, left, texts}
"""
)
"""Keys: hash. Arguments: messages (-1: all), turn digest. Returns version, holder, its milliseconds, texts in any order."""

LIST = """
local found = {}
for at = 2, #KEYS do
  local version = redis.pcall('HGET', KEYS[at], 'version')
  if type(version) ~= 'string' then version = '-1' end -- not there, or the key is something else now
  if version == '-1' then redis.call('ZREM', KEYS[1], ARGV[at - 1]) end
  found[at - 1] = tonumber(version) or 0
end
return found
"""
"""Keys: index, hashes. Arguments: their conversations. Returns the versions, -1 for what has expired and is now unlisted."""
