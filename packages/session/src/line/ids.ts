import { SessionError } from '../errors.ts'

/**
 * Every id that becomes part of a path or a key consists of 1 to 64 letters, digits, `-` and `_`. Not a regular
 * expression: every line that is read has two ids.
 */
export function isId(value: unknown): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > maxIdLength) return false
  for (let index = 0; index < value.length; index++) if (idCharacters[value.charCodeAt(index)] !== 1) return false
  return true
}

const maxIdLength = 64
const idCharacters = new Uint8Array(128)
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-') {
  idCharacters[character.charCodeAt(0)] = 1
}

export function requireId(value: unknown, what: string): string {
  if (isId(value)) return value
  throw new SessionError(
    'invalid-id',
    `${JSON.stringify(value)?.slice(0, 80)} is not a valid ${what}: letters, digits, "-" and "_", at most 64.`,
  )
}

/** UUID version 7. Ids made by one process sort in creation order. */
export function newId(): string {
  const now = Date.now()
  if (now > lastMs) {
    lastMs = now
    counter = randomWord() & 0x7ffffff
    const time = now.toString(16).padStart(12, '0')
    timePart = `${time.slice(0, 8)}-${time.slice(8)}-7`
  } else {
    counter += 1
  }
  const random = randomWord()
  // 32 bits of counter around the two fixed variant bits, then 42 random ones.
  const high = hex(counter >>> 24) + hexDigit((counter >>> 20) & 0xf)
  const middle = hex(0x80 | ((counter >>> 14) & 0x3f)) + hex((counter >>> 6) & 0xff)
  const low = hex(((counter & 0x3f) << 2) | (random & 3)) + hex((random >>> 2) & 0xff)
  const tail = hex((random >>> 10) & 0xff) + hex((random >>> 18) & 0xff)
  const last = randomWord()
  return `${timePart}${high}-${middle}-${low}${tail}${hex(last & 0xff)}${hex((last >>> 8) & 0xff)}`
}

let lastMs = 0
let timePart = ''
/** 32 bits below the millisecond. Starts low so that it cannot overflow within one millisecond. */
let counter = 0

const hexPairs = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function hex(byte: number): string {
  return hexPairs[byte] ?? '00'
}

function hexDigit(value: number): string {
  return value.toString(16)
}

/** Requesting random bytes for each id would cost more than the rest of an append. */
const pool = new Uint32Array(1024)
let used = pool.length

function randomWord(): number {
  if (used === pool.length) {
    crypto.getRandomValues(pool)
    used = 0
  }
  return pool[used++] ?? 0
}

/**
 * `q-{unix seconds}-{8 hex digits}`. The digits start with the millisecond and a counter, so ids made within
 * one second also sort; the last two are random.
 */
export function newSubmissionId(now: number = Date.now()): string {
  if (now > lastSubmissionMs) {
    lastSubmissionMs = now
    submissionCount = 0
  } else if (submissionCount === 0xfff) {
    lastSubmissionMs += 1
    submissionCount = 0
  } else {
    submissionCount += 1
  }
  const seconds = Math.floor(lastSubmissionMs / 1000)
  const ms = (lastSubmissionMs % 1000).toString(16).padStart(3, '0')
  const count = submissionCount.toString(16).padStart(3, '0')
  const random = (randomWord() & 0xff).toString(16).padStart(2, '0')
  return `q-${seconds}-${ms}${count}${random}`
}

let lastSubmissionMs = 0
let submissionCount = 0
