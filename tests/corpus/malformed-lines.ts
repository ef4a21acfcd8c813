import { reseal, sealText } from './mutate-line.ts'
import { nested, rawNumber } from './nasty.ts'

/** One way to spoil a line of a log. What is said of the outcome holds for sealed logs; plain ones prove less. */
export interface LineWay {
  name: string
  /** What stands in its place, and with `isPair` in that of the line behind it too. */
  spoil: (line: Buffer, following: Buffer) => (Buffer | string)[]
  isPair?: boolean
  /** `harmless`: it is shown and nothing is reported. `reported`: it may be lost and must be reported. `read`: it is no damage. */
  outcome: 'harmless' | 'reported' | 'read'
  /** Whole lines that are still in there and must be shown. */
  keeps?: ('line' | 'following')[]
  /** Leaves no trace at the end of a log: nothing can tell that it was there. */
  isTraceless?: boolean
  /** By the rules of the format, what comes behind cannot be accepted. */
  hidesFollowing?: boolean
}

type Members = Record<string, unknown>

/** Changes the bytes and leaves the checksum as it was. */
function bytes(name: string, change: (line: string) => string | string[], more: Partial<LineWay> = {}): LineWay {
  return { name, spoil: (line) => [change(line.toString())].flat(), outcome: 'reported', ...more }
}

function inserted(name: string, ...values: number[]): LineWay {
  const spoil = (line: Buffer): Buffer[] => {
    const at = line.indexOf('timestamp')
    return [Buffer.concat([line.subarray(0, at), Buffer.from(values), line.subarray(at)])]
  }
  return { name, spoil, outcome: 'reported' }
}

function joined(
  name: string,
  join: (line: Buffer, following: Buffer) => Buffer[],
  keeps: LineWay['keeps'] = [],
): LineWay {
  return { name, spoil: join, isPair: true, outcome: 'reported', keeps }
}

/** Changes what the line says, with a right checksum. */
function says(name: string, outcome: LineWay['outcome'], change: (members: Members) => Members): LineWay {
  return { name, spoil: (line) => [reseal(change(JSON.parse(line.toString()) as Members))], outcome }
}

/** The same for what an object in memory cannot say, such as the same key twice. */
function saysText(name: string, outcome: LineWay['outcome'], change: (line: string) => string): LineWay {
  return { name, spoil: (line) => [resealText(change(line.toString()))], outcome }
}

const seal = /,"crc":"\w+"\}$/
const half = (line: { length: number }): number => line.length >> 1
const both: LineWay['keeps'] = ['line', 'following']

const brokenBytes = [
  bytes('cut in half', (line) => line.slice(0, half(line))),
  bytes('without its first byte', (line) => line.slice(1)),
  bytes('without its last byte', (line) => line.slice(0, -1)),
  bytes('only its first byte', (line) => line.slice(0, 1)),
  bytes('NUL bytes in its place', (line) => '\0'.repeat(line.length)),
  bytes('NUL bytes behind it', (line) => `${line}\0\0\0\0`, { keeps: ['line'] }),
  bytes('NUL bytes before it', (line) => `\0\0\0\0${line}`, { keeps: ['line'] }),
  bytes('CRLF', (line) => `${line}\r`, { outcome: 'harmless' }),
  bytes('two CR behind it', (line) => `${line}\r\r`, { keeps: ['line'] }),
  bytes('spaces before it', (line) => `   ${line}`, { keeps: ['line'] }),
  bytes('spaces behind it', (line) => `${line}   `, { keeps: ['line'] }),
  bytes('garbage before it', (line) => `garbage${line}`, { keeps: ['line'] }),
  bytes('garbage behind it', (line) => `${line}garbage`, { keeps: ['line'] }),
  bytes('garbage in its place', () => 'qwertz'.repeat(20)),
  bytes('a changed letter', (line) => line.replace('timestamp', 'timestemp')),
  inserted('a NUL byte', 0),
  inserted('a lone surrogate', 0xed, 0xa0, 0x80),
  inserted('broken UTF-8', 0xc3, 0x28),
  inserted('overlong UTF-8', 0xc0, 0x80),
  inserted('Latin-1', 0xe9),
  inserted('half a character', 0xf0, 0x9f, 0x98),
  inserted('a code point past the last one', 0xf4, 0x90, 0x80, 0x80),
  inserted('0xFF bytes', 0xff, 0xff),
]

const brokenLines = [
  bytes('split in two', (line) => [line.slice(0, half(line)), line.slice(half(line))]),
  bytes('split behind its seq', (line) => [line.slice(0, 9), line.slice(9)]),
  bytes('pretty-printed', (line) => JSON.stringify(JSON.parse(line), null, 2).split('\n')),
  bytes('a blank line before it', (line) => ['', line], { outcome: 'harmless' }),
  bytes('a thousand blank lines before it', (line) => [...Array<string>(1000).fill(''), line], { outcome: 'harmless' }),
  bytes('white space before it', (line) => [' \t \r', line], { outcome: 'harmless' }),
  bytes('a byte order mark on a line before it', (line) => ['\ufeff', line], { outcome: 'read', keeps: ['line'] }),
  bytes('a blank line in its place', () => '', { isTraceless: true }),
  bytes('left out', () => [], { isTraceless: true }),
  bytes('twice', (line) => [line, line], { keeps: ['line'] }),
  joined('merged with the next', (line, next) => [Buffer.concat([line, next])], both),
  joined(
    'merged with the next, one byte between',
    (line, next) => [Buffer.concat([line, Buffer.from('*'), next])],
    both,
  ),
  joined('merged with the next, CR between', (line, next) => [Buffer.concat([line, Buffer.from('\r'), next])], both),
  joined('merged with the next, NUL between', (line, next) => [Buffer.concat([line, Buffer.alloc(9), next])], both),
  joined('torn, the next glued on', (line, next) => [Buffer.concat([line.subarray(0, half(line)), next])], [
    'following',
  ]),
  joined('swapped with the next', (line, next) => [next, line], ['following']),
  { ...joined('both gone', () => []), isTraceless: true },
]

const brokenValues = [
  ...['[]', '{}', 'null', 'true', '5', '"text"', '[{}]', '{"a":1}', '{', '}', '""'].map((json) =>
    bytes(`${json} in its place`, () => json),
  ),
  says('U+2028, U+2029, U+0085', 'harmless', (line) => ({ ...line, extra: '\u2028\u2029\u0085' })),
  says('an escaped lone surrogate', 'harmless', (line) => ({ ...line, extra: '\ud800' })),
  says('control characters', 'harmless', (line) => ({ ...line, extra: '\u0000\u001b[31m' })),
  ...['1e999', '-1e999', '9007199254740993', '1e-400', '-0'].map((number) =>
    says(`the number ${number}`, 'harmless', (line) => ({ ...line, extra: rawNumber(number) })),
  ),
  ...['__proto__', 'constructor', 'then', 'toJSON', 'hasOwnProperty', ''].map((name) =>
    says(`a member "${name}"`, 'harmless', (line) => withMember(line, name, { polluted: true, then: 1 })),
  ),
  saysText('the same key twice', 'harmless', (line) => line.replace('"type"', '"timestamp":"earlier","type"')),
  saysText('two ids', 'harmless', (line) => line.replace('"type"', '"id":"first-of-two","type"')),
  ...[60, 63].map((depth) => says(`nested ${depth} deep`, 'harmless', (line) => ({ ...line, extra: nested(depth) }))),
  ...[64, 65, 1000].map((depth) =>
    says(`nested ${depth} deep`, 'reported', (line) => ({ ...line, extra: nested(depth) })),
  ),
  bytes('a hundred thousand brackets', () => '['.repeat(100_000)),
  bytes('a hundred thousand objects', () => `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`),
  saysText('ten thousand members', 'harmless', (line) => {
    const members = Array.from({ length: 10_000 }, (_, index) => `"k${index}":${index}`)
    return line.replace('"type"', `${members.join(',')},"type"`)
  }),
]

const brokenIdentity = [
  says('no id', 'reported', ({ id: _, ...line }) => line),
  ...[5, '', null, 'a'.repeat(65), '../../etc/passwd', 'a b', 'a\0', {}, []].map((id) =>
    says(`the id ${JSON.stringify(id).slice(0, 20)}`, 'reported', (line) => ({ ...line, id })),
  ),
  ...['__proto__', 'constructor', 'then'].map((id) => says(`the id ${id}`, 'read', (line) => ({ ...line, id }))),
  says('no type', 'reported', ({ type: _, ...line }) => line),
  ...[5, null, {}].map((type) => says(`the type ${JSON.stringify(type)}`, 'reported', (line) => ({ ...line, type }))),
  ...['', '__proto__', 'constructor'].map((type) => says(`the type "${type}"`, 'read', (line) => ({ ...line, type }))),
  says('an unknown record', 'read', ({ parent_id: _, ...line }) => ({ ...line, type: 'brand_new' })),
  says('an unknown entry', 'read', (line) => ({ ...line, type: 'brand_new', parent_id: line['parent_id'] ?? null })),
  says('a critical record', 'read', ({ parent_id: _, ...line }) => ({ ...line, type: 'brand_new', critical: true })),
  says('a critical entry', 'read', (line) => ({ ...line, type: 'brand_new', parent_id: null, critical: true })),
  ...[5, '', 'a/b', {}].map((parent) =>
    says(`the parent ${JSON.stringify(parent)}`, 'reported', (line) => ({ ...line, parent_id: parent })),
  ),
  says('no parent', 'read', ({ parent_id: _, ...line }) => line),
  says('a phantom parent', 'reported', (line) => ({ ...line, parent_id: 'nobody' })),
  says('itself as parent', 'reported', (line) => ({ ...line, parent_id: line['id'] })),
  says('the last line as parent', 'read', (line) => ({ ...line, parent_id: 'answer-2' })),
  says('the id of another line', 'read', (line) => ({ ...line, id: 'answer-1' })),
  ...[undefined, null, 5, 'text', [], {}].map((payload) =>
    says(`the payload ${JSON.stringify(payload)}`, 'read', (line) => ({ ...line, [String(line['type'])]: payload })),
  ),
  says('a flat payload', 'read', (line) => {
    const { [String(line['type'])]: payload, ...rest } = line
    return { ...rest, ...(payload as object) }
  }),
  says('a second header', 'read', ({ parent_id: _, ...line }) => ({ ...line, type: 'session' })),
]

const brokenSeals = [
  says('a newer format', 'read', ({ parent_id: _, ...line }) => ({
    ...line,
    type: 'writer',
    writer: { term: 9, format: 99 },
  })),
  ...['0', '-1', '1.5', '"3"', 'null', '9007199254740991', '9007199254740992', '1e15', '1e999'].map((seq) =>
    says(`seq ${seq}`, 'reported', (line) => ({ ...line, seq: rawNumber(seq) })),
  ),
  says('the seq of the line before', 'reported', (line) => ({ ...line, seq: Number(line['seq']) - 1 })),
  {
    ...says('a seq far ahead', 'reported', (line) => ({ ...line, seq: Number(line['seq']) + 1000 })),
    hidesFollowing: true,
  },
  saysText('no seq', 'reported', (line) => line.replace(/"seq":\d+,/, '')),
  bytes('no checksum', (line) => line.replace(seal, '}')),
  bytes('a wrong checksum', (line) => line.replace(seal, ',"crc":"00000000"}')),
  bytes('a checksum in upper case', (line) => line.replace(/\w+"\}$/, (digits) => `A${digits.slice(1).toUpperCase()}`)),
  bytes('a short checksum', (line) => line.replace(/\w"\}$/, '"}')),
  bytes('a number as checksum', (line) => line.replace(seal, ',"crc":12345678}')),
  bytes('a member behind the checksum', (line) => line.replace(/\}$/, ',"more":1}')),
  bytes('the checksum twice', (line) => line.replace(/(,"crc":"\w+")\}$/, '$1$1}')),
]

/** Every way that fits any log, and those that are about seq and checksum. */
export const lineWays = {
  any: [...brokenBytes, ...brokenLines, ...brokenValues, ...brokenIdentity],
  sealed: brokenSeals,
}

function resealText(line: string): string {
  return seal.test(line) ? sealText(line.replace(seal, '')) : line
}

function withMember(line: Members, name: string, value: unknown): Members {
  return Object.defineProperty({ ...line }, name, { value, enumerable: true, configurable: true })
}
