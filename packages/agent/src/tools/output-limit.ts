import type { ToolContext } from './tool.ts'

export interface OutputLimits {
  maxBytes?: number
  maxLines?: number
}

/**
 * Drops the middle of long output. The complete output is stored as a blob, and a line names what was left out
 * and the blob.
 */
export async function limitOutput(
  text: string,
  context: Pick<ToolContext, 'putBlob'>,
  { maxBytes = 32 * 1024, maxLines = 1000 }: OutputLimits = {},
): Promise<string> {
  const whole = Buffer.from(text)
  if (whole.length <= maxBytes && countLines(text) <= maxLines) return text
  const { sha256 } = await context.putBlob(whole)
  const half = { maxBytes: Math.floor(maxBytes / 2), maxLines: Math.floor(maxLines / 2) }
  const head = startOf(text, half)
  const tail = endOf(text, half)
  const middle = text.slice(head.length, text.length - tail.length)
  const left = `${countLines(middle)} lines, ${Buffer.byteLength(middle)} bytes`
  return `${head.replace(/\n$/, '')}\n[… ${left} left out here. The whole output is kept as blob ${sha256} …]\n${tail}`
}

export function countLines(text: string): number {
  if (text === '') return 0
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1
  return text.endsWith('\n') ? count : count + 1
}

/** Ends after a complete line if there is one, and never inside of a character. */
function startOf(text: string, { maxBytes, maxLines }: Required<OutputLimits>): string {
  let end = 0
  let bytes = 0
  for (let lines = 0; lines < maxLines; lines += 1) {
    const next = text.indexOf('\n', end) + 1 || text.length
    const size = Buffer.byteLength(text.slice(end, next))
    if (bytes + size > maxBytes) break
    bytes += size
    end = next
  }
  return end > 0 ? text.slice(0, end) : firstBytes(Buffer.from(text), maxBytes)
}

function endOf(text: string, { maxBytes, maxLines }: Required<OutputLimits>): string {
  let start = text.length
  let bytes = 0
  for (let lines = 0; lines < maxLines; lines += 1) {
    const next = text.lastIndexOf('\n', start - 2) + 1
    const size = Buffer.byteLength(text.slice(next, start))
    if (bytes + size > maxBytes) break
    bytes += size
    start = next
  }
  return start < text.length ? text.slice(start) : lastBytes(Buffer.from(text), maxBytes)
}

function firstBytes(bytes: Buffer, size: number): string {
  let end = size
  while (isInsideCharacter(bytes, end)) end -= 1
  return bytes.subarray(0, end).toString()
}

function lastBytes(bytes: Buffer, size: number): string {
  let start = bytes.length - size
  while (isInsideCharacter(bytes, start)) start += 1
  return bytes.subarray(start).toString()
}

function isInsideCharacter(bytes: Buffer, at: number): boolean {
  return ((bytes[at] ?? 0) & 0xc0) === 0x80
}
