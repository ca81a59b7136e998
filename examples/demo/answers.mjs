/** What the demo providers say: plausible, a little about the question, made of nothing but string handling. */

const TOPICS = [
  [
    /gpu|local|hardware|card|vram/i,
    'A card of your own is cheap while it is busy and useless while a second request waits in front of it.',
  ],
  [
    /slot|queue|concurren|parallel|limit/i,
    'A slot is one seat at the machine: taken before the first byte leaves, given back after the last one came.',
  ],
  [
    /stream|token|word|sse/i,
    'Each word you read left the provider a moment ago; nothing on the way waits for the end.',
  ],
  [
    /fail|error|retry|down|broken/i,
    'When one provider stumbles before its first byte, the next one answers and nobody downstream notices.',
  ],
  [/hello|hi\b|hey|good (morning|day|evening)/i, 'Hello! It is good to be asked first.'],
  [/poem|haiku|rhyme/i, 'One lamp, one fan, one card; the queue moves on, and warm air rises from the rack.'],
  [
    /sky|blue|light/i,
    'Short waves of light scatter more than long ones, so the daytime sky comes to us blue from every side.',
  ],
  [/weather|rain|sun/i, 'I have no window here, but a demo is always sunny.'],
];

const FILLERS = [
  'That is a fair question, and it has a short answer.',
  'There is more to say about it than fits into a demo.',
  'Most people find that the simple explanation is the right one.',
  'If you ask again in other words, you will get other words back.',
  'I would start with the smallest example that shows the effect.',
  'The details depend on what you measure and where you stand.',
];

/** Text of the last message of the user, whatever form its content has. */
export function questionOf(body) {
  const messages = Array.isArray(body?.messages) ? body.messages : [];
  const last = messages.findLast((message) => message?.role === 'user');
  const content = last?.content;
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map((part) => part?.text ?? '').join(' ');
  return '';
}

/** An answer in words that hang on the question; the same question gets the same answer. */
export function answerTo(question, voice) {
  const sum = sumIn(question);
  const topics = TOPICS.filter(([pattern]) => pattern.test(question.slice(0, 2000))).map(([, text]) => text);
  const seed = seedOf(question + voice);
  const fillers = [FILLERS[seed % FILLERS.length], FILLERS[(seed + 1 + (seed % 4)) % FILLERS.length]];
  const quoted = question.trim().slice(0, 60);
  const opening =
    quoted === '' ? 'You asked nothing, so here is a little of everything.' : `You asked: "${quoted}".`;
  return [opening, ...(sum === null ? [] : [sum]), ...topics, ...fillers, `(${voice})`].join(' ');
}

/** What a model with a habit of thinking aloud would mumble before that answer. */
export function thoughtAbout(question) {
  const words = question
    .split(' ')
    .filter((word) => word.length > 3)
    .slice(0, 4);
  const about = words.length === 0 ? 'something unsaid' : words.join(', ');
  return `The user wants to know about ${about}. Let me keep it short and not show this part as the answer.`;
}

export const wordsOf = (text) => text.split(' ').map((word, i) => (i === 0 ? word : ` ${word}`));

function sumIn(question) {
  const found = /(\d{1,6})\s?([+*-])\s?(\d{1,6})/.exec(question.slice(0, 2000));
  if (found === null) return null;
  const [, left, sign, right] = found;
  const [a, b] = [Number(left), Number(right)];
  const result = sign === '+' ? a + b : sign === '-' ? a - b : a * b;
  return `${a} ${sign} ${b} = ${result}.`;
}

function seedOf(text) {
  let seed = 7;
  for (const character of text) seed = (seed * 31 + character.codePointAt(0)) % 1_000_003;
  return seed;
}
