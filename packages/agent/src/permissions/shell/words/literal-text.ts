/**
 * The text of what the shell takes as it stands, read from the source and not from the parser: where the two could differ, the
 * answer is `undefined`, and whoever asked must not rely on it.
 */

/** Outside of quotes: letters without a meaning of their own, and letters behind a backslash. */
export function readBare(source: string): string | undefined {
  if (!bare.test(source) || /(?:^|[:=])~/.test(source) || (source.includes('{') && /,|\.\./.test(source)))
    return undefined
  return unescape(source, /\\([\s\S])/g)
}

/** `~` only where it stands for itself, braces only where nothing in them makes more words of one. */
const bare = /^(?:[A-Za-z0-9_.,:=@%+/^#{}!~\]-]|[^\x00-\x7f]|\\[\x20-\x7e\n])*$/

export function readSingleQuoted(source: string): string | undefined {
  return /^'[^']*'$/.test(source) ? source.slice(1, -1) : undefined
}

/** Text between double quotes, without the quotes. */
export function readDoubleQuoted(source: string): string | undefined {
  return /^(?:[^"$`\\]|\\[\s\S])*$/.test(source) ? unescape(source, /\\([$`"\\\n])/g) : undefined
}

/** Escapes of `$'…'` that not everybody reads alike: some text, and nothing but text. */
export const unknownEscapes = Symbol('unknown escapes')

export function readAnsiQuoted(source: string): string | typeof unknownEscapes | undefined {
  if (!/^\$'(?:[^'\\]|\\[\s\S])*'$/.test(source)) return undefined
  if (/\\[^nt\\'"]/.test(source.replaceAll('\\\\', ''))) return unknownEscapes
  return source
    .slice(2, -1)
    .replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter === 't' ? '\t' : letter))
}

function unescape(source: string, escape: RegExp): string {
  return source.replace(escape, (_, letter: string) => (letter === '\n' ? '' : letter))
}
