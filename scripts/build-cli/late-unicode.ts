import { join } from 'node:path'
import type { Plugin } from 'rolldown'

const replacement = join(import.meta.dirname, 'late-segmenter.ts')

/**
 * The first segmenter of a process, and an expression for all emoji, take a quarter of the time before the first picture of the chat. In
 * the bundle they are made when a text needs them: letters, lines and arrows do not.
 */
export function lateUnicode(): Plugin {
  return {
    name: 'late-unicode',
    transform: (code, id) => (/pi-tui[\\/]dist|packages[\\/]cli[\\/]src/.test(id) ? withLateUnicode(code) : null),
  }
}

/** Null where nothing has to be changed. */
export function withLateUnicode(code: string): string | null {
  if (!code.includes('new Intl.Segmenter(')) return null
  const changed = code
    .replaceAll('new Intl.Segmenter(', 'lateSegmenter(')
    .replace(/const rgiEmojiRegex = (\/\S+\/)v;/, 'const rgiEmojiRegex = lateExpression($1.source)')
  return `import { lateExpression, lateSegmenter } from ${JSON.stringify(replacement)};${changed}`
}
