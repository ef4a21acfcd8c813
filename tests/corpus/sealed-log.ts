import { sealLine, type DiskLine, type SealedLine } from '@tapetree/session/format'

const encoder = new TextEncoder()

/** Numbers the lines from 1 on and seals them, as the writer would. */
export function sealAll(lines: readonly DiskLine[]): SealedLine[] {
  return lines.map((line, index) => sealLine(line, index + 1))
}

function bytesOfLines(texts: readonly string[]): Uint8Array {
  return encoder.encode(texts.map((text) => `${text}\n`).join(''))
}

export function bytesOfLog(lines: readonly SealedLine[]): Uint8Array {
  return bytesOfLines(lines.map(({ text }) => text))
}
