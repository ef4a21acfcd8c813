import type { ToolContext } from '../tool.ts'
import type { SpooledOutput, OutputPiece } from './spooled-output.ts'

const shownBytes = 30_000

/**
 * The output for the model, from an offset on: complete if it is short, else its first and last lines and a
 * reference to the rest. Reads only the shown parts.
 */
export async function showOutput(
  output: SpooledOutput,
  from: number,
  context: Pick<ToolContext, 'putBlob'>,
): Promise<string> {
  const bytes = joinPieces(output, from)
  if (bytes.length <= shownBytes) return plainText(bytes).trimEnd()
  const head = bytes.subarray(0, endOfHead(bytes, shownBytes / 2))
  const tail = bytes.subarray(startOfTail(bytes, bytes.length - shownBytes / 2))
  const { sha256 } = await context.putBlob(bytes)
  const left = countBytes(bytes.length - head.length - tail.length)
  const omitted = `[… ${left} left out here. The whole output is kept as blob ${sha256} …]`
  return `${plainText(head).trimEnd()}\n${omitted}\n${plainText(tail).trimEnd()}`
}

export function countBytes(count: number): string {
  return `${count.toLocaleString('en')} byte${count === 1 ? '' : 's'}`
}

/** Marks the gaps where output was not stored. */
export function joinPieces({ pieces, end }: SpooledOutput, from: number): Buffer {
  const parts: Uint8Array[] = []
  let offset = from
  for (const piece of pieces) {
    if (piece.offset > offset) parts.push(notKept(piece.offset - offset))
    parts.push(piece.bytes)
    offset = piece.offset + piece.bytes.length
  }
  if (end > offset) parts.push(notKept(end - offset))
  return Buffer.concat(parts)
}

function notKept(bytes: number): Uint8Array {
  return Buffer.from(`\n[… ${countBytes(bytes)} not stored …]\n`)
}

const lineFeed = 0x0a
/** A line break is searched within this many bytes; a longer line is split. */
const longestLine = 4096

function endOfHead(bytes: Uint8Array, wanted: number): number {
  const lineEnd = bytes.lastIndexOf(lineFeed, wanted - 1)
  return lineEnd >= wanted - longestLine ? lineEnd + 1 : startOfCharacter(bytes, wanted)
}

function startOfTail(bytes: Uint8Array, wanted: number): number {
  const lineEnd = bytes.indexOf(lineFeed, wanted - 1)
  return lineEnd >= 0 && lineEnd < wanted + longestLine ? lineEnd + 1 : startOfCharacter(bytes, wanted)
}

function startOfCharacter(bytes: Uint8Array, at: number): number {
  let start = at
  while (start > at - 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--
  return start
}

/** Decodes output as it arrives; a character may span two pieces. */
export class LiveOutput {
  readonly #observe: (text: string) => void
  #decoder = new TextDecoder()
  #offset = 0

  constructor(observe: (text: string) => void) {
    this.#observe = observe
  }

  take({ offset, bytes }: OutputPiece): void {
    if (offset > this.#offset) {
      this.#decoder = new TextDecoder()
      this.#observe(`\n[${countBytes(offset - this.#offset)} skipped]\n`)
    }
    this.#offset = offset + bytes.length
    const text = this.#decoder.decode(bytes, { stream: true })
    if (text !== '') this.#observe(text)
  }
}

/** Output as plain text: without escape sequences, and with only the last version of an overwritten line. */
export function plainText(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes)
  return text.replace(escapes, '').replace(lineEnds, '\n').replace(drawnOver, '').replace(controls, '')
}

// The command controls this input, so every pattern must run in linear time.

/**
 * Terminal sequences: with parameters, with a string (title, link, clipboard), and short ones. An unterminated
 * string ends with its line.
 */
const escapes = new RegExp(
  [
    String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?`,
    String.raw`(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\)?`,
    String.raw`\x1b[ -/]*[0-~]?`,
  ].join('|'),
  'g',
)
const lineEnds = /(?<!\r)\r+\n/g
const drawnOver = /(?<![^\n])[^\n]*\r(?=[^\r\n])/g
/** Control characters except tab and line feed, and the C1 set. */
// oxlint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]+/g
