import type { WireBlockedWrites } from '@tapetree/client/protocol'
import { counted } from './amounts.ts'
import { harmless, harmlessLine } from './harmless.ts'

/** A file that the sandbox took back, as in a diff: all of it is new. */
export function keptFileLines(file: WireBlockedWrites['writes'][number]['files'][number]): string[] {
  const { path, text, size_bytes: bytes, is_cut: isCut, target } = file
  const name = `+++ ${harmlessLine(path)}`
  if (target !== undefined) return [`${name} (a link to ${harmlessLine(target)})`]
  if (text === undefined) return [`${name} (${counted(bytes, 'byte')}, not text)`]
  const lines = harmless(text).replaceAll('\t', '  ').replace(/\n$/, '').split('\n')
  return [name, ...lines.map((line) => `+${line}`), ...(isCut ? ['… the rest is not shown'] : [])]
}
